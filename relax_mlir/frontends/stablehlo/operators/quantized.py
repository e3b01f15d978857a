"""Ops on quantised tensors that are more than the op on floats."""

from collections.abc import Iterable, Sequence

from relax_mlir.bindings import ir
from relax_mlir.errors import ModelError
from relax_mlir.symbolic import product

from ...known import Known
from ..bodies import accumulators, reducers, returned
from ..importer import key_of
from ..node import Node
from ..quantization import (
    Quantization,
    centred,
    centred_known,
    converted,
    from_centred,
    quantization_of,
    rescaled,
)
from ..quantized import as_floats, is_alike
from ..registry import Function, Value, find, of_quantized, operator
from ..types import Declared
from .contraction import roles

MOST_TAPS = 1 << 31
"""What a count of products is taken to be where symbols say."""

LIMITS = {"i32": 1 << 31, "f32": 1 << 24, "f64": 1 << 53}
"""Magnitudes up to which sums of integers are exact."""


def _function_of(node: Node) -> Function:
    entry = find(key_of(node.op))
    assert entry is not None
    return entry.function


@operator("uniform_quantize", "uniform_dequantize", elementwise=True)
def uniform(node: Node) -> ir.Value:
    """The operand: what is not of its type is converted."""
    return node.tensor(0)


@of_quantized("clamp", "compare", "maximum", "minimum")
def ordered(node: Node) -> "Value | tuple[Value, ...]":
    """An op that goes by the order of elements, which integers are in, as scales are positive."""
    function = _function_of(node)
    return function(node) if is_alike(node) else as_floats(node, function)


# Ops that pass integers on.


@of_quantized(
    *("bitcast_convert", "constant", "get_dimension_size", "get_tuple_element", "tuple"),
    *("optimization_barrier", "call", "case", "composite", "if", "map", "sort", "while"),
)
def as_integers(node: Node) -> "Value | tuple[Value, ...]":
    """An op whose regions have the types of its operands and results."""
    for outside, inside in _passed(node):
        _require_same(outside, inside)
    return _function_of(node)(node)


def _passed(node: Node) -> Iterable[tuple[Sequence[ir.Type], Sequence[ir.Type]]]:
    """Types of what is passed to regions, and back."""
    operands, results = _types(node.op.operands), _types(node.op.results)
    name, regions = node.name, node.regions
    if name == "composite":
        callee = ir.FlatSymbolRefAttr(node.attribute("decomposition")).value
        regions = [node.importer.functions[callee].regions[0].blocks[0]]
    for i, block in enumerate(regions):
        yielded = _types(returned(block))
        if name in ("map", "composite", "while"):
            yield operands, _types(block.arguments)
        if name == "while":
            yield operands, results
        if name == "sort":
            yield [type_ for type_ in operands for _ in range(2)], _types(block.arguments)
        elif name != "while" or i == 1:
            yield results, yielded


def _types(values: Iterable[ir.Value]) -> list[ir.Type]:
    return [value.type for value in values]


def _require_same(types: Sequence[ir.Type], others: Sequence[ir.Type]) -> None:
    """Refuses elements that would stand for other floats on the other side."""
    for one, other in zip(types, others, strict=True):
        if _element(one) != _element(other):
            raise ModelError(f"passes elements of {_element(one)} as {_element(other)}")


def _element(type_: ir.Type) -> ir.Type:
    return type_.element_type if isinstance(type_, ir.RankedTensorType) else type_


# Products.


@of_quantized("convolution", "dot", "dot_general", "dynamic_conv")
def contraction(node: Node) -> "Value | tuple[Value, ...]":
    """Sums of products of integers less zero points, where they are exact; else of floats."""
    function = _function_of(node)
    left, right = (kind.quantization for kind in node.operand_kinds[:2])
    to = node.result.quantization
    if left is None or right is None or to is None:
        return as_floats(node, function)
    axis = _result_axis(node, right.axis)
    element = _sum_element(node, left, right)
    is_along = to.axis is None or right.axis is None or to.axis == axis
    if left.axis is not None or element is None or not is_along:
        return as_floats(node, function)
    pairs = zip(node.operands[:2], (left, right), strict=True)
    operands = [centred(node.importer.tensor(value), by, element) for value, by in pairs]
    sums = function(node.of_values([*operands, *node.operands[2:]], [element]))
    assert isinstance(sums, ir.Value)
    return rescaled(sums, [left.scales[0] * scale for scale in right.scales], axis, to)


def _result_axis(node: Node, axis: int | None) -> int | None:
    """The axis of the result along which an axis of the second operand lies."""
    if axis is None:
        return None
    if node.name in ("convolution", "dynamic_conv"):
        return roles(node)[2][1]
    if node.name == "dot":
        return node.rank(0) - 1
    axes = node.axes_of("dot")
    batch, sums = (axes.list(f"rhs_{kind}_dimensions") for kind in ("batching", "contracting"))
    if axis in batch:
        return batch.index(axis)
    free = [i for i in range(node.rank(1)) if i not in (*batch, *sums)]
    return node.rank(0) - len(sums) + free.index(axis)


def _sum_element(node: Node, left: Quantization, right: Quantization) -> str | None:
    """A type in which sums are exact: of integers for matrices, of floats for windows."""
    dims, is_conv = node.dims(1), node.name in ("convolution", "dynamic_conv")
    if is_conv:
        axes = roles(node)[1][1:]
    elif node.name == "dot":
        axes = [0]
    else:
        axes = node.axes_of("dot").list("rhs_contracting_dimensions")
    taps = product([dims[axis] for axis in axes]).value
    most = left.farthest * right.farthest * (MOST_TAPS if taps is None else taps)
    fits = [each for each in ("f32" if is_conv else "i32", "f64") if most < LIMITS[each]]
    return fits[0] if fits else None


# Reductions and scatters.


@of_quantized("reduce", "reduce_window", "scatter", "select_and_scatter")
def accumulated(node: Node) -> tuple[Value, ...]:
    """An op on operands of the types that its last region has for those of its arguments.

    Sums are of integers less zero points, and have the bounds of their type when they are complete.
    """
    *selections, block = node.regions
    for selection in selections:
        _require_same(_types(node.op.operands[:1]) * 2, _types(selection.arguments))
    arguments = _types(block.arguments)
    count = len(arguments) // 2
    kinds = arguments[:count]
    _require_same(kinds, arguments[count:])
    _require_same(kinds, _types(returned(block)))
    by = [quantization_of(kind) for kind in kinds]
    names = reducers(block) or [""] * count
    if node.name == "reduce" and not node.integers("dimensions"):  # which runs the region
        names = [""] * count
    sums = [q is not None and name == "add" for q, name in zip(by, names, strict=True)]
    operands = list(node.operands)
    for index, argument in accumulators(node).items():
        to, given = by[argument], node.operand_kinds[index].quantization
        if (to is None) != (given is None):
            raise ModelError(f"passes {node.op.operands[index].type} as {kinds[argument]}")
        if given != to:
            operands[index] = converted(node.importer.tensor(operands[index]), given, to)
        if to is not None and sums[argument]:
            operands[index] = _centred(node, operands[index], to)
    elements = [
        "i64" if is_sum else q.storage if q else kind.element
        for is_sum, q, kind in zip(sums, by, node.results, strict=True)
    ]
    made = _function_of(node)(node.of_values(operands, elements))
    values = made if isinstance(made, tuple) else (made,)
    return tuple(_result(node, *each) for each in zip(values, by, sums, node.results, strict=True))


def _centred(node: Node, value: Value, by: Quantization) -> Value:
    if isinstance(value, Known):
        return centred_known(value, by)
    return centred(node.importer.tensor(value), by, "i64")


def _result(
    node: Node, value: Value, by: Quantization | None, is_sum: bool, kind: Declared
) -> Value:
    """An accumulated value in the type of the result."""
    if by is None or kind.quantization is None:
        return value
    x = node.importer.tensor(value)
    return converted(from_centred(x, by) if is_sum else x, by, kind.quantization)
