"""Rows written to caches, where each batch is at another position: tensor_scatter."""

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError, dims_differ, normalize_axis

from ..emit import (
    add,
    arange,
    astype,
    binary,
    broadcast_to,
    dims_of,
    element_of,
    emit,
    expand_dims,
    is_integer,
    permute,
    rank_of,
    symbol,
    with_dims,
)


def tensor_scatter(
    cache: ir.Value,
    update: ir.Value,
    starts: ir.Value | None = None,
    *,
    axis: int = -2,
    circular: bool = False,
) -> ir.Value:
    """The cache [b, ...] with the update from the start of each batch on, along an axis.

    Without `starts`, of rank 1, it is from 0 on. What leaves the cache comes in at its beginning if
    it is circular, and is left out else. Source: ONNX `TensorScatter`.
    """
    rank = rank_of(cache)
    position = normalize_axis(axis, rank)
    if position == 0 or rank_of(update) != rank or element_of(update) != element_of(cache):
        raise ShapeError(f"writes '{_type(update)}' to '{_type(cache)}' along axis {axis}")
    for i, (dim, other) in enumerate(zip(dims_of(cache), dims_of(update))):
        if i != position and dims_differ(dim, other):
            raise ShapeError(f"writes dim {i} of {other} to one of {dim}")
    order = [0, position, *(i for i in range(1, rank) if i != position)]
    rows, new = permute(cache, order), permute(update, order)
    b, size = dims_of(rows)[:2]
    count = dims_of(new)[1]
    i64 = ir.IntegerType.get_signless(64)
    at = expand_dims(arange(0, count, 1, i64), [0])
    if starts is not None:
        if rank_of(starts) != 1 or not is_integer(element_of(starts)):
            raise ShapeError(f"expects a vector of starts, but got '{_type(starts)}'")
        at = add(expand_dims(with_dims(astype(starts, i64), [b]), [1]), at)
    if circular:
        at = binary(graph.RemainderOp, at, symbol(size, i64))
    at = broadcast_to(at, [b, count])
    batches = broadcast_to(expand_dims(arange(0, b, 1, i64), [1]), [b, count])
    indices = graph.StackOp.build(batches, at, axis=2).operation.results[0]
    new = with_dims(new, [b, count, *dims_of(rows)[2:]])
    written = emit(graph.ScatterNdOp, rows, indices, new, reduction="none")
    return permute(written, [order.index(i) for i in range(rank)])


def _type(value: ir.Value) -> graph.TensorType:
    return graph.TensorType.of(value)
