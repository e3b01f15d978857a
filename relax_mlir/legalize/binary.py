"""Tensor programs of element-wise operators of two tensors."""

from collections.abc import Callable

from relax_mlir.bindings import arith, ir, math
from relax_mlir.dialects import graph

from . import scalars
from .kernel import KernelBuilder, elementwise, scalar
from .scalars import from_compute, to_compute

Body = Callable[[ir.Value, ir.Value], ir.Value]


def _zip(kernel: KernelBuilder, body: Body) -> None:
    """Applies `body` to pairs of elements, half precision widened to f32."""
    out = kernel.outs[0]
    element = ir.ShapedType(out.type).element_type

    def widened(a: ir.Value, b: ir.Value) -> ir.Value:
        result = body(to_compute(a), to_compute(b))
        return from_compute(result, element) if isinstance(result.type, ir.F32Type) else result

    kernel.finish(elementwise(kernel.ins, out, widened))


def _is_integer(value: ir.Value) -> bool:
    return isinstance(value.type, ir.IntegerType)


def add(op: graph.AddOp, kernel: KernelBuilder) -> None:
    """a + b; integers wrap."""
    _zip(kernel, scalars.add)


def subtract(op: graph.SubtractOp, kernel: KernelBuilder) -> None:
    """a - b; integers wrap."""
    _zip(kernel, scalars.subtract)


def multiply(op: graph.MultiplyOp, kernel: KernelBuilder) -> None:
    """a * b; integers wrap."""
    _zip(kernel, scalars.multiply)


def divide(op: graph.DivideOp, kernel: KernelBuilder) -> None:
    """a / b."""
    _zip(kernel, scalars.divide)


def maximum(op: graph.MaximumOp, kernel: KernelBuilder) -> None:
    """The greater; NaN if either is."""
    _zip(kernel, scalars.maximum)


def minimum(op: graph.MinimumOp, kernel: KernelBuilder) -> None:
    """The smaller; NaN if either is."""
    _zip(kernel, scalars.minimum)


def atan2(op: graph.Atan2Op, kernel: KernelBuilder) -> None:
    """`math.atan2` of each pair."""
    _zip(kernel, lambda a, b: math.Atan2Op(a, b).result)


def copysign(op: graph.CopysignOp, kernel: KernelBuilder) -> None:
    """`math.copysign` of each pair."""
    _zip(kernel, lambda a, b: math.CopySignOp(a, b).result)


def bitwise_and(op: graph.BitwiseAndOp, kernel: KernelBuilder) -> None:
    """`arith.andi` of each pair."""
    _zip(kernel, lambda a, b: arith.AndIOp(a, b).result)


def bitwise_or(op: graph.BitwiseOrOp, kernel: KernelBuilder) -> None:
    """`arith.ori` of each pair."""
    _zip(kernel, lambda a, b: arith.OrIOp(a, b).result)


def bitwise_xor(op: graph.BitwiseXorOp, kernel: KernelBuilder) -> None:
    """`arith.xori` of each pair."""
    _zip(kernel, lambda a, b: arith.XOrIOp(a, b).result)


def logical_and(op: graph.LogicalAndOp, kernel: KernelBuilder) -> None:
    """`arith.andi` of each pair."""
    _zip(kernel, lambda a, b: arith.AndIOp(a, b).result)


def logical_or(op: graph.LogicalOrOp, kernel: KernelBuilder) -> None:
    """`arith.ori` of each pair."""
    _zip(kernel, lambda a, b: arith.OrIOp(a, b).result)


def logical_xor(op: graph.LogicalXorOp, kernel: KernelBuilder) -> None:
    """`arith.xori` of each pair."""
    _zip(kernel, lambda a, b: arith.XOrIOp(a, b).result)


def floor_divide(op: graph.FloorDivideOp, kernel: KernelBuilder) -> None:
    """The quotient rounded down; an integer divided by 0 gives 0, the least one by -1 wraps."""

    def integers(a: ir.Value, b: ir.Value) -> ir.Value:
        zero = scalar(b.type, 0)
        quotient = arith.FloorDivSIOp(a, _safe_divisor(b)).result
        negated = arith.SelectOp(_equals(b, -1), scalars.subtract(zero, a), quotient).result
        return arith.SelectOp(_equals(b, 0), zero, negated).result

    def body(a: ir.Value, b: ir.Value) -> ir.Value:
        return integers(a, b) if _is_integer(a) else math.FloorOp(scalars.divide(a, b)).result

    _zip(kernel, body)


def remainder(op: graph.RemainderOp, kernel: KernelBuilder) -> None:
    """The remainder with the sign of the divisor; an integer modulo 0 gives 0."""

    def integers(a: ir.Value, b: ir.Value) -> ir.Value:
        divisor = _safe_divisor(b)
        quotient = arith.FloorDivSIOp(a, divisor).result
        return scalars.subtract(a, scalars.multiply(quotient, divisor))

    def body(a: ir.Value, b: ir.Value) -> ir.Value:
        return integers(a, b) if _is_integer(a) else _float_remainder(a, b)

    _zip(kernel, body)


def _safe_divisor(b: ir.Value) -> ir.Value:
    """1 in place of 0 and -1: machines trap on a zero divisor and on a quotient that overflows."""
    traps = arith.OrIOp(_equals(b, 0), _equals(b, -1)).result
    return arith.SelectOp(traps, scalar(b.type, 1), b).result


def _equals(value: ir.Value, constant: int) -> ir.Value:
    return arith.CmpIOp(arith.CmpIPredicate.eq, value, scalar(value.type, constant)).result


def _float_remainder(a: ir.Value, b: ir.Value) -> ir.Value:
    rest = arith.RemFOp(a, b).result
    zero = scalar(a.type, 0)
    nonzero = arith.CmpFOp(arith.CmpFPredicate.ONE, rest, zero).result
    product = scalars.multiply(math.CopySignOp(scalar(a.type, 1), rest).result, b)
    opposed = arith.CmpFOp(arith.CmpFPredicate.OLT, product, zero).result
    shifted = scalars.add(rest, b)
    wrong = arith.AndIOp(nonzero, opposed).result
    signed = arith.SelectOp(nonzero, rest, math.CopySignOp(rest, b).result).result
    return arith.SelectOp(wrong, shifted, signed).result


def power(op: graph.PowerOp, kernel: KernelBuilder) -> None:
    """a to the power b; integers wrap, and a negative exponent rounds the quotient towards 0."""

    def body(a: ir.Value, b: ir.Value) -> ir.Value:
        return _integer_power(a, b) if _is_integer(a) else math.PowFOp(a, b).result

    _zip(kernel, body)


def _integer_power(a: ir.Value, b: ir.Value) -> ir.Value:
    """Multiplies the squares of squares that the bits of b select, without branches."""
    zero, one, minus_one = (scalar(a.type, value) for value in (0, 1, -1))
    result, square = one, a
    for place in range(ir.IntegerType(a.type).width - 1):
        factor = arith.SelectOp(_has_bit(b, place), square, one).result
        result, square = scalars.multiply(result, factor), scalars.multiply(square, square)
    turned = arith.SelectOp(_has_bit(b, 0), minus_one, one).result
    inverse = arith.SelectOp(_equals(a, 1), one, zero).result
    inverse = arith.SelectOp(_equals(a, -1), turned, inverse).result
    negative = arith.CmpIOp(arith.CmpIPredicate.slt, b, zero).result
    return arith.SelectOp(negative, inverse, result).result


def _has_bit(value: ir.Value, place: int) -> ir.Value:
    bit = arith.AndIOp(value, scalar(value.type, 1 << place)).result
    return arith.CmpIOp(arith.CmpIPredicate.ne, bit, scalar(value.type, 0)).result


def hypot(op: graph.HypotOp, kernel: KernelBuilder) -> None:
    """max * sqrt(1 + (min / max)^2), which does not overflow early."""

    def body(a: ir.Value, b: ir.Value) -> ir.Value:
        a, b = math.AbsFOp(a).result, math.AbsFOp(b).result
        large, small = scalars.maximum(a, b), scalars.minimum(a, b)
        zero, one = scalar(a.type, 0), scalar(a.type, 1)
        infinite = arith.CmpFOp(
            arith.CmpFPredicate.OEQ, arith.MaxNumFOp(a, b).result, scalar(a.type, float("inf"))
        ).result
        empty = arith.CmpFOp(arith.CmpFPredicate.OEQ, large, zero).result
        ratio = scalars.divide(small, arith.SelectOp(empty, one, large).result)
        root = math.SqrtOp(scalars.add(one, scalars.multiply(ratio, ratio))).result
        return arith.SelectOp(
            infinite, scalar(a.type, float("inf")), scalars.multiply(large, root)
        ).result

    _zip(kernel, body)


def logaddexp(op: graph.LogaddexpOp, kernel: KernelBuilder) -> None:
    """max + log1p(exp(-|a - b|)); equal infinities stay."""

    def body(a: ir.Value, b: ir.Value) -> ir.Value:
        same = arith.CmpFOp(arith.CmpFPredicate.OEQ, a, b).result
        distance = math.AbsFOp(scalars.subtract(a, b)).result
        tail = math.Log1pOp(scalars.exp(scalars.negate(distance))).result
        general = scalars.add(scalars.maximum(a, b), tail)
        log2 = scalar(a.type, 0.6931471805599453)
        return arith.SelectOp(same, scalars.add(a, log2), general).result

    _zip(kernel, body)


def left_shift(op: graph.LeftShiftOp, kernel: KernelBuilder) -> None:
    """Bits moved up; a shift by the width or more gives 0."""
    _zip(kernel, lambda a, b: _shift(a, b, arith.ShLIOp, scalar(a.type, 0)))


def right_shift(op: graph.RightShiftOp, kernel: KernelBuilder) -> None:
    """Bits moved down, the sign coming in; a shift by the width or more leaves only the sign."""

    def body(a: ir.Value, b: ir.Value) -> ir.Value:
        last = scalar(b.type, ir.IntegerType(a.type).width - 1)
        return _shift(a, b, arith.ShRSIOp, arith.ShRSIOp(a, last).result)

    _zip(kernel, body)


def _shift(a: ir.Value, b: ir.Value, shift: type, beyond: ir.Value) -> ir.Value:
    width = scalar(b.type, ir.IntegerType(a.type).width)
    inside = arith.CmpIOp(arith.CmpIPredicate.ult, b, width).result
    places = arith.SelectOp(inside, b, scalar(b.type, 0)).result
    return arith.SelectOp(inside, shift(a, places).result, beyond).result


def _compare(kernel: KernelBuilder, floats: str, integers: str) -> None:
    def body(a: ir.Value, b: ir.Value) -> ir.Value:
        if _is_integer(a):
            # Booleans order as 0 and 1, not as the signed bits 0 and -1.
            unsigned = ir.IntegerType(a.type).width == 1 and integers not in ("eq", "ne")
            name = "u" + integers[1:] if unsigned else integers
            return arith.CmpIOp(getattr(arith.CmpIPredicate, name), a, b).result
        return arith.CmpFOp(getattr(arith.CmpFPredicate, floats), a, b).result

    kernel.finish(elementwise(kernel.ins, kernel.outs[0], body))


def equal(op: graph.EqualOp, kernel: KernelBuilder) -> None:
    """a == b."""
    _compare(kernel, "OEQ", "eq")


def not_equal(op: graph.NotEqualOp, kernel: KernelBuilder) -> None:
    """a != b."""
    _compare(kernel, "UNE", "ne")


def less(op: graph.LessOp, kernel: KernelBuilder) -> None:
    """a < b."""
    _compare(kernel, "OLT", "slt")


def less_equal(op: graph.LessEqualOp, kernel: KernelBuilder) -> None:
    """a <= b."""
    _compare(kernel, "OLE", "sle")


def greater(op: graph.GreaterOp, kernel: KernelBuilder) -> None:
    """a > b."""
    _compare(kernel, "OGT", "sgt")


def greater_equal(op: graph.GreaterEqualOp, kernel: KernelBuilder) -> None:
    """a >= b."""
    _compare(kernel, "OGE", "sge")
