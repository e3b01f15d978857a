"""The types of PTX in NumPy."""

from dataclasses import dataclass
from typing import Any

import numpy as np


class PtxFault(ValueError):
    """A kernel does what it must not do, or something that is not known here."""


@dataclass(frozen=True)
class Kind:
    """A type: `bits` is the unsigned one of its size, `dtype` what computes its values.

    Values of bf16 are computed as f32.
    """

    name: str
    bits: np.dtype
    dtype: np.dtype

    @property
    def is_float(self) -> bool:
        """Whether values are floats."""
        return self.dtype.kind == "f"

    @property
    def is_signed(self) -> bool:
        """Whether values are integers with a sign."""
        return self.dtype.kind == "i"

    def values(self, bits: np.ndarray) -> np.ndarray:
        """The values of bit patterns."""
        if self.name == "bf16":
            return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
        return bits.view(self.dtype)

    def encoded(self, values: Any) -> np.ndarray:
        """The bit patterns of values, rounded to nearest even."""
        if self.name == "bf16":
            return bf16_bits(np.asarray(values, np.float32))
        return np.asarray(values, self.dtype).view(self.bits)


def bf16_bits(x: np.ndarray) -> np.ndarray:
    """f32 rounded to bf16, nearest even."""
    bits = x.view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    return np.where(np.isnan(x), np.uint32(0x7FFF), rounded >> np.uint32(16)).astype(np.uint16)


def _kind(name: str, bits: int, dtype: str) -> Kind:
    return Kind(name, np.dtype("bool" if bits == 1 else f"uint{bits}"), np.dtype(dtype))


KINDS = {
    **{f"{k}{n}": _kind(f"{k}{n}", n, f"uint{n}") for k in "ub" for n in (8, 16, 32, 64)},
    **{f"s{n}": _kind(f"s{n}", n, f"int{n}") for n in (8, 16, 32, 64)},
    **{f"f{n}": _kind(f"f{n}", n, f"float{n}") for n in (16, 32, 64)},
    "bf16": _kind("bf16", 16, "float32"),
    "pred": _kind("pred", 1, "bool"),
}
