"""The windows of a tensor as columns, and columns added up where they were: unfold, fold."""

from collections.abc import Sequence
from itertools import product as pairs

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import Dim, RequireOp, ShapeError, dims_differ
from relax_mlir.dialects.graph.types import as_dims
from relax_mlir.symbolic import Expr, Fact, at_most, const, product

from ..emit import (
    add,
    arange,
    astype,
    dims_of,
    element_of,
    emit,
    expand_dims,
    permute,
    rank_of,
    reshape,
    scalar,
    widen,
    with_dims,
)
from ..pooling import windows_of
from ..windows import Windows


def unfold(
    x: ir.Value,
    window: Sequence[int],
    *,
    strides: Sequence[int] | None = None,
    padding: Sequence[int] | None = None,
    dilation: Sequence[int] | None = None,
) -> ir.Value:
    """The elements of each window of [n, c, d1, ...]: [n, c * elements, windows], 0 outside.

    Source: ATen `im2col`.
    """
    windows = windows_of(rank_of(x), window, strides, padding, dilation, False)
    n, c, *spatial = dims_of(x)
    counts = require_windows(windows, spatial, "@unfold")
    taken = taps(x, windows, scalar(0, element_of(x)))
    return reshape(taken, [n, c * product(map(const, window)), product(counts)])


def require_windows(windows: Sequence[Windows], dims: Sequence[Expr], by: str) -> list[Expr]:
    """How many windows there are along each dim: one at least, or the op is refused."""
    for side, dim in zip(windows, dims):
        padded = dim + (side.low + side.high + side.extra)
        fits = at_most(const(side.extent), padded)
        if padded.value is not None and not fits.proved:
            raise ShapeError(f"has a window of {side.extent} elements, but a dim of {dim}")
        if not fits.proved:
            RequireOp.build([Fact(const(side.extent), "<=", padded)], by)
    return [side.count(dim) for side, dim in zip(windows, dims)]


def taps(x: ir.Value, windows: Sequence[Windows], outside: ir.Value) -> ir.Value:
    """[n, c, k1, ..., w1, ...]: the elements of windows of [n, c, d1, ...] by their positions."""
    count, spatial = len(windows), dims_of(x)[2:]
    low = [0, 0, *(side.low for side in windows)]
    high = [0, 0, *(side.high + side.extra for side in windows)]
    if any(low) or any(high):
        none = [0] * len(low)
        x = emit(graph.PadOp, x, outside, low=low, high=high, interior=none, mode="constant")
    i64 = ir.IntegerType.get_signless(64)
    for axis, side in reversed(list(enumerate(windows))):
        steps = expand_dims(arange(0, side.size, side.dilation, i64), [1])
        starts = expand_dims(arange(0, side.count(spatial[axis]), side.stride, i64), [0])
        x = emit(graph.TakeOp, x, add(steps, starts), axis=2 + axis)
    order = [0, 1, *(2 + 2 * i for i in range(count)), *(3 + 2 * i for i in range(count))]
    return permute(x, order)


def fold(
    columns: ir.Value,
    sizes: Sequence[Dim | int | str],
    window: Sequence[int],
    *,
    strides: Sequence[int] | None = None,
    padding: Sequence[int] | None = None,
    dilation: Sequence[int] | None = None,
) -> ir.Value:
    """[n, c, sizes] of [n, c * elements, windows]: sums of what `unfold` would read there.

    Source: ONNX `Col2Im`; ATen `col2im`.
    """
    if rank_of(columns) != 3:
        raise ShapeError(f"expects columns of rank 3, but got rank {rank_of(columns)}")
    exact = graph.exact_dims(as_dims(sizes))
    windows = windows_of(2 + len(exact), window, strides, padding, dilation, False)
    counts = require_windows(windows, exact, "@fold")
    n, rows, total = dims_of(columns)
    elements = product(map(const, window))
    channels = rows // elements
    if dims_differ(rows, channels * elements) or dims_differ(total, product(counts)):
        raise ShapeError(f"has {rows} by {total} elements of columns, for {product(counts)}")
    own = with_dims(widen(columns), [n, channels * elements, product(counts)])
    split = reshape(own, [n, channels, elements, *counts])
    summed = None
    for index, at in enumerate(pairs(*(range(side.size) for side in windows))):
        part = emit(graph.TakeOp, split, scalar(index, ir.IntegerType.get_signless(64)), axis=2)
        spread = _spread(part, windows, at, exact, counts)
        summed = spread if summed is None else add(summed, spread)
    assert summed is not None
    return astype(summed, element_of(columns))


def _spread(
    part: ir.Value,
    windows: Sequence[Windows],
    at: Sequence[int],
    sizes: Sequence[Expr],
    counts: Sequence[Expr],
) -> ir.Value:
    """One element of each window, where the windows have it in [n, c, sizes]; 0 elsewhere."""
    low, high, interior = [const(0)] * 2, [const(0)] * 2, [0, 0]
    for side, tap, size, count in zip(windows, at, sizes, counts):
        first = const(tap * side.dilation - side.low)
        low.append(first)
        high.append(size - first - ((count - 1) * side.stride + 1))
        interior.append(side.stride - 1)
    zero = scalar(0, element_of(part))
    return emit(graph.PadOp, part, zero, low=low, high=high, interior=interior, mode="constant")
