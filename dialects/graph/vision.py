"""Operators on boxes in images: vision_nms (TVM `vision`)."""

from typing import Any

from relax_mlir.bindings import ext, ir
from relax_mlir.symbolic import const

from .elementwise import is_float, require_one_element_type
from .op import FlagAttr, InferredOp
from .types import ShapeError, TensorType, dims_differ


class VisionNmsOp(InferredOp, name="vision_nms", traits=[ext.Pure]):
    """For each class the boxes that non-maximum suppression selects: their indices, as i64.

        boxes : tensor<b, n, 4>    scores : tensor<b, c, n>    result : tensor<b, c, n x i64>
        limit : tensor<i64>        overlap, least : tensor<f>

    Boxes are visited from the greatest score to the least, of equal ones the first one first. One
    is selected if its score is above `least`, if its intersection over union with each that is
    selected already is not above `overlap`, and if fewer than `limit` are. Indices come in that
    order; -1 fills what is left. A box is two opposite corners, y and x of one, then of the other;
    with `center` it is a middle and extents. A NaN is above nothing. Compared in f64.

    C1  boxes, scores, `overlap` and `least` are of one float type
    C2  boxes have rank 3 and a last dim of 4, scores rank 3
    C3  boxes and scores do not provably differ in batches or in boxes
    C4  `limit` is an i64, and with `overlap` and `least` has rank 0

    Source: ONNX `NonMaxSuppression`; TVM `relax.vision.all_class_non_max_suppression`.
    """

    result: ext.Result[Any]
    boxes: ext.Operand[Any]
    scores: ext.Operand[Any]
    limit: ext.Operand[Any]
    overlap: ext.Operand[Any]
    least: ext.Operand[Any]
    center: FlagAttr

    @staticmethod
    def infer_return_type(
        boxes: TensorType,
        scores: TensorType,
        limit: TensorType,
        overlap: TensorType,
        least: TensorType,
        center: bool,
    ) -> TensorType:
        require_one_element_type(boxes, scores, overlap, least)  # C1
        if not is_float(boxes.element):
            raise ShapeError(f"expects a float element type, but got {boxes.element}")
        for bound in (limit, overlap, least):
            if bound.dims not in ((), None):  # C4
                raise ShapeError(f"expects a bound of rank 0, but got '{bound}'")
        if str(limit.element) != "i64":
            raise ShapeError(f"expects a limit of i64, but got {limit.element}")
        i64 = ir.IntegerType.get_signless(64)
        ours, theirs = boxes.dims, scores.dims
        if ours is not None and (len(ours) != 3 or dims_differ(ours[2], const(4))):  # C2
            raise ShapeError(f"expects boxes of dims [b, n, 4], but got '{boxes}'")
        if theirs is not None and len(theirs) != 3:
            raise ShapeError(f"expects scores of dims [b, c, n], but got '{scores}'")
        if ours is not None and theirs is not None:
            if dims_differ(ours[0], theirs[0]) or dims_differ(ours[1], theirs[2]):  # C3
                raise ShapeError(f"has scores '{scores}' of boxes '{boxes}'")
        return TensorType(theirs or (None,) * 3, i64)
