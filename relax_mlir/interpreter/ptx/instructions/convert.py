"""Conversions between types."""

import numpy as np

from relax_mlir.interpreter.ptx.kinds import KINDS, Kind, PtxFault
from relax_mlir.interpreter.ptx.program import Instruction
from relax_mlir.interpreter.ptx.threads import Operands, Step

from .common import Decoder, computed
from .floats import single_to_odd

_ROUNDINGS = {"rni": np.rint, "rmi": np.floor, "rpi": np.ceil, "rzi": np.trunc}
_MANTISSA = 53
"""Bits of integers that f64 represents."""


def _convert(instruction: Instruction, operands: Operands) -> Step:
    pair = next((m.removesuffix("x2") for m in instruction.modifiers if m.endswith("x2")), None)
    if pair is not None:
        return _convert_pair(instruction, operands, KINDS[pair])
    if len(instruction.kinds) != 2:
        raise PtxFault(f"a conversion is not known: {instruction.text}")
    to, source = (KINDS[name] for name in instruction.kinds)
    rounding = next((_ROUNDINGS[m] for m in instruction.modifiers if m in _ROUNDINGS), None)
    if source.is_float and not to.is_float and rounding is None:
        raise PtxFault(f"a rounding is not known: {instruction.text}")

    def convert(x: np.ndarray) -> np.ndarray:
        if source.is_float:
            rounded = x if rounding is None else rounding(x)
            return _from_float(rounded, to) if to.is_float else _to_integer(rounded, to)
        return _from_integer(x, to) if to.is_float else x.astype(to.dtype)

    return computed(instruction, operands, convert, to, (source,), may_be_larger=True)


def _convert_pair(instruction: Instruction, operands: Operands, to: Kind) -> Step:
    """Two f32 in one register: the first one in its upper half."""
    if instruction.kinds != ["f32"] or "rn" not in instruction.modifiers:
        raise PtxFault(f"a conversion is not known: {instruction.text}")

    def convert(upper: np.ndarray, lower: np.ndarray) -> np.ndarray:
        high, low = (to.encoded(x.astype(to.dtype)).astype(np.uint32) for x in (upper, lower))
        return high << np.uint32(16) | low

    return computed(instruction, operands, convert, KINDS["b32"])


def _from_float(x: np.ndarray, to: Kind) -> np.ndarray:
    if to.name == "bf16" and x.dtype == np.float64:
        return single_to_odd(x)
    return x.astype(to.dtype)


def _to_integer(x: np.ndarray, to: Kind) -> np.ndarray:
    """Clamped to the type; NaN is 0, or the first bit alone in 64 bits."""
    limits = np.iinfo(to.dtype)
    exact = x.astype(np.float64)
    above, below = exact >= float(limits.max), exact <= float(limits.min)
    inside = np.where(above | below | np.isnan(exact), 0.0, exact).astype(to.dtype)
    result = np.where(above, limits.max, np.where(below, limits.min, inside))
    nan = limits.min if to.dtype == np.int64 else 1 << 63 if to.dtype == np.uint64 else 0
    return np.where(np.isnan(exact), to.dtype.type(nan), result.astype(to.dtype))


def _from_integer(x: np.ndarray, to: Kind) -> np.ndarray:
    """Rounded once."""
    if to.dtype == np.float64 or x.dtype.itemsize < 8:
        single = to.dtype if to.name != "bf16" else None
        exact = x.astype(np.float64)
        return single_to_odd(exact) if single is None else exact.astype(single)
    if to.name != "f32":
        # All but the first bits tell only whether there are any.
        exact = _odd_double(x)
        return single_to_odd(exact) if to.name == "bf16" else exact.astype(to.dtype)
    return _odd_double(x).astype(np.float32)


def _odd_double(x: np.ndarray) -> np.ndarray:
    """64-bit integers as f64, rounded to odd."""
    magnitude = np.abs(x).astype(np.uint64) if x.dtype.kind == "i" else x
    cut = np.uint64((1 << 64 - _MANTISSA) - 1)
    is_long = (magnitude >> np.uint64(_MANTISSA)) != 0
    lost = ((magnitude & cut) != 0).astype(np.uint64)
    odd = (magnitude & ~cut) | (lost << np.uint64(64 - _MANTISSA))
    result = np.where(is_long, odd, magnitude).astype(np.float64)
    return np.where(x < 0, -result, result) if x.dtype.kind == "i" else result


DECODERS: dict[str, Decoder] = {"cvt": _convert}
