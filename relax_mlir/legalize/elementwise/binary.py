"""Tensor programs of element-wise operators of two tensors."""

from collections.abc import Callable
from math import inf, nan

from relax_mlir.bindings import arith, ir, math
from relax_mlir.dialects import graph

from .. import scalars
from ..kernel import KernelBuilder, elementwise, scalar
from ..scalars import from_compute, is_unsigned, named, to_compute

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
        if is_unsigned(a):
            quotient = arith.DivUIOp(a, _safe_divisor(b)).result
            return arith.SelectOp(_equals(b, 0), zero, quotient).result
        quotient = arith.FloorDivSIOp(a, _safe_divisor(b)).result
        negated = arith.SelectOp(_equals(b, -1), scalars.subtract(zero, a), quotient).result
        return arith.SelectOp(_equals(b, 0), zero, negated).result

    def body(a: ir.Value, b: ir.Value) -> ir.Value:
        return integers(a, b) if _is_integer(a) else _floor_of_quotient(a, b)

    _zip(kernel, body)


def _floor_of_quotient(a: ir.Value, b: ir.Value) -> ir.Value:
    """The floor of the exact quotient, which is that of the rounded one, or one less.

    The sign of the residual, dividend minus product with the divisor, decides.
    """
    infinity, zero = scalar(a.type, inf), scalar(a.type, 0)
    whole = math.FloorOp(scalars.divide(a, b)).result
    rest = math.FmaOp(scalars.negate(whole), b, a).result
    rest = arith.SelectOp(_has_magnitude(b, infinity), a, rest).result
    signed = scalars.multiply(rest, math.CopySignOp(scalar(a.type, 1), b).result)
    beyond = arith.CmpFOp(arith.CmpFPredicate.OLT, signed, zero).result
    lower = scalars.subtract(whole, scalar(a.type, 1))
    whole = arith.SelectOp(beyond, lower, whole).result
    # An infinite dividend has no residual; for a divisor of 0 the quotient is infinite too.
    divided = arith.CmpFOp(arith.CmpFPredicate.UNE, b, zero).result
    undefined = arith.AndIOp(_has_magnitude(a, infinity), divided).result
    return arith.SelectOp(undefined, scalar(a.type, nan), whole).result


def _has_magnitude(x: ir.Value, magnitude: ir.Value) -> ir.Value:
    return arith.CmpFOp(arith.CmpFPredicate.OEQ, math.AbsFOp(x).result, magnitude).result


def remainder(op: graph.RemainderOp, kernel: KernelBuilder) -> None:
    """The remainder with the sign of the divisor; an integer modulo 0 gives 0."""

    def integers(a: ir.Value, b: ir.Value) -> ir.Value:
        divisor = _safe_divisor(b)
        if is_unsigned(a):
            return arith.RemUIOp(a, divisor).result
        quotient = arith.FloorDivSIOp(a, divisor).result
        return scalars.subtract(a, scalars.multiply(quotient, divisor))

    def body(a: ir.Value, b: ir.Value) -> ir.Value:
        return integers(a, b) if _is_integer(a) else _float_remainder(a, b)

    _zip(kernel, body)


def _safe_divisor(b: ir.Value) -> ir.Value:
    """Replaces 0 and -1 by 1: machines trap on a zero divisor and on an overflowing quotient."""
    traps = _equals(b, 0)
    if not is_unsigned(b):
        traps = arith.OrIOp(traps, _equals(b, -1)).result
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
    """Square-and-multiply over the bits of b, without branches."""
    zero, one, minus_one = (scalar(a.type, value) for value in (0, 1, -1))
    result, square = one, a
    for bit in range(ir.IntegerType(a.type).width - (not is_unsigned(a))):
        factor = arith.SelectOp(_has_bit(b, bit), square, one).result
        result, square = scalars.multiply(result, factor), scalars.multiply(square, square)
    if is_unsigned(a):
        return result
    signed = arith.SelectOp(_has_bit(b, 0), minus_one, one).result
    inverse = arith.SelectOp(_equals(a, 1), one, zero).result
    inverse = arith.SelectOp(_equals(a, -1), signed, inverse).result
    negative = arith.CmpIOp(arith.CmpIPredicate.slt, b, zero).result
    return arith.SelectOp(negative, inverse, result).result


def _has_bit(value: ir.Value, bit: int) -> ir.Value:
    masked = arith.AndIOp(value, scalar(value.type, 1 << bit)).result
    return arith.CmpIOp(arith.CmpIPredicate.ne, masked, scalar(value.type, 0)).result


def hypot(op: graph.HypotOp, kernel: KernelBuilder) -> None:
    """The square root of the sum of squares; infinite if one is, even if the other is NaN."""

    def body(a: ir.Value, b: ir.Value) -> ir.Value:
        is_double = isinstance(a.type, ir.F64Type)
        length = _scaled_length(a, b) if is_double else _length_in_double(a, b)
        infinity = scalar(a.type, inf)
        infinite = arith.OrIOp(_has_magnitude(a, infinity), _has_magnitude(b, infinity)).result
        return arith.SelectOp(infinite, infinity, length).result

    _zip(kernel, body)


def _length_in_double(a: ir.Value, b: ir.Value) -> ir.Value:
    """The length in f64, whose range and precision suffice for squares of f32."""
    a, b = (arith.ExtFOp(ir.F64Type.get(), x).result for x in (a, b))
    squares = scalars.add(scalars.multiply(a, a), scalars.multiply(b, b))
    return arith.TruncFOp(ir.F32Type.get(), math.SqrtOp(squares).result).result


def _scaled_length(a: ir.Value, b: ir.Value) -> ir.Value:
    """The length h in f64, scaled so that squares stay in range, minus (h^2 - a^2 - b^2) / 2h.

    Source: arXiv 1904.09481, "fused" algorithm.
    """
    a, b = math.AbsFOp(a).result, math.AbsFOp(b).result
    large, small = scalars.maximum(a, b), scalars.minimum(a, b)
    factor, back = scalar(a.type, 1), scalar(a.type, 1)
    for predicate, bound, exponent in (("OGT", 2.0**500, -600), ("OLT", 2.0**-450, 600)):
        outside = arith.CmpFOp(
            getattr(arith.CmpFPredicate, predicate), large, scalar(a.type, bound)
        ).result
        factor = arith.SelectOp(outside, scalar(a.type, 2.0**exponent), factor).result
        back = arith.SelectOp(outside, scalar(a.type, 2.0**-exponent), back).result
    large, small = scalars.multiply(large, factor), scalars.multiply(small, factor)
    square = scalars.multiply(large, large)
    root = math.SqrtOp(math.FmaOp(small, small, square).result).result
    # Differences of exact products, however they are fused.
    excess = math.FmaOp(root, root, scalars.negate(square)).result
    excess = math.FmaOp(scalars.negate(small), small, excess).result
    lost = math.FmaOp(large, large, scalars.negate(square)).result
    half = scalars.multiply(scalars.subtract(lost, excess), scalar(a.type, 0.5))
    empty = arith.CmpFOp(arith.CmpFPredicate.OEQ, root, scalar(a.type, 0)).result
    divisor = arith.SelectOp(empty, scalar(a.type, 1), root).result
    return scalars.multiply(scalars.add(root, scalars.divide(half, divisor)), back)


def logaddexp(op: graph.LogaddexpOp, kernel: KernelBuilder) -> None:
    """max + log1p(exp(-|a - b|)), in f64."""

    def body(a: ir.Value, b: ir.Value) -> ir.Value:
        double, element = ir.F64Type.get(), a.type
        a, b = (arith.ExtFOp(double, x).result if element != double else x for x in (a, b))
        # The difference of equal infinities is NaN.
        same = arith.CmpFOp(arith.CmpFPredicate.OEQ, a, b).result
        difference = scalars.subtract(a, b)
        difference = arith.SelectOp(same, scalar(double, 0), difference).result
        distance = math.AbsFOp(difference).result
        tail = math.Log1pOp(scalars.exp(scalars.negate(distance))).result
        result = named("logaddexp", scalars.add(scalars.maximum(a, b), tail))
        return from_compute(result, element)

    kernel.finish(elementwise(kernel.ins, kernel.outs[0], body))


def left_shift(op: graph.LeftShiftOp, kernel: KernelBuilder) -> None:
    """Shift left; a shift by the width or more gives 0."""
    _zip(kernel, lambda a, b: _shift(a, b, arith.ShLIOp, scalar(a.type, 0)))


def logical_right_shift(op: graph.LogicalRightShiftOp, kernel: KernelBuilder) -> None:
    """Bits moved down, zeros coming in; a shift by the width or more gives 0."""
    _zip(kernel, lambda a, b: _shift(a, b, arith.ShRUIOp, scalar(a.type, 0)))


def right_shift(op: graph.RightShiftOp, kernel: KernelBuilder) -> None:
    """Arithmetic shift right; a shift by the width or more leaves only the sign."""

    def body(a: ir.Value, b: ir.Value) -> ir.Value:
        if is_unsigned(a):
            return _shift(a, b, arith.ShRUIOp, scalar(a.type, 0))
        last = scalar(b.type, ir.IntegerType(a.type).width - 1)
        return _shift(a, b, arith.ShRSIOp, arith.ShRSIOp(a, last).result)

    _zip(kernel, body)


def _shift(a: ir.Value, b: ir.Value, shift: type, beyond: ir.Value) -> ir.Value:
    width = scalar(b.type, ir.IntegerType(a.type).width)
    inside = arith.CmpIOp(arith.CmpIPredicate.ult, b, width).result
    amount = arith.SelectOp(inside, b, scalar(b.type, 0)).result
    return arith.SelectOp(inside, shift(a, amount).result, beyond).result


def _compare(kernel: KernelBuilder, floats: str, integers: Body) -> None:
    def body(a: ir.Value, b: ir.Value) -> ir.Value:
        if _is_integer(a):
            return integers(a, b)
        return arith.CmpFOp(getattr(arith.CmpFPredicate, floats), a, b).result

    kernel.finish(elementwise(kernel.ins, kernel.outs[0], body))


def equal(op: graph.EqualOp, kernel: KernelBuilder) -> None:
    """a == b."""
    _compare(kernel, "OEQ", lambda a, b: arith.CmpIOp(arith.CmpIPredicate.eq, a, b).result)


def not_equal(op: graph.NotEqualOp, kernel: KernelBuilder) -> None:
    """a != b."""
    _compare(kernel, "UNE", lambda a, b: arith.CmpIOp(arith.CmpIPredicate.ne, a, b).result)


def less(op: graph.LessOp, kernel: KernelBuilder) -> None:
    """a < b."""
    _compare(kernel, "OLT", lambda a, b: scalars.compare("lt", a, b))


def less_equal(op: graph.LessEqualOp, kernel: KernelBuilder) -> None:
    """a <= b."""
    _compare(kernel, "OLE", lambda a, b: scalars.compare("le", a, b))


def greater(op: graph.GreaterOp, kernel: KernelBuilder) -> None:
    """a > b."""
    _compare(kernel, "OGT", lambda a, b: scalars.compare("gt", a, b))


def greater_equal(op: graph.GreaterEqualOp, kernel: KernelBuilder) -> None:
    """a >= b."""
    _compare(kernel, "OGE", lambda a, b: scalars.compare("ge", a, b))
