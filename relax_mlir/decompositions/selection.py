"""Selections by truth values, whose sizes depend on data, and of the middle in order."""

from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import RequireOp, ShapeError, dims_equal
from relax_mlir.symbolic import Fact, product

from .emit import (
    astype,
    binary,
    broadcast_to,
    dims_of,
    element_of,
    emit,
    permute,
    rank_of,
    reduce,
    reshape,
    scalar,
    subtract,
    symbol,
    where,
)


def compress(x: ir.Value, condition: ir.Value, *, axis: int | None = None) -> ir.Value:
    """The slices along an axis at which the condition, an i1 of rank 1, is true.

    Without an axis the elements of what is flattened. The condition may be shorter than the axis,
    but not longer. Source: ONNX `Compress`; NumPy `compress`.
    """
    _require_truth(condition)
    if rank_of(condition) != 1:
        raise ShapeError(f"expects a condition of rank 1, but got rank {rank_of(condition)}")
    source = reshape(x, [product(dims_of(x))]) if axis is None else x
    along = 0 if axis is None else graph.normalize_axis(axis, rank_of(x))
    (count,), extent = dims_of(condition), dims_of(source)[along]
    if count.value is not None and extent.value is not None and count.value > extent.value:
        raise ShapeError(f"has a condition of {count} for {extent} slices")
    if not dims_equal(count, extent):
        RequireOp.build([Fact(count, "<=", extent)], "compress")
    return emit(graph.TakeOp, source, _where(condition), axis=along)


def masked_select(x: ir.Value, mask: ir.Value) -> ir.Value:
    """The elements at which the mask, an i1, is true, in row-major order; both broadcast.

    Source: ATen `masked_select`; TVM `relax.masked_select`, of ONNX frontends.
    """
    _require_truth(mask)
    dims = graph.exact_dims(graph.broadcast(dims_of(x), dims_of(mask)))
    return index_by_mask(broadcast_to(x, dims), broadcast_to(mask, dims))


def masked_scatter(x: ir.Value, mask: ir.Value, source: ir.Value) -> ir.Value:
    """The tensor with elements of `source`, in order, where the mask, an i1, is true.

    The mask broadcasts to x. A call ends with an error if the source has too few elements. Source:
    ATen `masked_scatter`.
    """
    _require_truth(mask)
    if element_of(source) != element_of(x):
        raise ShapeError(f"expects a source of {element_of(x)}, but got {element_of(source)}")
    dims, i64 = dims_of(x), ir.IntegerType.get_signless(64)
    total, count = product(dims), product(dims_of(source))
    flat = reshape(broadcast_to(mask, dims), [total])
    order = astype(flat, i64)
    enough = binary(
        graph.LessEqualOp, reduce(graph.SumOp, order, [0]), reshape(symbol(count, i64), [])
    )
    graph.AssertOp.build(enough, "masked_scatter has too few elements for its mask")
    if count.value == 0:
        return x
    index = subtract(emit(graph.CumsumOp, order, axis=0, exclusive=False, reverse=False), 1)
    flat_source = reshape(source, [count])
    if count.value is None:  # an element at least is taken, even of an empty source
        one = broadcast_to(scalar(0, element_of(x)), [1])
        flat_source = graph.ConcatOp.build(flat_source, one, axis=0).operation.results[0]
    values = emit(graph.TakeOp, flat_source, index, axis=0)
    return reshape(where(flat, values, reshape(x, [total])), dims)


def index_by_mask(x: ir.Value, mask: ir.Value) -> ir.Value:
    """The slices at which the mask, an i1 of the leading dims, is true: `x[mask]` of NumPy.

    Source: array API 2023.12, indexing by a boolean array; ATen `index`.
    """
    _require_truth(mask)
    rank, dims = rank_of(mask), dims_of(x)
    if rank > len(dims):
        raise ShapeError(f"has a mask of rank {rank} for a tensor of rank {len(dims)}")
    for axis, (own, other) in enumerate(zip(dims, dims_of(mask))):
        if graph.types.dims_differ(own, other):
            raise ShapeError(f"has a mask with dim {axis} of {other} for one of {own}")
        if not dims_equal(own, other):
            RequireOp.build([Fact(own, "==", other)], "index_by_mask")
    flat = reshape(x, [product(dims[:rank]), *dims[rank:]])
    mask = reshape(mask, [product(dims_of(mask))])
    return emit(graph.TakeOp, flat, _where(mask), axis=0)


def argwhere(x: ir.Value) -> ir.Value:
    """The indices of the elements that are not 0, a row for each: `nonzero` transposed.

    Source: NumPy `argwhere`; ATen `nonzero`.
    """
    if rank_of(x) == 0:
        raise ShapeError("expects a tensor of rank 1 or more")
    return permute(emit(graph.NonzeroOp, x), [1, 0])


def _require_truth(mask: ir.Value) -> None:
    if str(element_of(mask)) != "i1":
        raise ShapeError(f"expects truth values, but got {element_of(mask)}")


def _where(condition: ir.Value) -> ir.Value:
    """The indices at which a vector is true."""
    return emit(graph.SqueezeOp, emit(graph.NonzeroOp, condition), axes=[0])


def median(
    x: ir.Value, *, axes: Sequence[int] | None = None, keepdims: bool = False
) -> tuple[ir.Value, ir.Value]:
    """The element in the middle of those in order, and its index along the axes, as i64.

    Of an even count the lower one of two; NaN are greater than all else. Without axes of all
    elements; of several axes the index is that in their row-major order. There is an element at
    least. Source: ATen `median`; TVM `relax.median`.
    """
    dims = dims_of(x)
    along = sorted({graph.normalize_axis(a, len(dims)) for a in axes or range(len(dims))})
    others = [axis for axis in range(len(dims)) if axis not in along]
    count = product([dims[axis] for axis in along])
    lines = reshape(permute(x, [*others, *along]), [*(dims[axis] for axis in others), count])
    middle, last = (count - 1) // 2, len(others)
    if count.value == 0:
        raise ShapeError("expects an element at least")
    one = {"axes": [last], "begin": [middle], "end": [middle + 1], "strides": [1]}
    reduced = [1 if axis in along else dim for axis, dim in enumerate(dims)]
    shape = reduced if keepdims else [dims[axis] for axis in others]
    values, indices = (
        reshape(emit(graph.StridedSliceOp, part, **one), shape)
        for part in graph.SortOp.build(lines, axis=-1, descending=False).operation.results
    )
    return values, indices
