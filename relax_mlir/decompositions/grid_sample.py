"""Sampling at the coordinates of a grid: affine_grid, grid_sample.

Coordinates go from -1 to 1 along each spatial dim, the last dim's first: to the centres of the
first and the last element with `align_corners`, else to their outer edges.
"""

from collections.abc import Sequence
from functools import reduce as fold
from itertools import product

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import Dim, ShapeError, dims_differ
from relax_mlir.dialects.graph.types import as_dims
from relax_mlir.symbolic import Expr, const

from .contraction import dot_general
from .emit import (
    add,
    arange,
    astype,
    binary,
    broadcast_to,
    dims_of,
    divide,
    element_of,
    emit,
    expand_dims,
    greater,
    less,
    maximum,
    minimum,
    multiply,
    permute,
    rank_of,
    reshape,
    scalar,
    subtract,
    symbol,
    where,
    widen,
)
from .resize import cubic_weights

MODES = ("nearest", "linear", "cubic")
PADDINGS = ("zeros", "border", "reflection")


def grid_sample(
    x: ir.Value,
    grid: ir.Value,
    *,
    mode: str = "linear",
    padding: str = "zeros",
    align_corners: bool = False,
) -> ir.Value:
    """Elements of [n, c, d1, ...] at the coordinates [n, e1, ..., dims], between them interpolated.

    What is outside of the input is 0, the nearest element, or mirrored at the border. Modes are
    nearest, linear and, of two dims, cubic. Source: ONNX `GridSample`; ATen `grid_sampler_2d`.
    """
    spatial = _check(x, grid, mode, padding)
    dims, values = dims_of(x), widen(x)
    positions = astype(widen(grid), element_of(values))
    at = [_position(positions, spatial - 1 - i, dims[2 + i], align_corners) for i in range(spatial)]
    if mode != "cubic":
        at = [_padded(p, n, padding, align_corners) for p, n in zip(at, dims[2:])]
    taps = [_taps(p, mode) for p in at]
    last = permute(values, [0, *range(2, spatial + 2), 1])
    parts = []
    for chosen in product(*taps):
        indices = [index for index, _ in chosen]
        if mode == "cubic":
            indices = [_padded(p, n, padding, align_corners) for p, n in zip(indices, dims[2:])]
        weights = [weight for _, weight in chosen if weight is not None]
        parts.append(_weighted(last, indices, dims[2:], weights))
    result = fold(add, parts)
    return astype(permute(result, [0, spatial + 1, *range(1, spatial + 1)]), element_of(x))


def _check(x: ir.Value, grid: ir.Value, mode: str, padding: str) -> int:
    """The count of spatial dims."""
    rank = rank_of(x)
    for choice, choices in ((mode, MODES), (padding, PADDINGS)):
        if choice not in choices:
            raise ShapeError(f"expects one of {', '.join(choices)}, but got '{choice}'")
    if rank not in (4, 5) or rank_of(grid) != rank or (rank == 5 and mode == "cubic"):
        raise ShapeError(f"samples rank {rank} by a grid of rank {rank_of(grid)} in mode {mode}")
    if dims_differ(dims_of(grid)[-1], const(rank - 2)):
        raise ShapeError(f"expects {rank - 2} coordinates, but got {dims_of(grid)[-1]}")
    if isinstance(element_of(x), ir.IntegerType) or isinstance(element_of(grid), ir.IntegerType):
        raise ShapeError(f"expects floats, but got {element_of(x)} and {element_of(grid)}")
    return rank - 2


def _position(grid: ir.Value, component: int, size: Expr, align_corners: bool) -> ir.Value:
    """A coordinate of the grid as a position between elements."""
    last = rank_of(grid) - 1
    picked = emit(graph.TakeOp, grid, scalar(component, _i64()), axis=last)
    extent = symbol(size, element_of(grid))
    if align_corners:
        return multiply(multiply(add(picked, 1), 0.5), subtract(extent, 1))
    return multiply(subtract(multiply(add(picked, 1), extent), 1), 0.5)


def _i64() -> ir.Type:
    return ir.IntegerType.get_signless(64)


def _padded(at: ir.Value, size: Expr, padding: str, align_corners: bool) -> ir.Value:
    """A position that the padding brings into the input; unchanged where zeros are outside."""
    if padding == "zeros":
        return at
    final = symbol(size - 1, element_of(at))
    if padding == "reflection":
        first = 0.0 if align_corners else -0.5
        span = maximum(add(final, -2 * first), 1)
        turn = multiply(span, 2)
        distance = binary(graph.RemainderOp, subtract(at, first), turn)
        mirrored = where(greater(distance, span), subtract(turn, distance), distance)
        at = add(mirrored, first)
    return minimum(maximum(at, 0), final)


def _taps(at: ir.Value, mode: str) -> list[tuple[ir.Value, ir.Value | None]]:
    """Whole positions next to one, and their weights."""
    if mode == "nearest":
        return [(emit(graph.RoundOp, at), None)]
    first = emit(graph.FloorOp, at)
    share = subtract(at, first)
    if mode == "linear":
        return [(first, subtract(1, share)), (add(first, 1), share)]
    return [(add(first, i - 1), weight) for i, weight in enumerate(cubic_weights(share, -0.75))]


def sampled(values: ir.Value, at: Sequence[ir.Value], sizes: Sequence[Expr]) -> ir.Value:
    """The elements of [n, d1, ..., c] at positions [n, e1, ...], interpolated; 0 outside."""
    parts = []
    for chosen in product(*(_taps(position, "linear") for position in at)):
        weights = [weight for _, weight in chosen if weight is not None]
        parts.append(_weighted(values, [index for index, _ in chosen], sizes, weights))
    return fold(add, parts)


def _weighted(
    values: ir.Value,
    indices: Sequence[ir.Value],
    sizes: Sequence[Expr],
    weights: Sequence[ir.Value],
) -> ir.Value:
    """The elements of [n, d1, ..., c] at whole positions, times their weights; 0 outside."""
    inside = None
    for index, size in zip(indices, sizes):
        final = symbol(size - 1, element_of(index))
        valid = emit(
            graph.LogicalAndOp,
            binary(graph.GreaterEqualOp, index, 0),
            binary(graph.LessEqualOp, index, final),
        )
        inside = valid if inside is None else binary(graph.LogicalAndOp, inside, valid)
    whole = [astype(index, _i64()) for index in indices]
    joined = graph.StackOp.build(*whole, axis=-1).operation.results[0]
    picked = emit(graph.GatherNdOp, values, joined, batch_dims=1)
    last = rank_of(picked) - 1
    if weights:
        picked = multiply(picked, expand_dims(fold(multiply, weights), [last]))
    assert inside is not None
    return where(expand_dims(inside, [last]), picked, 0)


def affine_grid(
    theta: ir.Value, sizes: Sequence[Dim | int | str], *, align_corners: bool = False
) -> ir.Value:
    """The grid [n, d1, ..., dims] of affine maps [n, dims, dims + 1] of spatial sizes.

    Source: ONNX `AffineGrid`; ATen `affine_grid_generator`; TVM `relax.image.affine_grid`.
    """
    n, rows, columns = dims_of(theta)
    count = len(sizes)
    if dims_differ(rows, const(count)) or dims_differ(columns, const(count + 1)):
        raise ShapeError(f"expects maps of {count} dims, but got {rows} by {columns}")
    extents = graph.exact_dims(as_dims(sizes))
    maps = widen(theta)
    base = []
    for axis, extent in reversed(list(enumerate(extents))):
        line = _line(extent, element_of(maps), align_corners)
        aligned = expand_dims(line, [i for i in range(count) if i != axis])
        base.append(broadcast_to(aligned, extents))
    base.append(broadcast_to(scalar(1, element_of(maps)), extents))
    points = graph.StackOp.build(*base, axis=-1).operation.results[0]
    grid = dot_general(maps, points, contract=([2], [count]))
    ordered = permute(grid, [0, *range(2, count + 2), 1])
    return astype(reshape(ordered, [n, *extents, count]), element_of(theta))


def _line(extent: Expr, element: ir.Type, align_corners: bool) -> ir.Value:
    """Coordinates from -1 to 1."""
    steps = arange(0, extent, 1, element)
    if align_corners:
        last = maximum(symbol(extent - 1, element), 1)
        spread = subtract(divide(multiply(steps, 2), last), 1)
        single = less(symbol(extent, element), 2)
        return where(single, 0, spread)
    odd = add(multiply(steps, 2), 1)
    return subtract(divide(odd, symbol(extent, element)), 1)
