"""Tensor programs of linear algebra."""

from relax_mlir.bindings import arith, ir
from relax_mlir.dialects.graph import MatmulOp

from .kernel import PARALLEL, REDUCTION, KernelBuilder, affine_map, fill, generic, scalar


def matmul(op: MatmulOp, kernel: KernelBuilder) -> None:
    """out[.., m, n] = sum over k of lhs[.., m, k] * rhs[.., k, n]."""
    lhs, rhs = kernel.ins
    out = kernel.outs[0]
    out_type = ir.RankedTensorType(out.type)
    rank = out_type.rank
    m, n, k = rank - 2, rank - 1, rank
    maps = [
        affine_map(rank + 1, [*_batch(lhs, out_type), m, k]),
        affine_map(rank + 1, [*_batch(rhs, out_type), k, n]),
        affine_map(rank + 1, list(range(rank))),
    ]
    zero = fill(scalar(out_type.element_type, 0), out)
    result = generic([lhs, rhs], [zero], maps, [PARALLEL] * rank + [REDUCTION], _multiply_add)
    kernel.finish(*result)


def _batch(value: ir.Value, out_type: ir.RankedTensorType) -> list[ir.AffineExpr | int]:
    type_ = ir.RankedTensorType(value.type)
    lead = out_type.rank - type_.rank
    return [
        ir.AffineExpr.get_constant(0) if extent == 1 else lead + axis
        for axis, extent in enumerate(type_.shape[:-2])
    ]


def _multiply_add(a: ir.Value, b: ir.Value, total: ir.Value) -> ir.Value:
    if isinstance(a.type, ir.IntegerType):
        return arith.AddIOp(total, arith.MulIOp(a, b).result).result
    return arith.AddFOp(total, arith.MulFOp(a, b).result).result
