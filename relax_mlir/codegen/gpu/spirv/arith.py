"""Arithmetic: instructions where SPIR-V defines what MLIR does, else several of them."""

import struct

from relax_mlir.bindings import ir

from .casts import CASTS
from .emitter import (
    INDEX_BITS,
    Emitter,
    Rule,
    bits_of,
    is_bool,
    is_float,
    named,
    operand_type,
    result_type,
)

_LARGEST = (1 << (INDEX_BITS - 1)) - 1


def constant(emitter: Emitter, op: ir.OpView) -> None:
    """A number; an index beyond those of the device is the largest one."""
    kind, value = result_type(op), op.operation.attributes["value"]
    if isinstance(value, ir.FloatAttr):
        if is_float(kind):
            made = emitter.real(value.value, kind.width)
        else:
            made = emitter.integer(_bfloat_bits(value.value), 16)
    elif is_bool(kind):
        made = emitter.out.truth(bool(ir.IntegerAttr(value).value))
    else:
        number = ir.IntegerAttr(value).value
        if isinstance(kind, ir.IndexType):
            number = max(-_LARGEST, min(number, _LARGEST))
        made = emitter.integer(number, bits_of(kind))
    emitter.define(op, made)


def _bfloat_bits(value: float) -> int:
    return struct.unpack("<I", struct.pack("<f", value))[0] >> 16


def poison(emitter: Emitter, op: ir.OpView) -> None:
    """Any number."""
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


def _require_float(emitter: Emitter, op: ir.OpView) -> None:
    if not is_float(operand_type(op)):
        raise emitter.refusal(op, f"there is no arithmetic of {operand_type(op)}")


# Opcodes by the number of a predicate.
_INTEGER_ORDER = (170, 171, 177, 179, 173, 175, 176, 178, 172, 174)
_FLOAT_ORDER = {
    1: 180, 2: 186, 3: 190, 4: 184, 5: 188, 6: 182, 8: 181, 9: 187, 10: 191, 11: 185, 12: 189,
    13: 183,
}  # fmt: skip


def compare_integers(emitter: Emitter, op: ir.OpView) -> None:
    """A comparison of integers, or of truth values."""
    predicate = ir.IntegerAttr(op.operation.attributes["predicate"]).value
    a, b = emitter.operands(op)
    if is_bool(operand_type(op)):
        if predicate < 2:
            emitter.define(op, emitter.add((164, 165)[predicate], emitter.out.boolean(), a, b))
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
        same, joined = (180, 167) if predicate == 7 else (183, 166)
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
        bits = emitter.out.integer(kind.width)
        words = (emitter.add(124, bits, x) for x in (a, b))
        zero = emitter.add(124, type_, emitter.add(of_zeros, bits, *words))
        first = emitter.add(opcode, boolean, a, b)
        made = emitter.select(type_, first, a, b)
        made = emitter.select(type_, emitter.add(180, boolean, a, b), zero, made)
        no_a, no_b = (emitter.add(183, boolean, x, x) for x in (a, b))
        x, y = (a, b) if takes_nan else (b, a)
        made = emitter.select(type_, no_b, y, made)
        emitter.define(op, emitter.select(type_, no_a, x, made))

    return rule


ARITH: dict[str, Rule] = {
    **named("arith", {
        "constant": constant, "select": select, "cmpi": compare_integers, "cmpf": compare_floats,
        "addi": _integer(128, 165), "subi": _integer(130, 165), "muli": _integer(132, 167),
        "divui": _integer(134), "divsi": _integer(135), "remui": _integer(137),
        "remsi": _integer(138), "andi": _integer(199, 167), "ori": _integer(197, 166),
        "xori": _integer(198, 165), "shli": _integer(196), "shrui": _integer(194),
        "shrsi": _integer(195),
        "minsi": _extremum(177), "minui": _extremum(176), "maxsi": _extremum(173),
        "maxui": _extremum(172),
        "addf": _float(129), "subf": _float(131), "mulf": _float(133), "divf": _float(136),
        "remf": _float(140), "negf": _float(127),
        "maximumf": _float_extremum(186, 199, True), "minimumf": _float_extremum(184, 197, True),
        "maxnumf": _float_extremum(186, 199, False), "minnumf": _float_extremum(184, 197, False),
        **CASTS,
    }),
    "ub.poison": poison,
}  # fmt: skip
