"""Ops that move elements: broadcasts, reshapes, slices, pads, concatenations, ramps."""

from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    arange,
    astype,
    broadcast_to,
    concat,
    dims_of,
    emit,
    expand_dims,
    minimum,
    permute,
    reshape,
    scalar,
)
from relax_mlir.dialects import graph
from relax_mlir.errors import ModelError
from relax_mlir.symbolic import Expr, as_expr, at_most, const

from ...complex import Pair
from ...elements import mlir_element
from ...known import Known, known
from ..node import Node
from ..registry import Value, operator
from ..types import constant


@operator("constant", elementwise=True, takes_pairs=True)
def constant_(node: Node) -> Value:
    """Known elements; both parts of complex ones."""
    parts = constant(node.op, node.result)
    return Pair(*parts) if len(parts) == 2 else parts[0]  # type: ignore[arg-type]


@operator("broadcast_in_dim", by_part=True, elementwise=True)
def broadcast_in_dim(node: Node) -> ir.Value:
    """Dims repeated, at given axes of the result."""
    if node.scope.lifted:
        return node.tensor(0)
    target = [const(dim) for dim in node.static_dims()]
    return spread(node.tensor(0), target, node.integers("broadcast_dimensions"))


@operator("dynamic_broadcast_in_dim", by_part=True)
def dynamic_broadcast_in_dim(node: Node) -> ir.Value:
    """Dims repeated to those that an operand has."""
    target = node.exprs(1, "output dimensions")
    return spread(node.tensor(0), target, node.integers("broadcast_dimensions"))


def spread(x: ir.Value, target: Sequence[Expr], axes: Sequence[int]) -> ir.Value:
    """A tensor whose dims are at some axes of the result, repeated to its dims."""
    x = permute(x, sorted(range(len(axes)), key=lambda i: axes[i]))
    x = expand_dims(x, [i for i in range(len(target)) if i not in axes])
    if dims_of(x) == tuple(target):
        return x
    return broadcast_to(x, list(target))


@operator("broadcast", by_part=True)
def broadcast(node: Node) -> ir.Value:
    """New leading dims."""
    return broadcast_to(node.tensor(0), [*node.integers("broadcast_sizes"), *node.dims()])


@operator("reshape", by_part=True, elementwise=True)
def reshape_(node: Node) -> ir.Value:
    """The elements under other dims, which are constants."""
    return node.tensor(0) if node.scope.lifted else reshape(node.tensor(0), node.static_dims())


@operator("dynamic_reshape", by_part=True)
def dynamic_reshape(node: Node) -> ir.Value:
    """The elements under the dims that an operand has."""
    return reshape(node.tensor(0), node.exprs(1, "an output shape"))


@operator("transpose", by_part=True)
def transpose(node: Node) -> ir.Value:
    """The axes in another order."""
    return permute(node.tensor(0), node.integers("permutation"))


@operator("concatenate", by_part=True)
def concatenate(node: Node) -> ir.Value:
    """Tensors in a row along an axis."""
    return concat(node.tensors(), node.integer("dimension"))


@operator("reverse", by_part=True)
def reverse(node: Node) -> ir.Value:
    """Axes from their end."""
    axes = node.integers("dimensions")
    return emit(graph.FlipOp, node.tensor(0), axes=axes) if axes else node.tensor(0)


@operator("slice", by_part=True)
def slice_(node: Node) -> ir.Value:
    """Parts of all axes, between constants."""
    names = ("start_indices", "limit_indices", "strides")
    return sliced(node.tensor(0), *(node.integers(name) for name in names))


@operator("real_dynamic_slice", by_part=True)
def real_dynamic_slice(node: Node) -> ir.Value:
    """Parts of all axes, between what operands have."""
    start, limit = (node.exprs(i, "bounds") for i in (1, 2))
    return sliced(node.tensor(0), start, limit, node.constants(3, "strides"))


def sliced(
    x: ir.Value,
    start: Sequence[Expr | int],
    limit: Sequence[Expr | int],
    strides: Sequence[int],
) -> ir.Value:
    """Every `stride`th element of each axis from `start` on and below `limit`."""
    dims = dims_of(x)
    partial = [
        i
        for i, dim in enumerate(dims)
        if (start[i], strides[i]) != (0, 1) or (limit[i] != dim and const(0) + limit[i] != dim)
    ]
    if not partial:
        return x
    bounds = {
        "begin": [start[i] for i in partial],
        "end": [limit[i] for i in partial],
        "strides": [strides[i] for i in partial],
    }
    return emit(graph.StridedSliceOp, x, axes=partial, **bounds)


@operator("dynamic_slice", by_part=True)
def dynamic_slice(node: Node) -> ir.Value:
    """A part of constant extents; what would leave the tensor begins earlier, or later."""
    x, sizes = node.tensor(0), node.integers("slice_sizes")
    if not sizes:
        return x
    starts = [node.value(1 + i) for i in range(len(sizes))]
    if all(isinstance(each, Known) for each in starts):
        begins = [each.exprs[0] for each in starts if isinstance(each, Known)]
        ends = [begin + size for begin, size in zip(begins, sizes)]
        pairs = zip(begins, ends, dims_of(x))
        facts = node.importer.facts
        if all(at_most(0, b, facts).proved and at_most(e, d, facts).proved for b, e, d in pairs):
            return sliced(x, begins, ends, [1] * len(sizes))
    return emit(graph.DynamicSliceOp, x, starts_of(node, 1), sizes=sizes)


def starts_of(node: Node, first: int) -> ir.Value:
    """Operands that are an index each, in a vector of i64."""
    return concat([reshape(as_index(each), [1]) for each in node.tensors(first)], 0)


def as_index(x: ir.Value) -> ir.Value:
    """Integers as i64; those above its values are its greatest."""
    if str(graph.TensorType.of(x).element) == "ui64":
        x = minimum(x, (1 << 63) - 1)
    return astype(x, ir.IntegerType.get_signless(64))


@operator("dynamic_update_slice", by_part=True)
def dynamic_update_slice(node: Node) -> ir.Value:
    """The tensor with a part replaced."""
    x, updates = node.tensor(0), node.tensor(1)
    if not node.rank():
        return updates
    return emit(graph.DynamicUpdateSliceOp, x, updates, starts_of(node, 2))


@operator("pad", by_part=True)
def pad(node: Node) -> ir.Value:
    """Elements around and between those of a tensor, constant counts of them."""
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    low, high, interior = (node.integers(name) for name in names)
    return padded(node.tensor(0), node.tensor(1), low, high, interior)


@operator("dynamic_pad", by_part=True)
def dynamic_pad(node: Node) -> ir.Value:
    """Elements around and between those of a tensor, as many as operands have."""
    low, high = (node.exprs(i, "padding") for i in (2, 3))
    interior = node.constants(4, "interior padding")
    return padded(node.tensor(0), node.tensor(1), low, high, interior)


def padded(
    x: ir.Value,
    value: ir.Value,
    low: Sequence[Expr | int],
    high: Sequence[Expr | int],
    interior: Sequence[int],
) -> ir.Value:
    """A tensor with elements in front of each axis, after it, and between neighbours."""
    if all(as_expr(each).value == 0 for each in (*low, *high, *interior)):
        return x
    widths = {"low": list(low), "high": list(high), "interior": list(interior)}
    return emit(graph.PadOp, x, value, mode="constant", **widths)


@operator("iota", takes_pairs=True)
def iota(node: Node) -> Value:
    """Each element is its index along an axis."""
    dims = [const(dim) for dim in node.static_dims()]
    return _ramp(node, dims)


@operator("dynamic_iota", takes_pairs=True)
def dynamic_iota(node: Node) -> Value:
    """Each element is its index along an axis; an operand has the dims."""
    return _ramp(node, node.exprs(0, "an output shape"))


def _ramp(node: Node, dims: Sequence[Expr]) -> Value:
    axis, element = node.integer("iota_dimension"), node.result_element
    if str(element) == "i1":
        raise ModelError("has truth values, of which it is not supported")
    line = _line(dims[axis], element)
    result = spread(line, list(dims), [axis])
    if not node.result.is_complex:
        return result
    return Pair(result, broadcast_to(scalar(0, element), list(dims)))


def _line(count: Expr, element: ir.Type) -> ir.Value:
    """The integers from 0 on, in a type; floats are converted from integers that are exact."""
    if isinstance(element, ir.FloatType) or str(element).startswith("ui"):
        return astype(arange(0, count, 1, mlir_element("i64")), element)
    return arange(0, count, 1, element)


@operator("get_dimension_size")
def get_dimension_size(node: Node) -> Value:
    """A dim, which is known as an expression."""
    return known(node.dims()[node.integer("dimension")], node.result.element)


@operator("set_dimension_size")
def set_dimension_size(node: Node) -> Value:
    """A tensor with a bound; the first elements of an axis, as many as an operand says."""
    (size,), axis = node.exprs(1, "a size"), node.integer("dimension")
    dims = node.dims()
    limits = [size if i == axis else dim for i, dim in enumerate(dims)]
    return sliced(node.tensor(0), [0] * len(dims), limits, [1] * len(dims))
