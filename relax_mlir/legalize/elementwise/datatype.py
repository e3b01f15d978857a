"""Tensor programs of conversions between element types."""

from relax_mlir.bindings import arith, ir
from relax_mlir.dialects.graph import AstypeOp

from ..kernel import KernelBuilder, elementwise, scalar
from ..movement.manipulate import same_memory
from ..scalars import is_unsigned, to_compute


def astype(op: AstypeOp, kernel: KernelBuilder) -> None:
    """Converts each element."""
    element = ir.ShapedType(kernel.outs[0].type).element_type
    if kernel.keeps_elements:  # integers wrap
        same_memory(kernel)
        return
    kernel.finish(elementwise(kernel.ins, kernel.outs[0], lambda x: convert(x, element)))


def convert(value: ir.Value, target: ir.Type) -> ir.Value:
    """Converts a scalar; floats to integers truncate and clamp, to `i1` compare with 0."""
    if value.type == target:
        return value
    from_integer = isinstance(value.type, ir.IntegerType)
    to_integer = isinstance(target, ir.IntegerType)
    if to_integer and ir.IntegerType(target).width == 1:
        zero = scalar(value.type, 0)
        if from_integer:
            return arith.CmpIOp(arith.CmpIPredicate.ne, value, zero).result
        return arith.CmpFOp(arith.CmpFPredicate.UNE, value, zero).result
    if from_integer:
        return _from_integer(value, target)
    if to_integer:
        return _to_integer(to_compute(value), ir.IntegerType(target))
    return _between_floats(value, target)


def _from_integer(value: ir.Value, target: ir.Type) -> ir.Value:
    unsigned, width = is_unsigned(value), ir.IntegerType(value.type).width
    if not isinstance(target, ir.IntegerType):
        return (arith.UIToFPOp if unsigned else arith.SIToFPOp)(target, value).result
    if target.width < width:
        return arith.TruncIOp(target, value).result
    if target.width == width:
        return arith.BitcastOp(target, value).result
    return (arith.ExtUIOp if unsigned else arith.ExtSIOp)(target, value).result


def _to_integer(value: ir.Value, target: ir.IntegerType) -> ir.Value:
    """Truncates and clamps, since machines differ on overflow; NaN becomes 0."""
    unsigned, width = target.is_unsigned, target.width
    least, beyond = (0, 2**width) if unsigned else (-(2 ** (width - 1)), 2 ** (width - 1))
    low, high = scalar(value.type, least), scalar(value.type, beyond)
    above = arith.CmpFOp(arith.CmpFPredicate.OGE, value, high).result
    below = arith.CmpFOp(arith.CmpFPredicate.OLT, value, low).result
    nan = arith.CmpFOp(arith.CmpFPredicate.UNO, value, value).result
    outside = arith.OrIOp(arith.OrIOp(above, below).result, nan).result
    inside = arith.SelectOp(outside, scalar(value.type, 0), value).result
    result = (arith.FPToUIOp if unsigned else arith.FPToSIOp)(target, inside).result
    result = arith.SelectOp(above, scalar(target, beyond - 1), result).result
    return arith.SelectOp(below, scalar(target, least), result).result


def _between_floats(value: ir.Value, target: ir.Type) -> ir.Value:
    before, after = ir.FloatType(value.type).width, ir.FloatType(target).width
    if before < after:
        return arith.ExtFOp(target, value).result
    if before > after:
        return arith.TruncFOp(target, value).result
    return arith.TruncFOp(target, arith.ExtFOp(ir.F32Type.get(), value).result).result
