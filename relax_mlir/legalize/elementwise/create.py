"""Tensor programs that make tensors."""

from relax_mlir.bindings import arith, ir, linalg
from relax_mlir.dialects.graph import (
    ArangeOp,
    EyeOp,
    FullOp,
    OneHotOp,
    TrilOp,
    TriuOp,
    dims_of_attr,
    exact_dims,
    normalize_axis,
)

from ..kernel import PARALLEL, KernelBuilder, affine_map, elementwise, generic, index, scalar
from ..scalars import to_index
from .datatype import convert


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


def one_hot(op: OneHotOp, kernel: KernelBuilder) -> None:
    """Compares the index with the loop along the new axis."""
    out = kernel.outs[0]
    rank = ir.RankedTensorType(out.type).rank
    axis = normalize_axis(op.attributes["axis"].value, rank)

    def body(picked: ir.Value, on: ir.Value, off: ir.Value, _: ir.Value) -> ir.Value:
        return _if_equal(to_index(picked), linalg.IndexOp(axis).result, on, off)

    maps = [affine_map(rank, [i for i in range(rank) if i != axis])]
    maps += [affine_map(rank, [])] * 2 + [affine_map(rank, list(range(rank)))]
    kernel.finish(*generic(kernel.ins, [out], maps, [PARALLEL] * rank, body))


def eye(op: EyeOp, kernel: KernelBuilder) -> None:
    """1 where column == row + k."""
    out = kernel.outs[0]
    element = ir.ShapedType(out.type).element_type
    shift = index(op.attributes["k"].value)

    def body(_: ir.Value) -> ir.Value:
        diagonal = arith.AddIOp(linalg.IndexOp(0).result, shift).result
        one, zero = scalar(element, 1), scalar(element, 0)
        return _if_equal(diagonal, linalg.IndexOp(1).result, one, zero)

    kernel.finish(*generic([], [out], [affine_map(2, [0, 1])], [PARALLEL] * 2, body))


def _if_equal(a: ir.Value, b: ir.Value, then: ir.Value, otherwise: ir.Value) -> ir.Value:
    same = arith.CmpIOp(arith.CmpIPredicate.eq, a, b).result
    return arith.SelectOp(same, then, otherwise).result


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
