"""Arithmetic of integers and floats."""

from collections.abc import Callable

import numpy as np

from relax_mlir.interpreter.ptx.kinds import KINDS, Kind, PtxFault
from relax_mlir.interpreter.ptx.program import Instruction
from relax_mlir.interpreter.ptx.threads import Operands, Step

from .common import Decoder, computed, kind_of, mixed, plain
from .floats import extremum, multiply_add, single_to_odd


def _double(kind: Kind) -> Kind:
    """The integer type of twice the size."""
    return KINDS[f"{kind.name[0]}{16 * kind.bits.itemsize}"]


def _multiply(instruction: Instruction, operands: Operands) -> Step:
    kind, modifiers = kind_of(instruction), instruction.modifiers
    if "wide" in modifiers:
        double = _double(kind)
        return computed(
            instruction,
            operands,
            lambda a, b: a.astype(double.dtype) * b.astype(double.dtype),
            double,
        )
    if "hi" in modifiers:
        return computed(instruction, operands, lambda a, b: _high(a, b, kind))
    return computed(instruction, operands, np.multiply)


def _high(a: np.ndarray, b: np.ndarray, kind: Kind) -> np.ndarray:
    """The upper half of products."""
    bits = 8 * kind.bits.itemsize
    if bits < 64:
        dtype = _double(kind).dtype
        return (a.astype(dtype) * b.astype(dtype) >> dtype.type(bits)).astype(kind.dtype)
    exact = np.asarray(a, object) * np.asarray(b, object) >> bits
    return np.asarray(exact, object).astype(kind.dtype)


def _multiply_and_add(instruction: Instruction, operands: Operands) -> Step:
    kind, modifiers = kind_of(instruction), instruction.modifiers
    if "wide" in modifiers:
        double = _double(kind)

        def widened(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
            return a.astype(double.dtype) * b.astype(double.dtype) + c

        return computed(instruction, operands, widened, double, (kind, kind, double))
    if "hi" in modifiers:
        return computed(instruction, operands, lambda a, b, c: _high(a, b, kind) + c)
    return computed(instruction, operands, lambda a, b, c: a * b + c)


def _fused(instruction: Instruction, operands: Operands) -> Step:
    if len(instruction.kinds) == 2:
        return mixed(lambda a, b, c: multiply_add(a, b, c, 32).astype(np.float32))(
            instruction, operands
        )
    kind = kind_of(instruction)
    bits = 8 * kind.bits.itemsize
    if kind.name == "bf16":
        return computed(
            instruction, operands, lambda a, b, c: single_to_odd(multiply_add(a, b, c, bits))
        )
    return computed(
        instruction, operands, lambda a, b, c: multiply_add(a, b, c, bits).astype(kind.dtype)
    )


def _divide(instruction: Instruction, operands: Operands) -> Step:
    kind = kind_of(instruction)
    if kind.is_float:
        return computed(instruction, operands, np.divide)
    return computed(instruction, operands, lambda a, b: _quotient(a, b, kind))


def _quotient(a: np.ndarray, b: np.ndarray, kind: Kind) -> np.ndarray:
    """Rounded towards zero; raises PtxFault for zero, of which the quotient is unspecified."""
    if not np.all(b):
        raise PtxFault("divides by zero")
    quotient, rest = np.divmod(a, b)
    if kind.is_signed:
        quotient = quotient + ((rest != 0) & ((a < 0) != (b < 0))).astype(kind.dtype)
    return quotient


def _remainder(instruction: Instruction, operands: Operands) -> Step:
    kind = kind_of(instruction)
    return computed(instruction, operands, lambda a, b: a - _quotient(a, b, kind) * b)


def _extreme(is_max: bool) -> Decoder:
    def decode(instruction: Instruction, operands: Operands) -> Step:
        if not kind_of(instruction).is_float:
            return computed(instruction, operands, np.maximum if is_max else np.minimum)
        propagates = "NaN" in instruction.modifiers
        return computed(instruction, operands, lambda a, b: extremum(a, b, is_max, propagates))

    return decode


def _in_double(function: Callable[[np.ndarray], np.ndarray]) -> Decoder:
    """Decodes a function that machines approximate: it is computed exactly here."""
    return plain(lambda x: function(x.astype(np.float64)).astype(x.dtype))


DECODERS: dict[str, Decoder] = {
    "add": mixed(np.add),
    "sub": mixed(np.subtract),
    "mul": _multiply,
    "mad": _multiply_and_add,
    "fma": _fused,
    "div": _divide,
    "rem": _remainder,
    "min": _extreme(is_max=False),
    "max": _extreme(is_max=True),
    "neg": plain(np.negative),
    "abs": plain(np.abs),
    "copysign": plain(lambda sign, x: np.copysign(x, sign)),
    "sqrt": plain(np.sqrt),
    "rcp": plain(np.reciprocal),
    "rsqrt": _in_double(lambda x: 1 / np.sqrt(x)),
    "ex2": _in_double(np.exp2),
    "lg2": _in_double(np.log2),
    "sin": _in_double(np.sin),
    "cos": _in_double(np.cos),
    "tanh": _in_double(np.tanh),
}
