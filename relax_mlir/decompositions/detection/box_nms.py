"""Selection of boxes by score and class, in rounds: box_nms.

    data : tensor<b, n, k>    counts : tensor<b>    indices : tensor<b, n>

A box is a row of k values: two opposite corners, a score, perhaps a class, and whatever else. A
round selects the best box that is left of each batch, and ends or lowers the scores of those that
overlap it, of all boxes at once.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError, dims_differ

from ..emit import (
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
    is_integer,
    less,
    maximum,
    minimum,
    multiply,
    rank_of,
    reduce,
    scalar,
    subtract,
    where,
    widen,
)
from ..loops import truth_of, while_loop
from .suppression import check_columns, column_of


@dataclass(frozen=True)
class _Rules:
    """How boxes are selected; `columns` of corners, scores and classes, which may be absent."""

    limit: int
    overlap: float
    sigma: float
    least: float
    corners: int
    score: int
    group: int | None


def box_nms(
    data: ir.Value,
    counts: ir.Value,
    indices: ir.Value,
    *,
    max_output: int = -1,
    iou_threshold: float = 0.5,
    force_suppress: bool = False,
    top_k: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = 0,
    soft_nms_sigma: float = 0.0,
    score_threshold: float = 0.0,
    compact: bool = True,
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Selected boxes [b, n, k], their `indices` as i32 [b, n], how many there are as i32 [b, 1].

    Of the first `counts` boxes of a batch, or the best `top_k` of these, those are visited whose
    score is above 0, from the greatest score to the least, of equal ones the first one first. A
    selected box ends those of its class, or all with `force_suppress` or a negative `id_index`,
    whose intersection over union with it is `iou_threshold` or more. A `soft_nms_sigma` above 0
    multiplies the scores of others by exp(-iou^2 / (2 sigma)), and ends those that are not above
    `score_threshold`. Results are in the order of selection, and end in -1; without `compact`
    boxes stay at their positions in the order of scores. Shares are compared in f64. Source: MXNet
    `box_nms`; TVM `relax.vision.non_max_suppression`.
    """
    is_soft = soft_nms_sigma > 0
    is_grouped = id_index >= 0 and not force_suppress
    rules = _Rules(
        max_output,
        iou_threshold,
        soft_nms_sigma,
        score_threshold if is_soft else 0.0,
        coord_start,
        score_index,
        id_index if is_grouped else None,
    )
    _check(data, counts, indices, rules)
    b, n, _ = dims_of(data)
    scores, order = _ordered(data, counts, top_k, rules)
    rows = _rows(data, order)
    chosen, retained, total = _selected(rows, scores, rules, is_soft)
    is_row = binary(graph.GreaterEqualOp, chosen, 0)
    at = maximum(chosen, 0)
    positions = emit(graph.GatherElementsOp, order, at, axis=1)
    selected = astype(emit(graph.GatherElementsOp, indices, positions, axis=1), _int(32))
    if not compact and not is_soft:
        empty = broadcast_to(scalar(0, _int(8)), [b, n])
        ones = astype(is_row, _int(8))
        taken = emit(graph.ScatterElementsOp, empty, at, ones, axis=1, reduction="max")
        is_occupied = greater(taken, 0)
    else:
        rows, is_occupied = _rows(rows, at), is_row
    if is_soft:
        column = arange(0, dims_of(data)[2], 1, _int(64))
        is_score = binary(graph.EqualOp, column, score_index)
        rows = where(is_score, expand_dims(astype(retained, element_of(data)), [2]), rows)
    boxes = where(expand_dims(is_occupied, [2]), rows, -1)
    return boxes, where(is_row, selected, -1), astype(total, _int(32))


def _int(width: int) -> ir.Type:
    return ir.IntegerType.get_signless(width)


def _check(data: ir.Value, counts: ir.Value, indices: ir.Value, rules: _Rules) -> None:
    """Raises ShapeError unless there are boxes, with the columns that are named."""
    if [rank_of(v) for v in (data, counts, indices)] != [3, 1, 2]:
        ranks = ", ".join(str(rank_of(v)) for v in (data, counts, indices))
        raise ShapeError(f"expects dims [b, n, k], [b] and [b, n], but got ranks {ranks}")
    b, n, k = dims_of(data)
    if any(map(dims_differ, (b, b, n), (*dims_of(counts), *dims_of(indices)))):
        raise ShapeError(f"has counts or indices of other dims than boxes of [{b}, {n}, {k}]")
    if is_integer(element_of(data)) or not all(
        is_integer(element_of(v)) for v in (counts, indices)
    ):
        raise ShapeError("expects boxes of floats, counts and indices of integers")
    used = {
        "score_index": rules.score,
        "coord_start": rules.corners,
        "end of coordinates": rules.corners + 3,
    }
    used |= {} if rules.group is None else {"id_index": rules.group}
    check_columns(k, used)


def _ordered(
    data: ir.Value, counts: ir.Value, top_k: int, rules: _Rules
) -> tuple[ir.Value, ir.Value]:
    """Scores from the greatest to the least, -infinity of boxes that are out; their positions."""
    n = dims_of(data)[1]
    scores = widen(column_of(data, rules.score))
    position = arange(0, n, 1, _int(64))
    is_given = less(position, expand_dims(astype(counts, _int(64)), [1]))
    is_in = emit(graph.LogicalAndOp, is_given, greater(scores, rules.least))
    sorted_ = graph.SortOp.build(where(is_in, scores, -math.inf), axis=1, descending=True)
    scores, order = sorted_.operation.results
    if top_k > 0:
        scores = where(less(position, top_k), scores, -math.inf)
    return scores, order


def _rows(data: ir.Value, at: ir.Value) -> ir.Value:
    """The rows of boxes [b, n, k] at positions [b, n]."""
    positions = broadcast_to(expand_dims(at, [2]), dims_of(data))
    return emit(graph.GatherElementsOp, data, positions, axis=1)


def _selected(
    rows: ir.Value, scores: ir.Value, rules: _Rules, is_soft: bool
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Runs the rounds: the positions that were selected, their scores, and how many there are."""
    b, n, _ = dims_of(rows)
    i64, element = _int(64), element_of(scores)
    none = broadcast_to(scalar(-1, i64), [b, n])
    count = broadcast_to(scalar(0, i64), [b, 1])
    if n.value == 0:
        return none, scores, count
    corners = [astype(column_of(rows, rules.corners + i), ir.F64Type.get()) for i in range(4)]
    edges = [f(corners[i], corners[i + 2]) for f in (minimum, maximum) for i in (0, 1)]
    group = None if rules.group is None else column_of(rows, rules.group)
    position = arange(0, n, 1, i64)
    state = [scores, none, count, *([scores] if is_soft else [])]

    def more(scores: ir.Value, _: ir.Value, count: ir.Value, *rest: ir.Value) -> ir.Value:
        is_left = reduce(graph.AnyOp, greater(scores, rules.least), [1], keepdims=True)
        if rules.limit > 0:
            is_left = emit(graph.LogicalAndOp, is_left, less(count, rules.limit))
        return truth_of(reduce(graph.AnyOp, is_left, [0, 1]))

    def turn(
        scores: ir.Value, chosen: ir.Value, count: ir.Value, *retained: ir.Value
    ) -> Sequence[ir.Value]:
        best = emit(graph.ArgmaxOp, scores, axis=1, keepdims=True)
        value = emit(graph.GatherElementsOp, scores, best, axis=1)
        takes = greater(value, rules.least)
        if rules.limit > 0:
            takes = emit(graph.LogicalAndOp, takes, less(count, rules.limit))
        share = _shares(edges, best)
        is_over = binary(graph.GreaterEqualOp, share, rules.overlap)
        if group is not None:
            own = emit(graph.GatherElementsOp, group, best, axis=1)
            is_own = emit(graph.EqualOp, group, own)
            is_over = emit(graph.LogicalAndOp, is_over, is_own)
        is_over = emit(graph.LogicalOrOp, is_over, emit(graph.EqualOp, position, best))
        rest = scores
        if is_soft:
            factor = astype(
                emit(graph.ExpOp, multiply(multiply(share, share), -0.5 / rules.sigma)), element
            )
            lower = multiply(scores, factor)
            lower = where(greater(lower, rules.least), lower, -math.inf)
            rest = lower if group is None else where(is_own, lower, scores)
        after = where(takes, where(is_over, -math.inf, rest), scores)
        is_slot = emit(graph.LogicalAndOp, takes, emit(graph.EqualOp, position, count))
        updated = [where(is_slot, value, each) for each in retained]
        return [
            after,
            where(is_slot, best, chosen),
            add(count, astype(takes, i64)),
            *updated,
        ]

    _, chosen, count, *retained = while_loop(state, more, turn)
    return chosen, retained[0] if retained else scores, count


def _shares(edges: Sequence[ir.Value], best: ir.Value) -> ir.Value:
    """The intersection of each box with the best one over their union; 0 if there is no area.

    `edges` are the lower ones along both axes, then the upper ones, as [b, n].
    """
    own = [emit(graph.GatherElementsOp, edge, best, axis=1) for edge in edges]
    low, high = (
        [f(edges[i], own[i]) for i in at] for f, at in ((maximum, (0, 1)), (minimum, (2, 3)))
    )
    common = multiply(*(maximum(subtract(b, a), 0) for a, b in zip(low, high)))
    areas = [multiply(subtract(box[2], box[0]), subtract(box[3], box[1])) for box in (edges, own)]
    union = subtract(add(*areas), common)
    return where(greater(union, 0), divide(common, union), 0)
