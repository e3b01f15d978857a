"""Bits of integers: shifts, fields, counts, permutations of bytes."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from relax_mlir.interpreter.ptx.kinds import KINDS
from relax_mlir.interpreter.ptx.program import Instruction
from relax_mlir.interpreter.ptx.threads import Operands, Step

from .common import Decoder, computed, kind_of, plain

_WORD = KINDS["u32"]


def _shift_left(instruction: Instruction, operands: Operands) -> Step:
    kind = kind_of(instruction)
    width = 8 * kind.bits.itemsize

    def shift(x: np.ndarray, by: np.ndarray) -> np.ndarray:
        shifted = x << np.minimum(by, width - 1).astype(kind.dtype)
        return np.where(by < width, shifted, kind.dtype.type(0))

    return computed(instruction, operands, shift, sources=(kind, _WORD))


def _shift_right(instruction: Instruction, operands: Operands) -> Step:
    kind = kind_of(instruction)
    width = 8 * kind.bits.itemsize

    def shift(x: np.ndarray, by: np.ndarray) -> np.ndarray:
        shifted = x >> np.minimum(by, width - 1).astype(kind.dtype)
        return shifted if kind.is_signed else np.where(by < width, shifted, kind.dtype.type(0))

    return computed(instruction, operands, shift, sources=(kind, _WORD))


def _funnel_shift(instruction: Instruction, operands: Operands) -> Step:
    """Shifts two words as one, and keeps the upper (left) or lower one."""
    left, wraps = "l" in instruction.modifiers, "wrap" in instruction.modifiers

    def shift(low: np.ndarray, high: np.ndarray, by: np.ndarray) -> np.ndarray:
        both = (high.astype(np.uint64) << np.uint64(32)) | low
        by = (by & np.uint32(31) if wraps else np.minimum(by, np.uint32(32))).astype(np.uint64)
        shifted = (both << by) >> np.uint64(32) if left else both >> by
        return shifted.astype(np.uint32)

    return computed(instruction, operands, shift, sources=(_WORD, _WORD, _WORD))


def _extract(instruction: Instruction, operands: Operands) -> Step:
    """A field of bits, with its sign."""
    kind = kind_of(instruction)
    width = 8 * kind.bits.itemsize

    def field(x: np.ndarray, at: np.ndarray, count: np.ndarray) -> np.ndarray:
        at, count = at & np.uint32(0xFF), count & np.uint32(0xFF)
        unsigned = x.astype(object) % (1 << width)
        bits = (unsigned >> at.astype(object)) & ((1 << count.astype(object)) - 1)
        if kind.is_signed:
            last = np.minimum(at.astype(np.int64) + count - 1, width - 1)
            sign = (unsigned >> last.astype(object)) & 1
            bits = np.where(count > 0, bits - (sign << count.astype(object)), 0)
        return np.asarray(bits % (1 << width), object).astype(kind.bits).view(kind.dtype)

    return computed(instruction, operands, field, sources=(kind, _WORD, _WORD))


def _permute(instruction: Instruction, operands: Operands) -> Step:
    """Four bytes of eight, chosen by the digits of an integer.

    A side of which no byte is chosen may never have been written.
    """
    target, *sides, choice = instruction.operands
    if choice[:1].isdigit():
        digits = [int(choice.rstrip("U"), 0) >> 4 * i & 7 for i in range(4)]
        sides = [
            side if any(digit // 4 == i for digit in digits) else "0"
            for i, side in enumerate(sides)
        ]
    own = replace(instruction, operands=(target, *sides, choice))

    def permute(low: np.ndarray, high: np.ndarray, choice: np.ndarray) -> np.ndarray:
        both = (high.astype(np.uint64) << np.uint64(32)) | low
        result = np.uint32(0)
        for i in range(4):
            digit = (choice >> np.uint32(4 * i)).astype(np.uint64)
            byte = (both >> ((digit & np.uint64(7)) * np.uint64(8))) & np.uint64(0xFF)
            sign = np.where(byte >> np.uint64(7), np.uint64(0xFF), np.uint64(0))
            byte = np.where(digit & np.uint64(8), sign, byte)
            result = result | (byte << np.uint64(8 * i)).astype(np.uint32)
        return result

    return computed(own, operands, permute, sources=(_WORD, _WORD, _WORD))


def _counted(count: Callable[[np.ndarray, int], np.ndarray]) -> Decoder:
    """A count of bits, of 32 bits itself."""

    def decode(instruction: Instruction, operands: Operands) -> Step:
        width = 8 * kind_of(instruction).bits.itemsize
        return computed(instruction, operands, lambda x: count(x, width).astype(np.uint32), _WORD)

    return decode


def leading_zeros(x: np.ndarray, width: int) -> np.ndarray:
    """The zeros above the first bit that is set; the width if none is."""
    for step in (1, 2, 4, 8, 16, 32):
        if step < width:
            x = x | (x >> x.dtype.type(step))
    return width - np.bitwise_count(x)


def reversed_bits(x: np.ndarray) -> np.ndarray:
    """The bits in opposite order."""
    dtype = x.dtype
    result = np.zeros_like(x)
    for i in range(8 * dtype.itemsize):
        result = (result << dtype.type(1)) | ((x >> dtype.type(i)) & dtype.type(1))
    return result


def _lookup(instruction: Instruction, operands: Operands) -> Step:
    """Any function of three bits, by its table."""
    target, a, b, c, table = instruction.operands
    truth = int(table, 0)

    def look_up(*inputs: np.ndarray) -> np.ndarray:
        result = np.uint32(0)
        for row in range(8):
            if truth >> row & 1:
                terms = [x if row >> (2 - i) & 1 else ~x for i, x in enumerate(inputs)]
                result = result | (terms[0] & terms[1] & terms[2])
        return result

    own = Instruction(instruction.text, "lop3", ("b32",), (target, a, b, c))
    return computed(own, operands, look_up)


DECODERS: dict[str, Decoder] = {
    "and": plain(np.bitwise_and),
    "or": plain(np.bitwise_or),
    "xor": plain(np.bitwise_xor),
    "not": plain(np.bitwise_not),
    "lop3": _lookup,
    "shl": _shift_left,
    "shr": _shift_right,
    "shf": _funnel_shift,
    "bfe": _extract,
    "prmt": _permute,
    "popc": _counted(lambda x, width: np.bitwise_count(x)),
    "clz": _counted(leading_zeros),
    "brev": plain(reversed_bits),
}
