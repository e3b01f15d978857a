"""Arithmetic: instructions where SPIR-V defines what MLIR does, else several of them."""

import math
import struct

from relax_mlir.bindings import ir

from .casts import CASTS
from .emitter import (
    LARGEST_INDEX,
    Emitter,
    Rule,
    bits_of,
    is_bool,
    is_float,
    named,
    operand_type,
    result_type,
)
from .opcodes import Op


def constant(emitter: Emitter, op: ir.OpView) -> None:
    """A constant; an index beyond those of the device is the largest one."""
    kind, value = result_type(op), op.operation.attributes["value"]
    if isinstance(value, ir.FloatAttr):
        if is_float(kind):
            made = emitter.real(value.value, bits_of(kind))
        else:
            made = emitter.integer(_bfloat_bits(value.value), 16)
    elif is_bool(kind):
        made = emitter.out.truth(bool(ir.IntegerAttr(value).value))
    else:
        integer = ir.IntegerAttr(value).value
        if isinstance(kind, ir.IndexType):
            integer = max(-LARGEST_INDEX, min(integer, LARGEST_INDEX))
        made = emitter.integer(integer, bits_of(kind))
    emitter.define(op, made)


def _bfloat_bits(value: float) -> int:
    return struct.unpack("<I", struct.pack("<f", value))[0] >> 16


def poison(emitter: Emitter, op: ir.OpView) -> None:
    """Any value."""
    emitter.define(op, emitter.out.null(emitter.type(result_type(op))))


def _integer(opcode: int, of_bool: int | None = None) -> Rule:
    def rule(emitter: Emitter, op: ir.OpView) -> None:
        kind = result_type(op)
        used = opcode
        if is_bool(kind):
            if of_bool is None:
                raise emitter.refusal(op, "is not known of truth values")
            used = of_bool
        emitter.define(op, emitter.add(used, emitter.type(kind), *emitter.operands(op)))

    return rule


def _float(opcode: int) -> Rule:
    def rule(emitter: Emitter, op: ir.OpView) -> None:
        _require_float(emitter, op)
        type_ = emitter.type(result_type(op))
        emitter.define(op, emitter.exact(opcode, type_, *emitter.operands(op)))

    return rule


def _multiply(emitter: Emitter, op: ir.OpView) -> None:
    """A product; compilers of drivers take one by the constant 0 to be 0, also of NaN."""
    if not any(map(_is_zero, op.operation.operands)):
        _float(Op.FMul)(emitter, op)
        return
    zero_first = _is_zero(op.operation.operands[0])
    factor, _ = reversed(emitter.operands(op)) if zero_first else emitter.operands(op)
    width = bits_of(result_type(op))
    word = emitter.out.integer(width)
    infinity = emitter.add(Op.Bitcast, word, emitter.real(math.inf, width))
    bits = emitter.add(Op.Bitcast, word, factor)
    size = emitter.add(Op.BitwiseAnd, word, bits, emitter.integer((1 << (width - 1)) - 1, width))
    is_finite = emitter.add(Op.ULessThan, emitter.out.boolean(), size, infinity)
    _by_zero(emitter, op, 0.0, is_finite)


def _divide(emitter: Emitter, op: ir.OpView) -> None:
    """A quotient; compilers of drivers take one by the constant 0 to be undefined."""
    if not _is_zero(op.operation.operands[1]):
        _float(Op.FDiv)(emitter, op)
        return
    is_ordered = emitter.add(Op.FOrdNotEqual, emitter.out.boolean(), *emitter.operands(op))
    _by_zero(emitter, op, math.inf, is_ordered)


def _is_zero(value: ir.Value) -> bool:
    """Whether a float is the constant 0 or -0."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return False
    return ir.FloatAttr(owner.attributes["value"]).value == 0


def _by_zero(emitter: Emitter, op: ir.OpView, size: float, is_defined: int) -> None:
    """Defines `size` with the sign of a product of the operands, or NaN, by words."""
    _require_float(emitter, op)
    kind = result_type(op)
    type_, width = emitter.type(kind), bits_of(kind)
    word = emitter.out.integer(width)
    bits = (emitter.add(Op.Bitcast, word, x) for x in emitter.operands(op))
    signs = emitter.add(Op.BitwiseXor, word, *bits)
    sign = emitter.add(Op.BitwiseAnd, word, signs, emitter.integer(1 << (width - 1), width))
    given = emitter.add(Op.Bitcast, word, emitter.real(size, width))
    made = emitter.add(Op.Bitcast, type_, emitter.add(Op.BitwiseOr, word, sign, given))
    emitter.define(op, emitter.select(type_, is_defined, made, emitter.real(math.nan, width)))


def _require_float(emitter: Emitter, op: ir.OpView) -> None:
    if not is_float(operand_type(op)):
        raise emitter.refusal(op, f"there is no arithmetic of {operand_type(op)}")


# By the values of predicates.
_INTEGER_ORDER = (
    Op.IEqual, Op.INotEqual, Op.SLessThan, Op.SLessThanEqual, Op.SGreaterThan,
    Op.SGreaterThanEqual, Op.ULessThan, Op.ULessThanEqual, Op.UGreaterThan, Op.UGreaterThanEqual,
)  # fmt: skip
_FLOAT_ORDER = {
    1: Op.FOrdEqual, 2: Op.FOrdGreaterThan, 3: Op.FOrdGreaterThanEqual, 4: Op.FOrdLessThan,
    5: Op.FOrdLessThanEqual, 6: Op.FOrdNotEqual, 8: Op.FUnordEqual, 9: Op.FUnordGreaterThan,
    10: Op.FUnordGreaterThanEqual, 11: Op.FUnordLessThan, 12: Op.FUnordLessThanEqual,
    13: Op.FUnordNotEqual,
}  # fmt: skip


def compare_integers(emitter: Emitter, op: ir.OpView) -> None:
    """A comparison of integers, or of truth values."""
    predicate = ir.IntegerAttr(op.operation.attributes["predicate"]).value
    a, b = emitter.operands(op)
    if is_bool(operand_type(op)):
        if predicate < 2:
            opcode = (Op.LogicalEqual, Op.LogicalNotEqual)[predicate]
            emitter.define(op, emitter.add(opcode, emitter.out.boolean(), a, b))
            return
        signed = -1 if predicate < 6 else 1
        i32 = ir.IntegerType.get_signless(32)
        a, b = (emitter.one_or_zero(x, i32, signed) for x in (a, b))
    opcode = _INTEGER_ORDER[predicate]
    emitter.define(op, emitter.add(opcode, emitter.out.boolean(), a, b))


def compare_floats(emitter: Emitter, op: ir.OpView) -> None:
    """A comparison of floats."""
    _require_float(emitter, op)
    predicate = ir.IntegerAttr(op.operation.attributes["predicate"]).value
    a, b = emitter.operands(op)
    boolean = emitter.out.boolean()
    if predicate in (0, 15):
        made = emitter.out.truth(predicate == 15)
    elif predicate in (7, 14):
        ordered, unordered = (Op.FOrdEqual, Op.LogicalAnd), (Op.FUnordNotEqual, Op.LogicalOr)
        same, joined = ordered if predicate == 7 else unordered
        x, y = (emitter.add(same, boolean, z, z) for z in (a, b))
        made = emitter.add(joined, boolean, x, y)
    else:
        made = emitter.add(_FLOAT_ORDER[predicate], boolean, a, b)
    emitter.define(op, made)


def select(emitter: Emitter, op: ir.OpView) -> None:
    """One of two values."""
    type_ = emitter.type(result_type(op))
    emitter.define(op, emitter.select(type_, *emitter.operands(op)))


def _extremum(opcode: int) -> Rule:
    """The value that compares before the other one."""

    def rule(emitter: Emitter, op: ir.OpView) -> None:
        kind = result_type(op)
        if is_bool(kind):
            raise emitter.refusal(op, "is not known of truth values")
        a, b = emitter.operands(op)
        first = emitter.add(opcode, emitter.out.boolean(), a, b)
        emitter.define(op, emitter.select(emitter.type(kind), first, a, b))

    return rule


def _float_extremum(opcode: int, of_zeros: int, takes_nan: bool) -> Rule:
    """The one of two floats that compares before the other, with NaN and the signs of zeros."""

    def rule(emitter: Emitter, op: ir.OpView) -> None:
        _require_float(emitter, op)
        kind = result_type(op)
        a, b = emitter.operands(op)
        type_, boolean = emitter.type(kind), emitter.out.boolean()
        bits = emitter.out.integer(bits_of(kind))
        words = (emitter.add(Op.Bitcast, bits, x) for x in (a, b))
        zero = emitter.add(Op.Bitcast, type_, emitter.add(of_zeros, bits, *words))
        first = emitter.add(opcode, boolean, a, b)
        made = emitter.select(type_, first, a, b)
        made = emitter.select(type_, emitter.add(Op.FOrdEqual, boolean, a, b), zero, made)
        no_a, no_b = (emitter.add(Op.FUnordNotEqual, boolean, x, x) for x in (a, b))
        x, y = (a, b) if takes_nan else (b, a)
        made = emitter.select(type_, no_b, y, made)
        emitter.define(op, emitter.select(type_, no_a, x, made))

    return rule


ARITH: dict[str, Rule] = {
    **named(
        "arith",
        {
            "constant": constant,
            "select": select,
            "cmpi": compare_integers,
            "cmpf": compare_floats,
            "addi": _integer(Op.IAdd, Op.LogicalNotEqual),
            "subi": _integer(Op.ISub, Op.LogicalNotEqual),
            "muli": _integer(Op.IMul, Op.LogicalAnd),
            "divui": _integer(Op.UDiv),
            "divsi": _integer(Op.SDiv),
            "remui": _integer(Op.UMod),
            "remsi": _integer(Op.SRem),
            "andi": _integer(Op.BitwiseAnd, Op.LogicalAnd),
            "ori": _integer(Op.BitwiseOr, Op.LogicalOr),
            "xori": _integer(Op.BitwiseXor, Op.LogicalNotEqual),
            "shli": _integer(Op.ShiftLeftLogical),
            "shrui": _integer(Op.ShiftRightLogical),
            "shrsi": _integer(Op.ShiftRightArithmetic),
            "minsi": _extremum(Op.SLessThan),
            "minui": _extremum(Op.ULessThan),
            "maxsi": _extremum(Op.SGreaterThan),
            "maxui": _extremum(Op.UGreaterThan),
            "addf": _float(Op.FAdd),
            "subf": _float(Op.FSub),
            "mulf": _multiply,
            "divf": _divide,
            "negf": _float(Op.FNegate),
            "maximumf": _float_extremum(Op.FOrdGreaterThan, Op.BitwiseAnd, True),
            "minimumf": _float_extremum(Op.FOrdLessThan, Op.BitwiseOr, True),
            "maxnumf": _float_extremum(Op.FOrdGreaterThan, Op.BitwiseAnd, False),
            "minnumf": _float_extremum(Op.FOrdLessThan, Op.BitwiseOr, False),
            **CASTS,
        },
    ),
    "ub.poison": poison,
}
