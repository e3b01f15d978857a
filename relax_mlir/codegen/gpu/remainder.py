"""Remainders of floats in integer arithmetic: devices have no exact instruction for them.

    %r = arith.remf %x, %y : f32

With |x| = m 2^e and |y| = n 2^f, the remainder is (m 2^(e - f) mod n) 2^f: long division by a few
bits at a time, as many as 64-bit integers have room for.
"""

from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, math, scf
from relax_mlir.codegen.vector_math.lanes import Lanes, absolute, copysign, ops_named, select
from relax_mlir.target import Cpu


def expand_remainders(module: ir.Module, cpu: Cpu) -> None:
    """Replaces `arith.remf` of scalars in place; results are exact."""
    for op in ops_named(module, {"arith.remf"}):
        with ir.InsertionPoint(op), op.location:
            x, y = (Lanes(operand, cpu) for operand in op.operands)
            type_ = ir.F32Type.get() if x.width < 32 else x.element
            result = _remainder(x.converted(type_), y.converted(type_)).converted(x.element)
        op.results[0].replace_all_uses_with(result.value)
        op.erase()


@dataclass(frozen=True)
class _Parts:
    """A float that is not negative: `mantissa` times 2 to the `exponent`, 64-bit integers.

    Exponents are counted from that of subnormal floats, which is 1.
    """

    mantissa: Lanes
    exponent: Lanes


def _remainder(x: Lanes, y: Lanes) -> Lanes:
    dividend, divisor = absolute(x), absolute(y)
    a, b = _parts(dividend), _parts(divisor)
    rest = _divided(a, b, room=63 - x.mantissa_bits)
    size = select(dividend < divisor, dividend, _float(rest, b.exponent, x))
    is_defined = (dividend < float("inf")) & (divisor > 0.0)
    return copysign(select(is_defined, size, x.like(float("nan"))), x)


def _parts(x: Lanes) -> _Parts:
    bits = x.bits()
    if x.width < 64:
        bits = x.wrap(arith.extui(ir.IntegerType.get_signless(64), bits.value))
    field, fraction = bits >> x.mantissa_bits, bits & ((1 << x.mantissa_bits) - 1)
    is_normal = field.differs(0)
    mantissa = select(is_normal, fraction | (1 << x.mantissa_bits), fraction)
    return _Parts(mantissa, select(is_normal, field, 1))


def _divided(a: _Parts, b: _Parts, room: int) -> Lanes:
    """The remainder in units of b; `room` is the count of bits above a mantissa."""
    wrap, long = b.mantissa.wrap, b.mantissa.type
    divisor = select(b.mantissa.differs(0), b.mantissa, 1)
    first = arith.remui(a.mantissa.value, divisor.value)
    loop = scf.WhileOp([long, long], [first, (a.exponent - b.exponent).value])
    before, after = (region.blocks.append(long, long) for region in loop.operation.regions)
    with ir.InsertionPoint(before):
        positive = arith.cmpi(arith.CmpIPredicate.sgt, before.arguments[1], divisor.like(0).value)
        scf.ConditionOp(positive, list(before.arguments))
    with ir.InsertionPoint(after):
        rest, left = map(wrap, after.arguments)
        bits = wrap(arith.minsi(left.value, left.like(room).value))
        shifted = arith.remui((rest << bits).value, divisor.value)
        scf.YieldOp([shifted, (left - bits).value])
    return wrap(loop.results[0])


def _float(rest: Lanes, exponent: Lanes, like: Lanes) -> Lanes:
    """`rest` times 2 to the `exponent`, exactly."""
    zeros = rest.wrap(math.ctlz(rest.value))
    spare = zeros - (63 - like.mantissa_bits)
    shift = rest.wrap(arith.minsi(spare.value, (exponent - 1).value))
    bits = (rest << shift) + ((exponent - shift - 1) << like.mantissa_bits)
    bits = select(rest.differs(0), bits, 0)
    if like.width < 64:
        bits = bits.narrowed(ir.IntegerType.get_signless(like.width))
    return bits.float_from_bits()
