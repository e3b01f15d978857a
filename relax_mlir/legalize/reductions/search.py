"""Tensor programs that find indices."""

from collections.abc import Sequence

from relax_mlir.bindings import arith, ir, linalg, tensor
from relax_mlir.dialects.graph import ArgmaxOp, ArgminOp, FirstNonzeroOp, normalize_axis

from ..kernel import (
    PARALLEL,
    REDUCTION,
    KernelBuilder,
    affine_map,
    dim,
    empty,
    fill,
    generic,
    index,
    scalar,
)
from ..scalars import compare, compute_type, to_compute
from ..tasks import each_in_order, if_else, in_order
from .statistical import drop_unit_dims, greatest, least, restore_unit_dims


def argmax(op: ArgmaxOp, kernel: KernelBuilder) -> None:
    """The first index of the greatest element or of a NaN."""
    _arg_reduce(op, kernel, least, "OGT", "gt")


def argmin(op: ArgminOp, kernel: KernelBuilder) -> None:
    """The first index of the least element or of a NaN."""
    _arg_reduce(op, kernel, greatest, "OLT", "lt")


def _arg_reduce(
    op: ArgmaxOp | ArgminOp, kernel: KernelBuilder, start, floats: str, integers: str
) -> None:
    source, out = kernel.ins[0], kernel.outs[0]
    type_ = ir.RankedTensorType(source.type)
    axis = normalize_axis(op.attributes["axis"].value, type_.rank)
    remaining = [i for i in range(type_.rank) if i != axis]
    compute = compute_type(type_.element_type)
    shape = [dim(source, i) if type_.shape[i] < 0 else type_.shape[i] for i in remaining]
    best = fill(scalar(compute, start(compute)), empty(shape, compute))
    indices = fill(
        scalar(ir.IntegerType.get_signless(64), 0), drop_unit_dims(out, remaining, (axis,))
    )
    maps = [affine_map(type_.rank, list(range(type_.rank)))] + [
        affine_map(type_.rank, remaining)
    ] * 2
    iterators = [REDUCTION if i == axis else PARALLEL for i in range(type_.rank)]

    def body(x: ir.Value, top: ir.Value, at: ir.Value) -> list[ir.Value]:
        x = to_compute(x)
        if isinstance(compute, ir.IntegerType):
            better = compare(integers, x, top)
        else:
            greater = arith.CmpFOp(getattr(arith.CmpFPredicate, floats), x, top).result
            new_nan = arith.AndIOp(
                arith.CmpFOp(arith.CmpFPredicate.UNO, x, x).result,
                arith.CmpFOp(arith.CmpFPredicate.ORD, top, top).result,
            ).result
            better = arith.OrIOp(greater, new_nan).result
        i64 = ir.IntegerType.get_signless(64)
        here = arith.IndexCastOp(i64, linalg.IndexOp(axis).result).result
        return [arith.SelectOp(better, x, top).result, arith.SelectOp(better, here, at).result]

    result = generic([source], [best, indices], maps, iterators, body)[1]
    kernel.finish(restore_unit_dims(result, out, remaining, (axis,)))


def first_nonzero(op: FirstNonzeroOp, kernel: KernelBuilder) -> None:
    """Writes the indices of each element that is not 0 to the next column, while there is one."""
    source, out = kernel.ins[0], kernel.outs[0]
    rank, count = ir.RankedTensorType(source.type).rank, dim(out, 1)
    i64 = ir.IntegerType.get_signless(64)

    def put(column: ir.Value, values: Sequence[ir.Value], part: ir.Value) -> ir.Value:
        for row, value in enumerate(values):
            part = tensor.InsertOp(value, part, [index(row), column]).result
        return part

    def visit(at: Sequence[ir.Value], column: ir.Value, part: ir.Value) -> Sequence[ir.Value]:
        is_there = _is_not_zero(tensor.ExtractOp(source, list(at)).result)
        is_free = arith.CmpIOp(arith.CmpIPredicate.slt, column, count).result
        writes = arith.AndIOp(is_there, is_free).result

        def write() -> Sequence[ir.Value]:
            return [put(column, [arith.IndexCastOp(i64, i).result for i in at], part)]

        (written,) = if_else(writes, [part.type], write, lambda: [part])
        step = arith.IndexCastUIOp(ir.IndexType.get(), writes).result
        return arith.AddIOp(column, step).result, written

    def pad(column: ir.Value, part: ir.Value) -> Sequence[ir.Value]:
        return [put(column, [scalar(i64, -1)] * rank, part)]

    if 0 in ir.RankedTensorType(out.type).shape:
        kernel.finish(out)
        return
    filled, part = each_in_order([dim(source, i) for i in range(rank)], [index(0), out], visit)
    kernel.finish(*in_order(count, [part], pad, filled))


def _is_not_zero(x: ir.Value) -> ir.Value:
    if isinstance(x.type, ir.IntegerType):
        return arith.CmpIOp(arith.CmpIPredicate.ne, x, scalar(x.type, 0)).result
    x = to_compute(x)
    return arith.CmpFOp(arith.CmpFPredicate.UNE, x, scalar(x.type, 0)).result
