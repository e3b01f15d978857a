"""Boxes that are told relative to others: multibox_transform_loc."""

from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError, dims_differ
from relax_mlir.symbolic import const

from ..emit import (
    add,
    arange,
    astype,
    binary,
    dims_of,
    element_of,
    emit,
    is_integer,
    maximum,
    minimum,
    multiply,
    rank_of,
    reshape,
    scalar,
    subtract,
    where,
    widen,
)


def multibox_transform_loc(
    classes: ir.Value,
    locations: ir.Value,
    anchors: ir.Value,
    *,
    clip: bool = False,
    threshold: float = 0.0,
    variances: Sequence[float] = (1.0, 1.0, 1.0, 1.0),
    keep_background: bool = True,
    apply_softmax: bool = True,
) -> tuple[ir.Value, ir.Value]:
    """Boxes [b, n, 4], as y and x of one corner, then of the other; and scores [b, c, n].

    `locations` [b, 4 * n] tell for each anchor [1, n, 4], left, top, right and bottom, how far the
    middle is, in x and in y, and the logarithms of how much wider and higher the box is, all times
    `variances`. `clip` keeps boxes within 0 and 1. Scores are those of `classes` [b, c, n], of
    their softmax unless they are scores already; those below `threshold` are 0, and so are those of
    class 0 unless `keep_background`. Source: TVM `relax.vision.multibox_transform_loc`.
    """
    _check(classes, locations, anchors, variances)
    element, (b, c, n) = element_of(classes), dims_of(classes)
    scores = widen(classes)
    if apply_softmax:
        scores = emit(graph.SoftmaxOp, scores, axis=1)
    scores = where(binary(graph.GreaterEqualOp, scores, threshold), scores, 0)
    if not keep_background:
        channel = reshape(arange(0, c, 1, ir.IntegerType.get_signless(64)), [c, 1])
        scores = where(binary(graph.EqualOp, channel, 0), 0, scores)
    offsets = _columns(reshape(widen(locations), [b, n, 4]))
    edges = _columns(widen(anchors))
    sides = [_side(edges[axis::2], offsets[axis::2], variances[axis::2], clip) for axis in (1, 0)]
    corners = [side[end] for end in (0, 1) for side in sides]
    boxes = graph.StackOp.build(*corners, axis=2).operation.results[0]
    return astype(boxes, element), astype(scores, element)


def _check(
    classes: ir.Value, locations: ir.Value, anchors: ir.Value, variances: Sequence[float]
) -> None:
    """Raises ShapeError unless there are as many of everything, of one float type."""
    values = classes, locations, anchors
    if [rank_of(v) for v in values] != [3, 2, 3]:
        ranks = ", ".join(str(rank_of(v)) for v in values)
        raise ShapeError(f"expects dims [b, c, n], [b, 4 * n] and [1, n, 4], but got ranks {ranks}")
    b, _, n = dims_of(classes)
    wanted = b, 4 * n, const(1), n, const(4)
    given = *dims_of(locations), *dims_of(anchors)
    if any(map(dims_differ, wanted, given)):
        raise ShapeError(f"has locations [{given[0]}, {given[1]}] of {n} anchors in {b} batches")
    if len({str(element_of(v)) for v in values}) > 1 or is_integer(element_of(classes)):
        raise ShapeError("expects classes, locations and anchors of one float type")
    if len(variances) != 4:
        raise ShapeError(f"expects 4 variances, but got {len(variances)}")


def _columns(rows: ir.Value) -> list[ir.Value]:
    """The four values of each row, without their axis."""
    i64 = ir.IntegerType.get_signless(64)
    return [emit(graph.TakeOp, rows, scalar(i, i64), axis=2) for i in range(4)]


def _side(
    edges: Sequence[ir.Value], offsets: Sequence[ir.Value], factors: Sequence[float], clip: bool
) -> tuple[ir.Value, ir.Value]:
    """Both ends of boxes along one axis, by how far the middle is and how much longer they are."""
    low, high = edges
    move, growth = (multiply(each, factor) for each, factor in zip(offsets, factors, strict=True))
    extent, middle = subtract(high, low), multiply(add(low, high), 0.5)
    middle = add(multiply(move, extent), middle)
    half = multiply(multiply(emit(graph.ExpOp, growth), extent), 0.5)
    ends = subtract(middle, half), add(middle, half)
    first, last = (maximum(minimum(end, 1), 0) if clip else end for end in ends)
    return first, last
