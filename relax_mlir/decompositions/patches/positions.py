"""Maxima of windows with their positions, and elements put where positions say.

A position is the index of an element in its channel, row by row, as i64.
"""

import math
from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import Dim, ShapeError, dims_differ
from relax_mlir.dialects.graph.types import as_dims
from relax_mlir.symbolic import Expr, product

from ..emit import (
    add,
    arange,
    binary,
    broadcast_to,
    dims_of,
    element_of,
    emit,
    expand_dims,
    floor_divide,
    is_integer,
    least,
    maximum,
    multiply,
    rank_of,
    reshape,
    scalar,
    subtract,
    symbol,
    where,
    with_dims,
)
from ..pooling import max_pool, windows_of
from ..windows import Windows
from .columns import require_windows, taps


def max_pool_with_indices(
    x: ir.Value,
    window: Sequence[int],
    *,
    strides: Sequence[int] | None = None,
    padding: Sequence[int] | None = None,
    dilation: Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> tuple[ir.Value, ir.Value]:
    """The greatest element of each window, or NaN, and the position of the first one.

    Source: ONNX `MaxPool`; ATen `max_pool2d_with_indices`.
    """
    windows = windows_of(rank_of(x), window, strides, padding, dilation, ceil_mode)
    spatial = dims_of(x)[2:]
    counts = require_windows(windows, spatial, "@max_pool_with_indices")
    values = max_pool(
        x, window, strides=strides, padding=padding, dilation=dilation, ceil_mode=ceil_mode
    )
    lowest = scalar(least(element_of(x)), element_of(x))
    taken = taps(x, windows, lowest)
    n, c = dims_of(x)[:2]
    elements = math.prod(side.size for side in windows)
    rows = reshape(taken, [n, c, elements, *counts])
    best = emit(graph.ArgmaxOp, rows, axis=2, keepdims=False)
    # Where all are the least value, what is outside counts as well.
    is_lowest = binary(graph.EqualOp, values, lowest)
    return values, _positions(best, is_lowest, windows, spatial, counts)


def _positions(
    best: ir.Value,
    is_lowest: ir.Value,
    windows: Sequence[Windows],
    spatial: Sequence[Expr],
    counts: Sequence[Expr],
) -> ir.Value:
    """Positions of the taps that are the greatest; of the first one inside if all are the least."""
    i64 = ir.IntegerType.get_signless(64)
    total, inner = None, math.prod(side.size for side in windows)
    for axis, (side, dim, count) in enumerate(zip(windows, spatial, counts)):
        inner //= side.size
        tap = floor_divide(best, inner) if inner > 1 else best
        if axis:
            tap = binary(graph.RemainderOp, tap, side.size)
        starts = arange(-side.low, count, side.stride, i64)
        outside = maximum(subtract(0, starts), 0)
        first = floor_divide(add(outside, side.dilation - 1), side.dilation)
        aligned = range(1, len(windows) - axis)
        tap = where(is_lowest, expand_dims(first, aligned), tap)
        at = add(multiply(tap, side.dilation), expand_dims(starts, aligned))
        total = at if total is None else add(multiply(total, symbol(dim, i64)), at)
    assert total is not None
    return total


def max_unpool(
    x: ir.Value, indices: ir.Value, sizes: Sequence[Dim | int | str], *, flat: bool = False
) -> ir.Value:
    """[n, c, sizes] with the elements of [n, c, d1, ...] at their positions, and 0 elsewhere.

    `flat` counts positions from the beginning of the whole result, as ONNX does; those outside of
    the own channel are left out. Source: ONNX `MaxUnpool`; ATen `max_unpool2d`.
    """
    if rank_of(x) < 3 or rank_of(indices) != rank_of(x) or len(sizes) != rank_of(x) - 2:
        ranks = f"{rank_of(x)} and {rank_of(indices)}"
        raise ShapeError(f"expects one rank and {len(sizes)} spatial dims, but got ranks {ranks}")
    if any(map(dims_differ, dims_of(x), dims_of(indices))) or not is_integer(element_of(indices)):
        raise ShapeError(f"expects a position for each element, but got '{_type(indices)}'")
    exact = graph.exact_dims(as_dims(sizes))
    n, c, *spatial = dims_of(x)
    plane, count = product(exact), product(spatial)
    i64 = ir.IntegerType.get_signless(64)
    own = with_dims(emit(graph.AstypeOp, indices, dtype=i64), dims_of(x))
    own = reshape(own, [n, c, count])
    if flat:
        channels = reshape(arange(0, n * c, 1, i64), [n, c, 1])
        own = subtract(own, multiply(channels, symbol(plane, i64)))
    empty = broadcast_to(scalar(0, element_of(x)), [n, c, plane])
    updates = reshape(x, [n, c, count])
    put = emit(graph.ScatterElementsOp, empty, own, updates, axis=2, reduction="none")
    return reshape(put, [n, c, *exact])


def _type(value: ir.Value) -> graph.TensorType:
    return graph.TensorType.of(value)
