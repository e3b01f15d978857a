"""Pooling to a given size, by windows that differ in length by one at most.

Window i of m begins at i * n floordiv m, and ends in front of (i + 1) * n ceildiv m.
"""

from collections.abc import Sequence
from typing import TypeAlias

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import Dim, RequireOp, ShapeError, dims_equal
from relax_mlir.dialects.graph.types import as_dims
from relax_mlir.symbolic import Expr, Fact, at_most, const

from .emit import (
    add,
    arange,
    astype,
    broadcast_to,
    dims_of,
    divide,
    element_of,
    emit,
    expand_dims,
    floor_divide,
    least,
    less,
    multiply,
    rank_of,
    reduce,
    reshape,
    scalar,
    subtract,
    symbol,
    where,
    widen,
)

Size: TypeAlias = Dim | int | str | None


def adaptive_avg_pool(x: ir.Value, sizes: Sequence[Size]) -> ir.Value:
    """The mean of each window; an axis without a size stays.

    Source: ATen `adaptive_avg_pool2d`, of any spatial dims.
    """
    result = widen(x)
    for axis, size in enumerate(_known(x, sizes), 2):
        if size is not None:
            result = _pool(result, axis, size, graph.MeanOp)
    return astype(result, element_of(x))


def adaptive_max_pool(x: ir.Value, sizes: Sequence[Size]) -> ir.Value:
    """The maximum of each window; an axis without a size stays.

    Source: ATen `adaptive_max_pool2d`, of any spatial dims.
    """
    for axis, size in enumerate(_known(x, sizes), 2):
        if size is not None:
            x = _pool(x, axis, size, graph.MaxOp)
    return x


def adaptive_max_pool_with_indices(x: ir.Value, sizes: Sequence[Size]) -> tuple[ir.Value, ir.Value]:
    """The maximum of each window, and where in the spatial dims as a line it is first, as i64.

    Source: ATen `adaptive_max_pool2d`, of any spatial dims.
    """
    wanted = _known(x, sizes)
    i64, rank, stride = ir.IntegerType.get_signless(64), rank_of(x), const(1)
    positions = broadcast_to(scalar(0, i64), dims_of(x))
    for axis, dim in reversed(list(enumerate(dims_of(x)))[2:]):
        size = wanted[axis - 2]
        own = _aligned(arange(0, dim, 1, i64), axis, rank)
        if size is not None:
            starts, ends, indices = _windows(dim, size)
            parts = _parts(x, axis, ends, indices, least(element_of(x)))
            x = reduce(graph.MaxOp, parts, [axis + 1])
            first = emit(graph.ArgmaxOp, parts, axis=axis + 1, keepdims=True)
            taken = emit(graph.TakeOp, positions, indices, axis=axis)
            taken = emit(graph.GatherElementsOp, taken, first, axis=axis + 1)
            positions, own = (emit(graph.SqueezeOp, v, axes=[axis + 1]) for v in (taken, first))
            own = add(own, _aligned(starts, axis, rank))
        positions = add(positions, multiply(own, symbol(stride, i64)))
        stride = stride * dim
    return x, positions


def _known(x: ir.Value, sizes: Sequence[Size]) -> list[Expr | None]:
    """Sizes as expressions; refused unless there is one for each spatial dim, of 1 or more."""
    rank = len(dims_of(x))
    own = [None if size is None else graph.exact_dims(as_dims([size]))[0] for size in sizes]
    known = [size.value for size in own if size is not None and size.value is not None]
    if len(sizes) != rank - 2 or not sizes or any(size < 1 for size in known):
        raise ShapeError(f"expects {rank - 2} positive sizes, but got {list(sizes)}")
    for size in own:
        if size is not None and not at_most(const(1), size).proved:
            RequireOp.build([Fact(const(1), "<=", size)], "adaptive_pool")
    return own


def _pool(x: ir.Value, axis: int, size: Expr, op: type[graph.InferredOp]) -> ir.Value:
    """Windows of one length are a dim of their own; others are picked and masked."""
    dims = list(dims_of(x))
    dim = dims[axis]
    if size == 1:
        return reduce(op, x, [axis], keepdims=True)
    if dims_equal(dim, dim // size * size):
        split = reshape(x, [*dims[:axis], size, dim // size, *dims[axis + 1 :]])
        return reduce(op, split, [axis + 1])
    starts, ends, indices = _windows(dim, size)
    if op is graph.MaxOp:
        return reduce(op, _parts(x, axis, ends, indices, least(element_of(x))), [axis + 1])
    sums = reduce(graph.SumOp, _parts(x, axis, ends, indices, 0), [axis + 1])
    lengths = astype(subtract(ends, starts), element_of(x))
    return divide(sums, _aligned(lengths, axis, len(dims)))


def _windows(dim: Expr, size: Expr) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Where windows begin and end, and the indices of as many elements as the longest one has."""
    count, more = (symbol(each, ir.IntegerType.get_signless(64)) for each in (size, size - 1))
    starts = floor_divide(_multiples(0, size, dim), count)
    ends = floor_divide(add(_multiples(1, size, dim), more), count)
    longest = (dim + size - 1) // size + 1
    steps = arange(0, longest, 1, ir.IntegerType.get_signless(64))
    return starts, ends, add(expand_dims(starts, [1]), steps)


def _parts(x: ir.Value, axis: int, ends: ir.Value, indices: ir.Value, outside: float) -> ir.Value:
    """Windows as two dims instead of an axis; `outside` is after shorter ones."""
    inside = less(indices, expand_dims(ends, [1]))
    present = _aligned(inside, axis + 1, rank_of(x) + 1)
    return where(present, emit(graph.TakeOp, x, indices, axis=axis), outside)


def _aligned(x: ir.Value, axis: int, rank: int) -> ir.Value:
    """A tensor whose last dim is an axis of those of a rank."""
    own = rank_of(x)
    return expand_dims(x, list(range(own, own + rank - 1 - axis)))


def _multiples(first: int, size: Expr, dim: Expr) -> ir.Value:
    """`dim` times each integer from `first`, as many as there are windows."""
    i64 = ir.IntegerType.get_signless(64)
    return multiply(arange(first, size, 1, i64), symbol(dim, i64))
