"""Pooling to a given size, by windows that differ in length by one at most.

Window i of m begins at i * n floordiv m, and ends in front of (i + 1) * n ceildiv m.
"""

from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError, dims_equal
from relax_mlir.symbolic import Expr

from .emit import (
    add,
    arange,
    astype,
    dims_of,
    divide,
    element_of,
    emit,
    expand_dims,
    floor_divide,
    least,
    less,
    multiply,
    reduce,
    reshape,
    subtract,
    symbol,
    where,
    widen,
)


def adaptive_avg_pool(x: ir.Value, sizes: Sequence[int | None]) -> ir.Value:
    """The mean of each window; an axis without a size stays.

    Source: ATen `adaptive_avg_pool2d`, of any spatial dims.
    """
    _check(x, sizes)
    result = widen(x)
    for axis, size in enumerate(sizes, 2):
        if size is not None:
            result = _pool(result, axis, size, graph.MeanOp)
    return astype(result, element_of(x))


def adaptive_max_pool(x: ir.Value, sizes: Sequence[int | None]) -> ir.Value:
    """The maximum of each window; an axis without a size stays.

    Source: ATen `adaptive_max_pool2d`, of any spatial dims.
    """
    _check(x, sizes)
    for axis, size in enumerate(sizes, 2):
        if size is not None:
            x = _pool(x, axis, size, graph.MaxOp)
    return x


def _check(x: ir.Value, sizes: Sequence[int | None]) -> None:
    rank = len(dims_of(x))
    if len(sizes) != rank - 2 or not sizes or any(size is not None and size < 1 for size in sizes):
        raise ShapeError(f"expects {rank - 2} positive sizes, but got {list(sizes)}")


def _pool(x: ir.Value, axis: int, size: int, op: type[graph.InferredOp]) -> ir.Value:
    """Windows of one length are a dim of their own; others are picked and masked."""
    dims = list(dims_of(x))
    dim = dims[axis]
    if size == 1:
        return reduce(op, x, [axis], keepdims=True)
    if dims_equal(dim, dim // size * size):
        split = reshape(x, [*dims[:axis], size, dim // size, *dims[axis + 1 :]])
        return reduce(op, split, [axis + 1])
    i64 = ir.IntegerType.get_signless(64)
    starts = floor_divide(_multiples(0, size, dim), size)
    ends = floor_divide(add(_multiples(1, size, dim), size - 1), size)
    longest = (dim + size - 1) // size + 1
    indices = add(expand_dims(starts, [1]), arange(0, longest, 1, i64))
    inside = less(indices, expand_dims(ends, [1]))
    parts = emit(graph.TakeOp, x, indices, axis=axis)
    trailing = range(2, len(dims) - axis + 1)
    present = expand_dims(inside, list(trailing))
    if op is graph.MaxOp:
        return reduce(op, where(present, parts, least(element_of(x))), [axis + 1])
    sums = reduce(graph.SumOp, where(present, parts, 0), [axis + 1])
    lengths = astype(subtract(ends, starts), element_of(x))
    return divide(sums, expand_dims(lengths, list(range(1, len(dims) - axis))))


def _multiples(first: int, size: int, dim: Expr) -> ir.Value:
    """`dim` times each integer from `first`, as many as there are windows."""
    i64 = ir.IntegerType.get_signless(64)
    return multiply(arange(first, size, 1, i64), symbol(dim, i64))
