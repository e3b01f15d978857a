"""Tensor programs that make tensors."""

from relax_mlir.bindings import arith, ir, linalg
from relax_mlir.dialects.graph import ArangeOp, FullOp, TrilOp, TriuOp, dims_of_attr, exact_dims

from .datatype import convert
from .kernel import PARALLEL, KernelBuilder, affine_map, elementwise, generic, index, scalar


def full(op: FullOp, kernel: KernelBuilder) -> None:
    """The operand, broadcast."""
    kernel.finish(elementwise(kernel.ins, kernel.outs[0], lambda x: x))


def arange(op: ArangeOp, kernel: KernelBuilder) -> None:
    """start + i * step, computed in 64-bit integers."""
    out = kernel.outs[0]
    element = ir.ShapedType(out.type).element_type
    start, _, step = exact_dims(dims_of_attr(op.bounds.dims))
    first, stride = kernel.symbol(start), kernel.symbol(step)

    def body(_: ir.Value) -> ir.Value:
        offset = arith.MulIOp(linalg.IndexOp(0).result, stride).result
        value = arith.AddIOp(first, offset).result
        i64 = ir.IntegerType.get_signless(64)
        return convert(arith.IndexCastOp(i64, value).result, element)

    kernel.finish(*generic([], [out], [affine_map(1, [0])], [PARALLEL], body))


def tril(op: TrilOp, kernel: KernelBuilder) -> None:
    """Elements with column <= row + k."""
    _triangle(op, kernel, arith.CmpIPredicate.sle)


def triu(op: TriuOp, kernel: KernelBuilder) -> None:
    """Elements with column >= row + k."""
    _triangle(op, kernel, arith.CmpIPredicate.sge)


def _triangle(op: TrilOp | TriuOp, kernel: KernelBuilder, keeps: arith.CmpIPredicate) -> None:
    out = kernel.outs[0]
    rank = ir.RankedTensorType(out.type).rank
    shift = index(op.attributes["k"].value)

    def body(x: ir.Value) -> ir.Value:
        diagonal = arith.AddIOp(linalg.IndexOp(rank - 2).result, shift).result
        keep = arith.CmpIOp(keeps, linalg.IndexOp(rank - 1).result, diagonal).result
        return arith.SelectOp(keep, x, scalar(x.type, 0)).result

    kernel.finish(elementwise(kernel.ins, out, body))
