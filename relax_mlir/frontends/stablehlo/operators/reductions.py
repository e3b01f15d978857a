"""Reductions: reduce, map."""

from collections.abc import Callable

import numpy as np

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import element_of, emit, reduce, reshape
from relax_mlir.dialects import graph

from ...complex import Pair
from ...known import Known
from ..bodies import Names, expression, lifted, promoted, reducers, returned
from ..folds import combiner, folded
from ..node import Node
from ..registry import Value, operator
from .elementwise import BINARY, LOGIC, is_bool

REDUCTIONS: dict[str, type[graph.InferredOp]] = {
    "add": graph.SumOp,
    "maximum": graph.MaxOp,
    "minimum": graph.MinOp,
    "multiply": graph.ProdOp,
}
"""Of the functions that combine two elements."""

OF_TRUTHS: dict[str, type[graph.InferredOp]] = {
    **dict.fromkeys(("add", "maximum", "or"), graph.AnyOp),
    **dict.fromkeys(("and", "minimum", "multiply"), graph.AllOp),
}

_NEUTRAL = {"add": 0, "multiply": 1, "maximum": float("-inf"), "minimum": float("inf")}
"""Of each function the value that leaves the other one as it is."""


def reduction_of(name: str, is_truth: bool) -> type[graph.InferredOp] | None:
    """The reduction by a function of two elements; None if there is none."""
    return (OF_TRUTHS if is_truth else REDUCTIONS).get(name)


def is_neutral(name: str, init: Value) -> bool:
    """Whether an initial value is known to leave what elements come to as it is."""
    if not isinstance(init, Known) or init.is_symbolic or init.element.startswith("f8"):
        return False
    value = init.array.item()
    if init.element == "bf16":
        value = np.uint32(value << 16).view(np.float32)
    return name in _NEUTRAL and bool(value == _NEUTRAL[name])


def combined(name: str, init: Value, x: ir.Value, node: Node) -> ir.Value:
    """An initial value and what elements come to; the latter alone if the former adds nothing."""
    if is_neutral(name, init):
        return x
    op = (LOGIC if is_bool(x) else BINARY)[name]
    return emit(op, reshape(node.importer.tensor(init), []), x)


@operator("reduce", takes_pairs=True)
def reduce_(node: Node) -> tuple[Value, ...]:
    """What elements come to along some axes, by the function of a region."""
    node, count = promoted(node), len(node.operands) // 2
    values, inits = node.operands[:count], node.operands[count:]
    axes = node.integers("dimensions")
    if not axes:
        combine = combiner(node.scope, node.regions[0])
        return tuple(combine(list(map(_own(node), inits)), list(map(_own(node), values))))
    positions = _positions(node, axes)
    if positions is not None:
        return positions
    known = reducers(node.regions[0])
    if known is not None and all(map(_is_reduction(node), known, values)):
        results = zip(known, values, inits, strict=True)
        return tuple(_reduced(node, *each, axes) for each in results)
    return tuple(folded(node.scope, values, inits, axes, combiner(node.scope, node.regions[0])))


def _own(node: Node) -> Callable[[Value], Value]:
    return lambda value: value if isinstance(value, Pair) else node.importer.tensor(value)


def _is_reduction(node: Node) -> Callable[[str, Value], bool]:
    def known(name: str, value: Value) -> bool:
        if isinstance(value, Pair):
            return name == "add"
        return reduction_of(name, is_bool(node.importer.tensor(value))) is not None

    return known


def _reduced(node: Node, name: str, value: Value, init: Value, axes: list[int]) -> Value:
    if isinstance(value, Pair):
        assert isinstance(init, Pair)
        parts = zip(value.parts, init.parts, strict=True)
        return Pair(*(_reduced_part(node, name, x, i, axes) for x, i in parts))
    return _reduced_part(node, name, node.importer.tensor(value), init, axes)


def _reduced_part(node: Node, name: str, x: ir.Value, init: Value, axes: list[int]) -> ir.Value:
    op = reduction_of(name, is_bool(x))
    assert op is not None
    return combined(name, init, reduce(op, x, axes), node)


# Positions of the greatest or the least element, as JAX writes them.


def _picks(relation: str) -> tuple[str, str]:
    """The texts of what is yielded: the better of two elements, and its index."""
    better = f"compare {relation}(x, y), compare NE(x, x)"
    first = "and(compare EQ(x, y), compare LT(i, j))"
    return f"select(or({better}), x, y)", f"select(or(or({better}), {first}), i, j)"


_ARGS: dict[tuple[str, ...], type[graph.InferredOp]] = {
    _picks("GT"): graph.ArgmaxOp,
    _picks("LT"): graph.ArgminOp,
}
_OPS: dict[type[graph.InferredOp], type[graph.InferredOp]] = {
    graph.ArgmaxOp: graph.MaxOp,
    graph.ArgminOp: graph.MinOp,
}


def _positions(node: Node, axes: list[int]) -> tuple[Value, ...] | None:
    """The greatest or least elements and where they are; None if the region does not say that."""
    block = node.regions[0]
    if len(block.arguments) != 4 or len(axes) != 1 or isinstance(node.value(0), Pair):
        return None
    names: Names = dict(zip(block.arguments, "xiyj", strict=True))
    op = _ARGS.get(tuple(expression(each, block, names) for each in returned(block)))
    if op is None or not _is_ramp(node.op.operands[1], axes[0]) or not _are_least(node, op):
        return None
    x = node.tensor(0)
    dims = node.dims()
    if is_bool(x) or dims[axes[0]].value == 0:
        return None
    position = emit(op, x, axis=axes[0], keepdims=False)
    element = element_of(node.tensor(1))
    return reduce(_OPS[op], x, axes), emit(graph.AstypeOp, position, dtype=element)


def _is_ramp(value: ir.Value, axis: int) -> bool:
    """Whether elements are their own indices along an axis."""
    if isinstance(value.owner, ir.Block):
        return False
    op = value.owner.operation
    is_ramp = op.name in ("stablehlo.iota", "stablehlo.dynamic_iota")
    return is_ramp and ir.IntegerAttr(op.attributes["iota_dimension"]).value == axis


def _are_least(node: Node, op: type[graph.InferredOp]) -> bool:
    """Whether initial values are below, or above, all elements, and the index 0."""
    value, index = node.known(2), node.known(3)
    if value is None or index is None or value.element not in ("f32", "f64", "f16"):
        return False
    worst = float("-inf") if op is graph.ArgmaxOp else float("inf")
    return value.array.item() == worst and index.array.item() == 0


@operator("map", takes_pairs=True)
def map_(node: Node) -> tuple[Value, ...]:
    """A region of each element."""
    return tuple(lifted(node.scope, node.regions[0], node.operands, node.dims()))
