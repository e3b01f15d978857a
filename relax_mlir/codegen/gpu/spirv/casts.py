"""Conversions of integers and floats."""

from relax_mlir.bindings import ir

from .emitter import (
    INDEX_BITS,
    LARGEST_INDEX,
    Emitter,
    Rule,
    bits_of,
    is_bool,
    is_float,
    operand_type,
    result_type,
)
from .opcodes import Op


def _to_integer(is_signed: bool) -> Rule:
    """From an integer of another width."""

    def rule(emitter: Emitter, op: ir.OpView) -> None:
        source, target = operand_type(op), result_type(op)
        (x,) = emitter.operands(op)
        fitting = INDEX_BITS if is_signed else INDEX_BITS - 1
        if isinstance(target, ir.IndexType) and bits_of(source) > fitting:
            x = _clamped(emitter, x, bits_of(source), is_signed)
        emitter.define(op, resized(emitter, x, source, target, is_signed))

    return rule


def _clamped(emitter: Emitter, x: int, bits: int, is_signed: bool) -> int:
    """An integer that is no index, as one that is out of bounds of all memory."""
    integer, boolean = emitter.out.integer(bits), emitter.out.boolean()
    largest, least = emitter.integer(LARGEST_INDEX, bits), emitter.integer(-LARGEST_INDEX, bits)
    x = emitter.select(
        integer,
        emitter.add(Op.SGreaterThan if is_signed else Op.UGreaterThan, boolean, x, largest),
        largest,
        x,
    )
    if not is_signed:
        return x
    return emitter.select(integer, emitter.add(Op.SLessThan, boolean, x, least), least, x)


def resized(emitter: Emitter, x: int, source: ir.Type, target: ir.Type, is_signed: bool) -> int:
    """An integer in another width."""
    if is_bool(source):
        return x if is_bool(target) else emitter.one_or_zero(x, target, -1 if is_signed else 1)
    if is_bool(target):
        width = bits_of(source)
        low = emitter.add(Op.BitwiseAnd, emitter.type(source), x, emitter.integer(1, width))
        return emitter.add(Op.INotEqual, emitter.out.boolean(), low, emitter.integer(0, width))
    if bits_of(source) == bits_of(target):
        return x
    if is_signed and (bits_of(source), bits_of(target)) == (32, 64):
        return _sign_extended(emitter, x)
    return emitter.add(Op.SConvert if is_signed else Op.UConvert, emitter.type(target), x)


def _sign_extended(emitter: Emitter, x: int) -> int:
    """A word as 64 bits, by arithmetic: Mesa 22 compares what `SConvert` makes of it wrongly."""
    i64, sign = emitter.out.integer(64), emitter.integer(1 << 31, 64)
    biased = emitter.add(Op.BitwiseXor, i64, emitter.add(Op.UConvert, i64, x), sign)
    return emitter.add(Op.ISub, i64, biased, sign)


def _to_float(is_signed: bool) -> Rule:
    def rule(emitter: Emitter, op: ir.OpView) -> None:
        source, target = operand_type(op), result_type(op)
        (x,) = emitter.operands(op)
        if not is_float(target):
            raise emitter.refusal(op, f"makes {target}")
        if is_bool(source):
            made = emitter.one_or_zero(x, target, -1 if is_signed else 1)
        else:
            made = emitter.add(
                Op.ConvertSToF if is_signed else Op.ConvertUToF, emitter.type(target), x
            )
        emitter.define(op, made)

    return rule


def _from_float(opcode: int) -> Rule:
    def rule(emitter: Emitter, op: ir.OpView) -> None:
        if is_bool(result_type(op)) or not is_float(operand_type(op)):
            raise emitter.refusal(op, f"makes {result_type(op)} of {operand_type(op)}")
        type_ = emitter.type(result_type(op))
        emitter.define(op, emitter.add(opcode, type_, *emitter.operands(op)))

    return rule


def _between_floats(emitter: Emitter, op: ir.OpView) -> None:
    if isinstance(operand_type(op), ir.BF16Type) and is_float(result_type(op)):
        emitter.define(op, _from_bfloat(emitter, emitter.operands(op)[0], result_type(op)))
        return
    if not is_float(operand_type(op)) or not is_float(result_type(op)):
        raise emitter.refusal(op, f"makes {result_type(op)} of {operand_type(op)}")
    type_ = emitter.type(result_type(op))
    emitter.define(op, emitter.add(Op.FConvert, type_, *emitter.operands(op)))


def _from_bfloat(emitter: Emitter, x: int, target: ir.Type) -> int:
    """A float of the bits of a bf16, which are the upper ones of an f32."""
    word = emitter.add(Op.UConvert, emitter.out.integer(32), x)
    word = emitter.add(Op.ShiftLeftLogical, emitter.out.integer(32), word, emitter.integer(16))
    single = emitter.add(Op.Bitcast, emitter.out.real(32), word)
    if isinstance(target, ir.F32Type):
        return single
    return emitter.add(Op.FConvert, emitter.type(target), single)


def _same_bits(emitter: Emitter, op: ir.OpView) -> None:
    (x,) = emitter.operands(op)
    source, target = emitter.type(operand_type(op)), emitter.type(result_type(op))
    emitter.define(op, x if source == target else emitter.add(Op.Bitcast, target, x))


CASTS: dict[str, Rule] = {
    "extui": _to_integer(False),
    "extsi": _to_integer(True),
    "trunci": _to_integer(False),
    "index_cast": _to_integer(True),
    "index_castui": _to_integer(False),
    "sitofp": _to_float(True),
    "uitofp": _to_float(False),
    "fptosi": _from_float(Op.ConvertFToS),
    "fptoui": _from_float(Op.ConvertFToU),
    "extf": _between_floats,
    "truncf": _between_floats,
    "bitcast": _same_bits,
}
