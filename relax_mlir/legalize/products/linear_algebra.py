"""Tensor programs of linear algebra."""

from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import MatmulOp

from ..kernel import (
    PARALLEL,
    REDUCTION,
    KernelBuilder,
    affine_map,
    elementwise,
    empty_like,
    fill,
    generic,
    scalar,
)
from ..scalars import add, compute_type, from_compute, multiply, to_compute


def matmul(op: MatmulOp, kernel: KernelBuilder) -> None:
    """out[.., m, n] = sum over k of lhs[.., m, k] * rhs[.., k, n]; half precision sums in f32."""
    lhs, rhs = kernel.ins
    out = kernel.outs[0]
    out_type = ir.RankedTensorType(out.type)
    element = out_type.element_type
    compute = compute_type(element)
    rank = out_type.rank
    m, n, k = rank - 2, rank - 1, rank
    maps = [
        affine_map(rank + 1, [*_batch(lhs, out_type), m, k]),
        affine_map(rank + 1, [*_batch(rhs, out_type), k, n]),
        affine_map(rank + 1, list(range(rank))),
    ]
    sums = out if compute == element else empty_like(out, compute)
    zero = fill(scalar(compute, 0), sums)
    iterators = [PARALLEL] * rank + [REDUCTION]
    product = generic([lhs, rhs], [zero], maps, iterators, _multiply_add)[0]
    if compute != element:
        product = elementwise([product], out, lambda x: from_compute(x, element))
    kernel.finish(product)


def _batch(value: ir.Value, out_type: ir.RankedTensorType) -> list[ir.AffineExpr | int]:
    """The map of a factor's leading dims; one of extent 1 is broadcast."""
    type_ = ir.RankedTensorType(value.type)
    lead = out_type.rank - type_.rank
    return [
        ir.AffineExpr.get_constant(0) if extent == 1 != out_type.shape[lead + axis] else lead + axis
        for axis, extent in enumerate(type_.shape[:-2])
    ]


def _multiply_add(a: ir.Value, b: ir.Value, total: ir.Value) -> ir.Value:
    return add(total, multiply(to_compute(a), to_compute(b)))
