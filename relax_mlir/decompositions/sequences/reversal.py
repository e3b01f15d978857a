"""Sequences of several lengths in reverse: reverse_sequence."""

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError, dims_differ, normalize_axis

from ..emit import (
    arange,
    astype,
    dims_of,
    element_of,
    emit,
    expand_dims,
    is_integer,
    less,
    minimum,
    permute,
    rank_of,
    subtract,
    symbol,
    where,
    with_dims,
)


def reverse_sequence(
    x: ir.Value, lengths: ir.Value, *, time_axis: int = 0, batch_axis: int = 1
) -> ir.Value:
    """The first elements of each sequence in reverse, as many as its length; the others stay.

    Source: ONNX `ReverseSequence`; TVM `relax.reverse_sequence`.
    """
    rank = rank_of(x)
    time, batch = normalize_axis(time_axis, rank), normalize_axis(batch_axis, rank)
    if time == batch:
        raise ShapeError(f"expects two axes, but got {time_axis} and {batch_axis}")
    if not is_integer(element_of(lengths)) or rank_of(lengths) != 1:
        raise ShapeError(f"expects lengths in a vector, but got '{graph.TensorType.of(lengths)}'")
    if dims_differ(dims_of(lengths)[0], dims_of(x)[batch]):
        raise ShapeError(f"expects {dims_of(x)[batch]} lengths, but got {dims_of(lengths)[0]}")
    order = [batch, time, *(i for i in range(rank) if i not in (batch, time))]
    ordered = permute(x, order)
    n, t = dims_of(ordered)[:2]
    i64 = ir.IntegerType.get_signless(64)
    steps = expand_dims(arange(0, t, 1, i64), [0])
    ends = minimum(expand_dims(with_dims(astype(lengths, i64), [n]), [1]), symbol(t, i64))
    sources = where(less(steps, ends), subtract(subtract(ends, 1), steps), steps)
    picked = emit(graph.GatherNdOp, ordered, expand_dims(sources, [2]), batch_dims=1)
    return permute(picked, [order.index(i) for i in range(rank)])
