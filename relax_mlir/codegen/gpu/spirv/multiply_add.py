"""Fused multiply-adds: SPIR-V's `Fma` may round twice, and expansions of functions rely on one.

    math.fma %a, %b, %c fastmath<contract>      ->      Fma
    math.fma %a, %b, %c                         ->      is_fused ? Fma : (sums of exact parts)

`is_fused` is a constant that the runtime gives each kernel, after it has tried the device; so a
device without the instruction computes the parts, and others skip them.

Source: Dekker, "A floating-point technique for extending the available precision" (1971).
"""

import re

from relax_mlir.bindings import ir

from .emitter import Emitter, bits_of, result_type
from .opcodes import Glsl, Op

FUSED = 0
"""The index of the constant."""
_LOW_BITS = {32: 12, 64: 27}


def fma(emitter: Emitter, op: ir.OpView) -> None:
    """A multiply-add that rounds once, unless it has the flag `contract`."""
    kind = result_type(op)
    type_, ids = emitter.type(kind), emitter.operands(op)
    fused = emitter.exact(Op.ExtInst, type_, emitter.out.math, Glsl.Fma, *ids)
    if bits_of(kind) in _LOW_BITS and not _may_round_twice(op):
        parts = _in_parts(emitter, kind, *ids)
        fused = emitter.select(type_, emitter.out.truth_given(FUSED), fused, parts)
    emitter.define(op, fused)


def _may_round_twice(op: ir.OpView) -> bool:
    return re.search(r"\b(contract|fast)\b", str(op.operation.attributes["fastmath"])) is not None


def _in_parts(emitter: Emitter, kind: ir.Type, a: int, b: int, c: int) -> int:
    """The product as a sum of two floats, and its sum with another one likewise."""
    type_ = emitter.type(kind)

    def do(opcode: int, x: int, y: int) -> int:
        return emitter.exact(opcode, type_, x, y)

    (a1, a2), (b1, b2) = (_halves(emitter, kind, x) for x in (a, b))
    product = do(Op.FMul, a, b)
    rest = do(Op.FSub, do(Op.FMul, a1, b1), product)
    rest = do(Op.FAdd, do(Op.FAdd, rest, do(Op.FMul, a1, b2)), do(Op.FMul, a2, b1))
    rest = do(Op.FAdd, rest, do(Op.FMul, a2, b2))
    total = do(Op.FAdd, product, c)
    taken = do(Op.FSub, total, product)
    lost = do(Op.FSub, product, do(Op.FSub, total, taken))
    lost = do(Op.FAdd, do(Op.FAdd, lost, do(Op.FSub, c, taken)), rest)
    exact = do(Op.FAdd, total, lost)
    # An infinite total is the result, and the parts are NaN; a total of zero alone has its sign.
    zero = emitter.real(0.0, bits_of(kind))
    is_exact = emitter.add(Op.FOrdNotEqual, emitter.out.boolean(), exact, zero)
    return emitter.select(type_, is_exact, exact, total)


def _halves(emitter: Emitter, kind: ir.Type, x: int) -> tuple[int, int]:
    """A float as the sum of two that have half of its digits."""
    type_, bits = emitter.type(kind), emitter.out.integer(bits_of(kind))
    mask = emitter.integer(-1 << _LOW_BITS[bits_of(kind)], bits_of(kind))
    word = emitter.add(Op.BitwiseAnd, bits, emitter.add(Op.Bitcast, bits, x), mask)
    upper = emitter.add(Op.Bitcast, type_, word)
    return upper, emitter.exact(Op.FSub, type_, x, upper)
