"""Tensor programs that find indices."""

from relax_mlir.bindings import arith, ir, linalg
from relax_mlir.dialects.graph import ArgmaxOp, ArgminOp, normalize_axis

from .kernel import (
    PARALLEL,
    REDUCTION,
    KernelBuilder,
    affine_map,
    dim,
    empty,
    fill,
    generic,
    scalar,
)
from .scalars import compute_type, to_compute
from .statistical import drop_unit_dims, greatest, least, restore_unit_dims


def argmax(op: ArgmaxOp, kernel: KernelBuilder) -> None:
    """The first index of the greatest element or of a NaN."""
    _arg_reduce(op, kernel, least, "OGT", "sgt")


def argmin(op: ArgminOp, kernel: KernelBuilder) -> None:
    """The first index of the least element or of a NaN."""
    _arg_reduce(op, kernel, greatest, "OLT", "slt")


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
            better = arith.CmpIOp(getattr(arith.CmpIPredicate, integers), x, top).result
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
