"""Tensor programs on boxes in images."""

from collections.abc import Callable, Sequence
from functools import reduce

from relax_mlir.bindings import arith, ir, tensor
from relax_mlir.dialects.graph import VisionNmsOp

from .kernel import KernelBuilder, dim, empty, fill, index, scalar
from .scalars import exceeds, maximum, minimum, multiply, subtract
from .sorts.merging import merge_sort
from .sorts.sorting import first_index
from .tasks import Lines, if_else, in_order, in_tasks

Pair = tuple[ir.Value, ir.Value]
"""A value of each axis of an image."""


def vision_nms(op: VisionNmsOp, kernel: KernelBuilder) -> None:
    """Sorts the scores of each class, and compares each box with those that are selected."""
    boxes, scores, *bounds = kernel.ins
    limit, overlap, least = (tensor.ExtractOp(bound, []).result for bound in bounds)
    limit = arith.IndexCastOp(ir.IndexType.get(), limit).result
    i64, length = ir.IntegerType.get_signless(64), dim(scores, 2)
    corners = _corners_of(boxes, op.attributes["center"].value)

    def task(lines: Lines, out: ir.Value) -> Sequence[ir.Value]:
        batch, channel = (index(x) if isinstance(x, int) else x for x in lines.offsets[:2])
        kinds = ir.RankedTensorType(scores.type).element_type, i64

        def score(k: ir.Value) -> ir.Value:
            return tensor.ExtractOp(scores, [batch, channel, k]).result

        order = merge_sort(score, length, [empty([length], kind) for kind in kinds * 2], exceeds)[1]

        def visit(k: ir.Value, count: ir.Value, part: ir.Value) -> Sequence[ir.Value]:
            number = tensor.ExtractOp(order, [k]).result
            box = arith.IndexCastOp(ir.IndexType.get(), number).result
            own = corners(batch, box)

            def is_covered(j: ir.Value) -> ir.Value:
                other = tensor.ExtractOp(part, [index(0), index(0), j]).result
                at = arith.IndexCastOp(ir.IndexType.get(), other).result
                return _overlaps(own, corners(batch, at), _widened(overlap))

            def is_selected() -> Sequence[ir.Value]:
                return [arith.CmpIOp(_GE, first_index(count, is_covered), count).result]

            above = arith.CmpFOp(arith.CmpFPredicate.OGT, score(box), least).result
            free = arith.CmpIOp(arith.CmpIPredicate.slt, count, limit).result
            bit = ir.IntegerType.get_signless(1)
            (selects,) = if_else(
                arith.AndIOp(above, free).result, [bit], is_selected, lambda: [scalar(bit, 0)]
            )
            (written,) = if_else(
                selects,
                [part.type],
                lambda: [tensor.InsertOp(number, part, [index(0), index(0), count]).result],
                lambda: [part],
            )
            step = arith.IndexCastUIOp(ir.IndexType.get(), selects).result
            return arith.AddIOp(count, step).result, written

        part = fill(scalar(i64, -1), lines.of(out))
        return in_order(length, [index(0), part], visit)[1:]

    kernel.finish(*in_tasks([kernel.outs[0]], [2], task))


_GE = arith.CmpIPredicate.sge


def _widened(x: ir.Value) -> ir.Value:
    wide = ir.F64Type.get()
    return x if x.type == wide else arith.ExtFOp(wide, x).result


def _corners_of(boxes: ir.Value, center: bool) -> Callable[..., tuple[Pair, Pair]]:
    """Reads the lower and the upper corner of a box, in f64."""

    def corners(batch: ir.Value, box: ir.Value) -> tuple[Pair, Pair]:
        values = [
            _widened(tensor.ExtractOp(boxes, [batch, box, index(i)]).result) for i in range(4)
        ]
        if center:
            half = scalar(values[0].type, 0.5)
            middle, extents = values[:2], [multiply(x, half) for x in values[2:]]
            low = [subtract(a, b) for a, b in zip(middle, extents)]
            high = [arith.AddFOp(a, b).result for a, b in zip(middle, extents)]
        else:
            low = [minimum(a, b) for a, b in zip(values[:2], values[2:])]
            high = [maximum(a, b) for a, b in zip(values[:2], values[2:])]
        return (low[0], low[1]), (high[0], high[1])

    return corners


def _overlaps(a: tuple[Pair, Pair], b: tuple[Pair, Pair], most: ir.Value) -> ir.Value:
    """Whether the intersection of two boxes is more of their union than that."""
    (low, high), (other_low, other_high) = a, b
    sides = [
        subtract(minimum(high[i], other_high[i]), maximum(low[i], other_low[i])) for i in (0, 1)
    ]
    own, other = ([subtract(box[1][i], box[0][i]) for i in (0, 1)] for box in (a, b))
    zero = scalar(most.type, 0)
    any_area = [
        arith.CmpFOp(arith.CmpFPredicate.OGT, side, zero).result for side in (*sides, *own, *other)
    ]
    common = multiply(*sides)
    union = subtract(arith.AddFOp(multiply(*own), multiply(*other)).result, common)
    share = arith.DivFOp(common, union).result
    above = arith.CmpFOp(arith.CmpFPredicate.OGT, share, most).result
    return reduce(lambda x, y: arith.AndIOp(x, y).result, any_area, above)
