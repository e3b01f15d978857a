"""Gradients of operators that pick elements: they are added where these came from.

Indices are clamped as the operators do; an element that was picked several times gets the sum.
"""

from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    arange,
    astype,
    broadcast_to,
    dims_of,
    element_of,
    emit,
    expand_dims,
    maximum,
    minimum,
    rank_of,
    reduce,
    reshape,
    scalar,
    symbol,
)
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import normalize_axis
from relax_mlir.gradients.reverse import Adjoint, Contributions
from relax_mlir.gradients.shapes import zeros_like
from relax_mlir.symbolic import Expr


def _i64() -> ir.Type:
    return ir.IntegerType.get_signless(64)


def clamped(indices: ir.Value, extent: Expr) -> ir.Value:
    """Indices that lie in an axis, as i64."""
    last = symbol(extent - 1, _i64())
    if not rank_of(indices):
        last = reshape(last, [])
    if element_of(indices) == ir.IntegerType.get_unsigned(64):  # i64 has not all of them
        indices = minimum(indices, (1 << 63) - 1)
    return minimum(maximum(astype(indices, _i64()), 0), last)


def add_at(
    value: ir.Value, indices: Sequence[ir.Value], axes: Sequence[int], dims: Sequence[Expr]
) -> ir.Value:
    """Zeros of the given dims with a value added to what indices of some axes name."""
    zeros = emit(graph.FullOp, scalar(0, element_of(value)), shape=dims)
    built = graph.IndexPutOp.build(zeros, value, *indices, axes=list(axes), reduction="add")
    return built.outs[0]


def take(op: graph.TakeOp, adjoint: Adjoint) -> Contributions:
    """Each slice is added to the one that it is."""
    dims = dims_of(op.input)
    axis = normalize_axis(op.attributes["axis"].value, len(dims))
    yield op.input, add_at(adjoint.seed, [clamped(op.indices, dims[axis])], [axis], dims)


def index_tensor(op: graph.IndexTensorOp, adjoint: Adjoint) -> Contributions:
    """Each element is added where the indices say."""
    input, *indices = op.ins
    dims = dims_of(input)
    axes = [normalize_axis(axis, len(dims)) for axis in op.attributes["axes"]]
    inside = [clamped(each, dims[axis]) for each, axis in zip(indices, axes, strict=True)]
    yield input, add_at(adjoint.seed, inside, axes, dims)


def gather_elements(op: graph.GatherElementsOp, adjoint: Adjoint) -> Contributions:
    """Each element is added where its index says."""
    axis = normalize_axis(op.attributes["axis"].value, rank_of(op.input))
    yield (
        op.input,
        emit(
            graph.ScatterElementsOp,
            zeros_like(op.input),
            clamped(op.indices, dims_of(op.input)[axis]),
            adjoint.seed,
            axis=axis,
            reduction="add",
        ),
    )


def gather_nd(op: graph.GatherNdOp, adjoint: Adjoint) -> Contributions:
    """Each slice is added where its tuple of indices says."""
    tuples = whole_tuples(op)
    if tuples is None:
        yield op.input, reduce(graph.SumOp, adjoint.seed, list(range(rank_of(op.indices) - 1)))
    else:
        zeros = zeros_like(op.input)
        yield op.input, emit(graph.ScatterNdOp, zeros, tuples, adjoint.seed, reduction="add")


def whole_tuples(op: graph.GatherNdOp) -> ir.Value | None:
    """Indices of all axes in front of the slices, batch dims too; None if there is no such axis."""
    dims, (*outer, length) = dims_of(op.input), dims_of(op.indices)
    batch, count = op.attributes["batch_dims"].value, length.value
    assert count is not None  # a constraint of the operator
    parts = []
    for axis in range(batch):
        along = [i for i in range(len(outer) + 1) if i != axis]
        index = expand_dims(arange(0, outer[axis], 1, _i64()), along)
        parts.append(broadcast_to(index, [*outer, 1]))
    if count:
        parts.append(clamped_tuples(op.indices, dims[batch : batch + count]))
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else _concat(parts, len(outer))


def clamped_tuples(indices: ir.Value, extents: Sequence[Expr]) -> ir.Value:
    """Tuples of indices that lie in the axes of the given extents."""
    last = [reshape(symbol(extent - 1, _i64()), [1]) for extent in extents]
    most = last[0] if len(last) == 1 else _concat(last, 0)
    return minimum(maximum(astype(indices, _i64()), 0), most)


def _concat(parts: Sequence[ir.Value], axis: int) -> ir.Value:
    return graph.ConcatOp.build(*parts, axis=axis).outs[0]
