"""What is in regions of images: roi_align and roi_pool.

    x : tensor<n, c, h, w>    regions : tensor<r, 5>, an image, x and y of a corner and of the
    opposite one    result : tensor<r, c, rows, columns>

Corners are multiplied by `scale`, the size of an image relative to the one they were measured in.
Computed in f32 where elements are of half precision.
"""

import math
from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import Dim, ShapeError
from relax_mlir.symbolic import Expr

from ..emit import (
    add,
    arange,
    astype,
    binary,
    dims_of,
    dims_text,
    divide,
    element_of,
    emit,
    expand_dims,
    is_integer,
    less,
    maximum,
    minimum,
    multiply,
    permute,
    rank_of,
    reduce,
    reshape,
    scalar,
    subtract,
    symbol,
    where,
    widen,
)

MODES = ("avg", "max", "max_weighted")


def roi_align(
    x: ir.Value,
    regions: ir.Value,
    size: Sequence[int],
    *,
    scale: float = 1.0,
    samples: int = 2,
    aligned: bool = False,
    mode: str = "avg",
) -> ir.Value:
    """The mean, or the greatest, of `samples` by `samples` points in each part of a region.

    A region is cut into parts of equal size, rows by columns of `size`. Points lie between four
    elements and are interpolated, or are, in mode "max_weighted", the greatest of their products
    with its weights; those more than 1 outside of the image are 0. Pixels are where
    their indices are, or half a pixel further with `aligned`; without it sides are 1 at
    least. Source: ONNX `RoiAlign`; torchvision `roi_align`; TVM `relax.vision.roi_align`.
    """
    _check(x, regions, size)
    if samples < 1 or mode not in MODES:
        raise ShapeError(f"expects samples of mode {' or '.join(MODES)}, not {samples} of {mode}")
    values, (_, c, h, w) = permute(widen(x), [0, 2, 3, 1]), dims_of(x)
    boxes, element = _columns(regions, element_of(values)), element_of(values)
    points = [
        _points(boxes[low], boxes[low + 2], count, samples, scale, aligned, element)
        for low, count in ((2, size[0]), (1, size[1]))
    ]
    image = reshape(astype(boxes[0], ir.IntegerType.get_signless(64)), [dims_of(regions)[0], 1, 1])
    rows, columns = _Axis(points[0], h, 2), _Axis(points[1], w, 1)
    total = None
    for row in (0, 1):
        for column in (0, 1):
            at = [image, rows.indices[row], columns.indices[column]]
            taken = graph.IndexTensorOp.build(values, *at, axes=[0, 1, 2]).operation.results[0]
            weight = multiply(rows.weights[row], columns.weights[column])
            part = multiply(taken, expand_dims(weight, [3]))
            join = maximum if mode == "max_weighted" else add
            total = part if total is None else join(total, part)
    assert total is not None
    inside = emit(graph.LogicalAndOp, rows.inside, columns.inside)
    total = where(expand_dims(inside, [3]), total, 0)
    cut: list[Dim | int | str] = [dims_of(regions)[0], size[0], samples, size[1], samples, c]
    best = reduce(graph.MeanOp if mode == "avg" else graph.MaxOp, reshape(total, cut), [2, 4])
    return astype(permute(best, [0, 3, 1, 2]), element_of(x))


def _check(x: ir.Value, regions: ir.Value, size: Sequence[int]) -> None:
    """Raises ShapeError unless there are images and regions of them."""
    if rank_of(x) != 4 or rank_of(regions) != 2 or dims_of(regions)[1].value != 5:
        dims = [dims_text(dims_of(each)) for each in (x, regions)]
        raise ShapeError(f"expects dims [n, c, h, w] and [r, 5], but got {dims[0]} and {dims[1]}")
    if is_integer(element_of(x)) or is_integer(element_of(regions)):
        raise ShapeError("expects images and regions of floats")
    if len(size) != 2 or min(size) < 1:
        raise ShapeError(f"expects rows and columns of a result, but got {list(size)}")


def _columns(regions: ir.Value, element: ir.Type) -> list[ir.Value]:
    """The entries of all regions, each as [r, 1]."""
    values = astype(regions, element)
    cut = [{"axes": [1], "begin": [i], "end": [i + 1], "strides": [1]} for i in range(5)]
    return [emit(graph.StridedSliceOp, values, **each) for each in cut]


def _points(
    low: ir.Value,
    high: ir.Value,
    count: int,
    samples: int,
    scale: float,
    aligned: bool,
    element: ir.Type,
) -> ir.Value:
    """Coordinates along an axis, [r, count * samples]."""
    shift = 0.5 if aligned else 0.0
    begin, end = (subtract(multiply(edge, scale), shift) for edge in (low, high))
    extent = subtract(end, begin)
    extent = extent if aligned else maximum(extent, 1)
    steps = add(arange(0, count * samples, 1, element), 0.5)
    return add(begin, multiply(steps, divide(extent, count * samples)))


class _Axis:
    """The two neighbours of coordinates [r, k] along an axis, and how much they weigh.

    All have a dim of 1 at `axis`, so that those of both axes broadcast.
    """

    def __init__(self, points: ir.Value, extent: Expr, axis: int) -> None:
        element, i64 = element_of(points), ir.IntegerType.get_signless(64)
        size = symbol(extent, element)
        within = (
            emit(graph.GreaterEqualOp, points, scalar(-1, element)),
            binary(graph.LessEqualOp, points, size),
        )
        self.inside = expand_dims(emit(graph.LogicalAndOp, *within), [axis])
        last = subtract(size, 1)
        at = minimum(maximum(points, 0), last)
        first = emit(graph.FloorOp, at)
        part = subtract(at, first)
        self.weights = [expand_dims(weight, [axis]) for weight in (subtract(1, part), part)]
        ends = first, minimum(add(first, 1), last)
        self.indices = [expand_dims(astype(end, i64), [axis]) for end in ends]


def roi_pool(
    x: ir.Value, regions: ir.Value, size: Sequence[int], *, scale: float = 1.0
) -> ir.Value:
    """The greatest element of each part of a region, 0 of a part that is outside of the image.

    Corners are rounded to pixels, which belong to the region; parts that do not end at a pixel
    overlap. Source: arXiv 1504.08083; torchvision `roi_pool`; TVM `relax.vision.roi_pool`.
    """
    _check(x, regions, size)
    values, (_, _, h, w) = widen(x), dims_of(x)
    boxes = _columns(regions, element_of(values))
    image = reshape(astype(boxes[0], ir.IntegerType.get_signless(64)), dims_of(regions)[:1])
    taken = emit(graph.TakeOp, values, image, axis=0)
    rows = _covered(boxes[2], boxes[4], size[0], h, scale)
    columns = _covered(boxes[1], boxes[3], size[1], w, scale)
    # [r, c, h, columns, w], then [r, c, rows, columns, h]
    lines = where(expand_dims(columns, [1, 2]), expand_dims(taken, [3]), -math.inf)
    best = permute(reduce(graph.MaxOp, lines, [4]), [0, 1, 3, 2])
    lines = where(expand_dims(rows, [1, 3]), expand_dims(best, [2]), -math.inf)
    best = reduce(graph.MaxOp, lines, [4])
    is_any = [reduce(graph.AnyOp, part, [2]) for part in (rows, columns)]
    some = emit(graph.LogicalAndOp, expand_dims(is_any[0], [1, 3]), expand_dims(is_any[1], [1, 2]))
    return astype(where(some, best, 0), element_of(x))


def _covered(low: ir.Value, high: ir.Value, count: int, extent: Expr, scale: float) -> ir.Value:
    """Which pixels along an axis each part of a region covers: [r, count, extent]."""
    element = element_of(low)
    first, last = (_rounded(multiply(edge, scale)) for edge in (low, high))
    length = maximum(add(subtract(last, first), 1), 1)
    part = divide(length, count)
    steps = arange(0, count, 1, element)
    begin = add(emit(graph.FloorOp, multiply(steps, part)), first)
    end = add(emit(graph.CeilOp, multiply(add(steps, 1), part)), first)
    pixels = arange(0, extent, 1, element)
    covered = (
        binary(graph.GreaterEqualOp, pixels, expand_dims(begin, [2])),
        less(pixels, expand_dims(end, [2])),
    )
    return emit(graph.LogicalAndOp, *covered)


def _rounded(x: ir.Value) -> ir.Value:
    """The nearest integer, halves away from 0."""
    up, down = emit(graph.FloorOp, add(x, 0.5)), emit(graph.CeilOp, subtract(x, 0.5))
    return where(less(x, 0), down, up)
