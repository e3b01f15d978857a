"""Functions that are left when all others are expanded."""

from relax_mlir.bindings import ir

from .casts import resized
from .emitter import Emitter, Rule, bits_of, is_float, named, operand_type, result_type
from .multiply_add import fma
from .opcodes import Glsl, Op


def _glsl(function: Glsl) -> Rule:
    def rule(emitter: Emitter, op: ir.OpView) -> None:
        if not is_float(result_type(op)):
            raise emitter.refusal(op, f"there is no arithmetic of {result_type(op)}")
        made = emitter.glsl(function, emitter.type(result_type(op)), *emitter.operands(op))
        emitter.define(op, made)

    return rule


def _rsqrt(emitter: Emitter, op: ir.OpView) -> None:
    kind = result_type(op)
    root = emitter.glsl(Glsl.Sqrt, emitter.type(kind), *emitter.operands(op))
    one = emitter.real(1.0, bits_of(kind))
    emitter.define(op, emitter.exact(Op.FDiv, emitter.type(kind), one, root))


def _absf(emitter: Emitter, op: ir.OpView) -> None:
    (x,) = emitter.operands(op)
    emitter.define(op, _with_sign(emitter, result_type(op), x, None))


def _copysign(emitter: Emitter, op: ir.OpView) -> None:
    emitter.define(op, _with_sign(emitter, result_type(op), *emitter.operands(op)))


def _with_sign(emitter: Emitter, kind: ir.Type, x: int, sign: int | None) -> int:
    """A float with the sign of another one, or without a sign."""
    width = bits_of(kind)
    bits, type_ = emitter.out.integer(width), emitter.type(kind)
    is_bits = bits == type_  # of bf16

    def of(y: int, mask: int) -> int:
        word = y if is_bits else emitter.add(Op.Bitcast, bits, y)
        return emitter.add(Op.BitwiseAnd, bits, word, emitter.integer(mask, width))

    top = 1 << (width - 1)
    made = of(x, top - 1)
    if sign is not None:
        made = emitter.add(Op.BitwiseOr, bits, made, of(sign, top))
    return made if is_bits else emitter.add(Op.Bitcast, type_, made)


def _round(emitter: Emitter, op: ir.OpView) -> None:
    """To the nearest integer, from the middle away from zero."""
    kind = result_type(op)
    (x,) = emitter.operands(op)
    type_ = emitter.type(kind)
    whole = emitter.glsl(Glsl.Trunc, type_, x)
    rest = _with_sign(emitter, kind, emitter.exact(Op.FSub, type_, x, whole), None)
    is_far = emitter.add(
        Op.FOrdGreaterThanEqual, emitter.out.boolean(), rest, emitter.real(0.5, bits_of(kind))
    )
    one = _with_sign(emitter, kind, emitter.real(1.0, bits_of(kind)), x)
    further = emitter.exact(Op.FAdd, type_, whole, one)
    emitter.define(op, _with_sign(emitter, kind, emitter.select(type_, is_far, further, whole), x))


def _is(test: str) -> Rule:
    def rule(emitter: Emitter, op: ir.OpView) -> None:
        kind = operand_type(op)
        (x,) = emitter.operands(op)
        boolean = emitter.out.boolean()
        if test == "nan":
            emitter.define(op, emitter.add(Op.FUnordNotEqual, boolean, x, x))
            return
        size = _with_sign(emitter, kind, x, None)
        opcode = 180 if test == "inf" else 184
        infinity = emitter.real(float("inf"), bits_of(kind))
        emitter.define(op, emitter.add(opcode, boolean, size, infinity))

    return rule


def _absi(emitter: Emitter, op: ir.OpView) -> None:
    kind = result_type(op)
    (x,) = emitter.operands(op)
    type_, zero = emitter.type(kind), emitter.integer(0, bits_of(kind))
    is_negative = emitter.add(Op.SLessThan, emitter.out.boolean(), x, zero)
    emitter.define(op, emitter.select(type_, is_negative, emitter.add(Op.ISub, type_, zero, x), x))


def _counting(count: str) -> Rule:
    """A count of bits, which SPIR-V knows of 32 bits."""

    def rule(emitter: Emitter, op: ir.OpView) -> None:
        kind = result_type(op)
        width, i32 = bits_of(kind), ir.IntegerType.get_signless(32)
        (x,) = emitter.operands(op)
        low = resized(emitter, x, kind, i32, False)
        if width < 32:
            made = _count(emitter, count, low, width)
        elif width == 32:
            made = _count(emitter, count, low, 32)
        else:
            double = emitter.type(kind)
            top = emitter.add(Op.ShiftRightLogical, double, x, emitter.integer(32, 64))
            high = resized(emitter, top, kind, i32, False)
            made = _joined(emitter, count, low, high)
        emitter.define(op, resized(emitter, made, i32, kind, False))

    return rule


def _joined(emitter: Emitter, count: str, low: int, high: int) -> int:
    """The count of 64 bits, from those of the halves."""
    type_, boolean = emitter.out.integer(32), emitter.out.boolean()
    a, b = (_count(emitter, count, x, 32) for x in (low, high))
    if count == "ctpop":
        return emitter.add(Op.IAdd, type_, a, b)
    first, second, word = (b, a, high) if count == "ctlz" else (a, b, low)
    is_empty = emitter.add(Op.IEqual, boolean, word, emitter.integer(0))
    both = emitter.add(Op.IAdd, type_, second, emitter.integer(32))
    return emitter.select(type_, is_empty, both, first)


def _count(emitter: Emitter, count: str, x: int, width: int) -> int:
    """The count of the low bits of a word, all others of which are zero."""
    type_, boolean = emitter.out.integer(32), emitter.out.boolean()
    if count == "ctpop":
        return emitter.add(Op.BitCount, type_, x)
    if count == "ctlz":  # the highest bit is -1 of zero
        highest = emitter.glsl(Glsl.FindUMsb, type_, x)
        return emitter.add(Op.ISub, type_, emitter.integer(width - 1), highest)
    is_zero = emitter.add(Op.IEqual, boolean, x, emitter.integer(0))
    return emitter.select(
        type_, is_zero, emitter.integer(width), emitter.glsl(Glsl.FindILsb, type_, x)
    )


MATH: dict[str, Rule] = named(
    "math",
    {
        "sqrt": _glsl(Glsl.Sqrt),
        "floor": _glsl(Glsl.Floor),
        "ceil": _glsl(Glsl.Ceil),
        "trunc": _glsl(Glsl.Trunc),
        "roundeven": _glsl(Glsl.RoundEven),
        "round": _round,
        "fma": fma,
        "rsqrt": _rsqrt,
        "absf": _absf,
        "copysign": _copysign,
        "absi": _absi,
        "isnan": _is("nan"),
        "isinf": _is("inf"),
        "isfinite": _is("finite"),
        **{name: _counting(name) for name in ("ctpop", "ctlz", "cttz")},
    },
)
