"""Errors in units in the last place of a result's type, and samples of a type's numbers."""

from dataclasses import dataclass

import ml_dtypes
import numpy as np

Wide = np.longdouble


@dataclass(frozen=True)
class Format:
    """A float type: stored bits of the mantissa, and the exponent of the least normal number."""

    dtype: np.dtype
    mantissa: int
    least: int

    @property
    def integer(self) -> np.dtype:
        """The unsigned integer of the same size."""
        return np.dtype(f"uint{8 * self.dtype.itemsize}")

    @property
    def greatest(self) -> float:
        """The greatest finite number."""
        return (2 - 2.0**-self.mantissa) * 2.0 ** (1 - self.least)


FORMATS = {
    "f64": Format(np.dtype(np.float64), 52, -1022),
    "f32": Format(np.dtype(np.float32), 23, -126),
    "f16": Format(np.dtype(np.float16), 10, -14),
    "bf16": Format(np.dtype(ml_dtypes.bfloat16), 7, -126),
}


def errors(got: np.ndarray, exact: np.ndarray, kind: Format) -> np.ndarray:
    """The distance of each result from the exact value, in units in the last place of that.

    An infinity counts as the power of two above the greatest number. The error is infinite where
    one of both is NaN, or where the signs differ.
    """
    above = Wide(2.0) ** (2 - kind.least)
    result = np.clip(got.astype(Wide), -above, above)
    exact = np.clip(exact, -above, above)
    _, exponent = np.frexp(exact)
    exponent = np.clip(exponent - 1, kind.least, 1 - kind.least)
    error = np.abs(result - exact) / np.ldexp(Wide(1), exponent - kind.mantissa)
    nan = np.isnan(result), np.isnan(exact)
    wrong = (nan[0] != nan[1]) | (~nan[0] & (np.signbit(result) != np.signbit(exact)))
    return np.where(wrong, np.inf, np.where(nan[0] & nan[1], 0, error)).astype(np.float64)


def rounded(exact: np.ndarray, kind: Format) -> np.ndarray:
    """The nearest numbers of the type, the even one of two; from the greatest on infinities."""
    _, exponent = np.frexp(exact)
    unit = np.ldexp(Wide(1), np.clip(exponent - 1, kind.least, None) - kind.mantissa)
    result = np.rint(exact / unit) * unit
    beyond = np.abs(result) > kind.greatest
    return np.where(beyond, np.copysign(Wide(np.inf), exact), result)


def numbers(kind: Format, count: int, generator: np.random.Generator) -> np.ndarray:
    """All of a type of 16 bits; of others edges, and `count` each of several distributions."""
    if kind.dtype.itemsize == 2:
        return np.arange(1 << 16, dtype=np.uint16).view(kind.dtype)
    found = [_patterns(kind, count, generator), _neighbours(_edges(kind), kind)]
    for scale in (1e-3, 1, 2, 5, 12, 30, 110, 800, 1e5, 1e9):
        found.append(generator.uniform(-scale, scale, count))
    found.append(1 + generator.normal(size=count) * 10 ** generator.uniform(-16, 0, count))
    found.append(_neighbours(np.pi / 2 * generator.integers(-(10**6), 10**6, count), kind))
    found.append(np.arange(-1100, 1100) / 2)
    return np.concatenate([x.astype(kind.dtype) for x in found])


def pairs(
    kind: Format, count: int, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of edges, and `count` of several distributions each."""
    edges = np.meshgrid(_edges(kind), _edges(kind))
    divisor, base = generator.normal(size=count), generator.uniform(0.5, 2, count)
    # Exponents whose powers lie around both ends of the range.
    exponent = generator.uniform(-1.1, 1.1, count) * -kind.least / np.log2(base)
    angle = generator.uniform(-9, 0, count)
    found = [
        (edges[0].ravel(), edges[1].ravel()),
        (_patterns(kind, count, generator), _patterns(kind, count, generator)),
        (generator.uniform(0, 3, count), generator.uniform(-99, 99, count)),
        (_spread(count, generator), _spread(count, generator)),
        (generator.integers(-50, 50, count), generator.integers(-50, 50, count)),
        # Quotients that are nearly integers.
        (divisor * generator.integers(-1000, 1000, count), divisor),
        (base, exponent),
        # Powers that add up to nearly 1.
        (angle, np.log(-np.expm1(angle)) * (1 + generator.normal(size=count) * 1e-3)),
    ]
    first, second = zip(*found, strict=True)
    return _joined(first, kind), _joined(second, kind)


def _joined(parts: tuple[np.ndarray, ...], kind: Format) -> np.ndarray:
    return np.concatenate([part.astype(kind.dtype) for part in parts])


def _spread(count: int, generator: np.random.Generator) -> np.ndarray:
    return generator.normal(size=count) * 10 ** generator.uniform(-5, 5, count)


def _patterns(kind: Format, count: int, generator: np.random.Generator) -> np.ndarray:
    """Numbers of every exponent alike, infinities and NaN among them."""
    top = np.iinfo(kind.integer).max
    return generator.integers(0, top, count, dtype=kind.integer, endpoint=True).view(kind.dtype)


def _edges(kind: Format) -> np.ndarray:
    """Zeros, ones, infinities, NaN, the ends of the normal and subnormal range, integers."""
    tiny, smallest, unit = 2.0**kind.least, 2.0 ** (kind.least - kind.mantissa), 2.0**-kind.mantissa
    found = [0, 1, 1 + unit, 1 - unit / 2, 2, 3, 0.5, 1.5, 2.5, np.inf, np.nan]
    found += [tiny, tiny - smallest, tiny + smallest, smallest, 2 * smallest, 3 * smallest]
    found += [kind.greatest, kind.greatest / 2, 1 / unit, 2 / unit, 1 / unit + 1, np.pi, np.e]
    found += [0.1, 0.25, 1 / 3, 0.7, 6, 7, 10, 100, 1000]
    numbers = np.array(found)
    return np.concatenate([numbers, -numbers]).astype(kind.dtype)


def _neighbours(centres: np.ndarray, kind: Format) -> np.ndarray:
    """Numbers with two on either side of each."""
    patterns = centres.astype(kind.dtype).view(kind.integer)
    steps = np.arange(-2, 3).astype(kind.integer)
    return (patterns[:, None] + steps).ravel().view(kind.dtype)
