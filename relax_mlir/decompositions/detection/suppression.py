"""Selection of boxes by scores.

boxes : tensor<b, n, 4>    scores : tensor<b, c, n>
"""

import math
from collections.abc import Mapping

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError
from relax_mlir.symbolic import Expr, const, product

from ..emit import (
    arange,
    astype,
    binary,
    broadcast_to,
    dims_of,
    dims_text,
    element_of,
    emit,
    expand_dims,
    greater,
    maximum,
    permute,
    rank_of,
    reduce,
    reshape,
    scalar,
    where,
)

Bound = ir.Value | float | None


def non_max_suppression(
    boxes: ir.Value,
    scores: ir.Value,
    max_output: ir.Value | int = 0,
    iou_threshold: Bound = 0.0,
    score_threshold: Bound = None,
    *,
    center_point_box: bool = False,
) -> ir.Value:
    """Rows of batch, class and box, as i64, for each box that `graph.vision_nms` selects.

    In the order of batches, of classes, and of selection; how many there are depends on data.
    Bounds are values, or tensors of one element. Source: ONNX `NonMaxSuppression`.
    """
    bounds = max_output, iou_threshold, score_threshold
    selected = _selected(boxes, scores, bounds, center_point_box)
    at = permute(emit(graph.NonzeroOp, _is_there(selected)), [1, 0])
    return _rows(selected, at)


def all_class_non_max_suppression(
    boxes: ir.Value,
    scores: ir.Value,
    max_output: ir.Value | int,
    iou_threshold: Bound,
    score_threshold: Bound,
) -> tuple[ir.Value, ir.Value]:
    """The rows of `non_max_suppression`, with room for all boxes, and how many there are.

    They are the first ones of [b * c * n, 3]; the others are -1. Source: TVM
    `relax.vision.all_class_non_max_suppression`, format "onnx".
    """
    selected = _selected(boxes, scores, (max_output, iou_threshold, score_threshold), False)
    room = product(dims_of(selected))
    is_there = _is_there(selected)
    at = permute(emit(graph.FirstNonzeroOp, is_there, count=[room]), [1, 0])
    # No index is below 0: rows that are left pick the first element, which is not used.
    rows = _rows(selected, maximum(at, 0))
    is_row = binary(graph.GreaterEqualOp, at, 0)
    total = reduce(graph.SumOp, astype(is_there, _i64()), range(3))
    return where(is_row, rows, -1), reshape(total, [1])


def _i64() -> ir.Type:
    return ir.IntegerType.get_signless(64)


def _is_there(selected: ir.Value) -> ir.Value:
    return binary(graph.GreaterEqualOp, selected, 0)


def _rows(selected: ir.Value, at: ir.Value) -> ir.Value:
    """Batch, class and box of what is selected at the indices [m, 3]."""
    box = expand_dims(emit(graph.GatherNdOp, selected, at, batch_dims=0), [1])
    first = {"axes": [1], "begin": [0], "end": [2], "strides": [1]}
    parts = emit(graph.StridedSliceOp, at, **first), box
    return graph.ConcatOp.build(*parts, axis=1).operation.results[0]


def _selected(
    boxes: ir.Value, scores: ir.Value, bounds: tuple[Bound, Bound, Bound], center: bool
) -> ir.Value:
    """The indices of selected boxes by class, or -1; of no boxes there are none."""
    element = element_of(boxes)
    limit, overlap, least = bounds
    operands = [
        _bound(0 if limit is None else limit, _i64()),
        _bound(0.0 if overlap is None else overlap, element),
        _bound(-math.inf if least is None else least, element),
    ]
    return emit(graph.VisionNmsOp, boxes, scores, *operands, center=center)


def _bound(value: ir.Value | float, element: ir.Type) -> ir.Value:
    """A bound as a tensor of rank 0."""
    if not isinstance(value, ir.Value):
        return scalar(value, element)
    if product(dims_of(value)) != const(1):
        raise ShapeError(
            f"expects a bound of one element, but got dims {dims_text(dims_of(value))}"
        )
    return astype(reshape(value, []), element)


def get_valid_counts(
    data: ir.Value, score_threshold: float = 0.0, *, id_index: int = 0, score_index: int = 1
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """How many boxes of [b, n, k] are valid, as i32, those in front, and where they were, as i32.

    Valid are boxes with a score above the threshold, and with a class that is not negative unless
    `id_index` is. Elements and indices after them are -1. Source: TVM
    `relax.vision.get_valid_counts`.
    """
    if rank_of(data) != 3:
        raise ShapeError(f"expects boxes of dims [b, n, k], but got rank {rank_of(data)}")
    b, n, k = dims_of(data)
    classes = {} if id_index < 0 else {"id_index": id_index}
    check_columns(k, {"score_index": score_index} | classes)
    is_valid = greater(column_of(data, score_index), score_threshold)
    if id_index >= 0:
        has_class = binary(graph.GreaterEqualOp, column_of(data, id_index), 0)
        is_valid = emit(graph.LogicalAndOp, is_valid, has_class)
    i32, i8 = (ir.IntegerType.get_signless(width) for width in (32, 8))
    counts = reduce(graph.SumOp, astype(is_valid, i32), [1])
    order = graph.SortOp.build(astype(is_valid, i8), axis=1, descending=True).operation.results[1]
    is_front = emit(
        graph.LessOp, arange(0, n, 1, i32), broadcast_to(expand_dims(counts, [1]), [b, n])
    )
    rows = emit(
        graph.GatherElementsOp, data, broadcast_to(expand_dims(order, [2]), [b, n, k]), axis=1
    )
    front = where(broadcast_to(expand_dims(is_front, [2]), [b, n, k]), rows, -1)
    return counts, front, where(is_front, astype(order, i32), -1)


def column_of(data: ir.Value, index: int) -> ir.Value:
    """One value of each box."""
    return emit(graph.TakeOp, data, scalar(index, _i64()), axis=2)


def check_columns(k: Expr, columns: Mapping[str, int]) -> None:
    """Raises ShapeError unless boxes of k values have the columns that attributes name."""
    for name, column in columns.items():
        if column < 0 or k.value is None or column >= k.value:
            raise ShapeError(f"has {name} {column} in boxes of {k} values")
