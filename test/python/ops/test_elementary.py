"""Other divisions, roots and roundings of single elements, against float64, C and bits."""

from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from decomposed import module_of
from harness import FLOATS, NUMPY, spec, wide

import relax_mlir
from relax_mlir import decompositions as d
from relax_mlir.dialects.graph import ShapeError

Run = Mapping[str, Callable[..., Any]]
FORMATS = {"f16": (5, 10), "bf16": (8, 7), "f8": (5, 2), "f6": (3, 2), "f1": (1, 0), "f9": (8, 0)}


@pytest.fixture(
    scope="module",
    params=["interpreted", pytest.param("compiled", marks=pytest.mark.rotate(3, together=True))],
)
def run(request: pytest.FixtureRequest) -> Run:
    functions: dict[str, Any] = {}
    for dtype in (*FLOATS, "i8", "i64"):
        pair = [spec(dtype, "n")] * 2
        functions |= {f"fmod_{dtype}": (d.fmod, pair), f"div_{dtype}": (d.truncated_divide, pair)}
    for dtype in FLOATS:
        one = [spec(dtype, "n")]
        functions |= {f"cbrt_{dtype}": (d.cbrt, one), f"away_{dtype}": (d.round_half_away, one)}
        for name, bits in FORMATS.items():
            functions[f"{name}_{dtype}"] = (lambda x, b=bits: d.reduce_precision(x, *b), one)
    text = module_of(functions)
    return (relax_mlir.interpret if request.param == "interpreted" else relax_mlir.compile)(text)


def _floats(dtype: str, count: int = 400) -> np.ndarray:
    """Numbers of all sizes, ties, the bounds and what is no number."""
    generator = np.random.default_rng(count)
    spread = generator.standard_normal(count) * 10.0 ** generator.integers(-6, 6, count)
    tiny, most = (
        float(x) for x in (ml_dtypes.finfo(NUMPY[dtype]).tiny, ml_dtypes.finfo(NUMPY[dtype]).max)
    )
    special = [
        0,
        -0.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.5,
        np.inf,
        -np.inf,
        np.nan,
        tiny,
        most,
        -most,
        tiny / 4,
    ]
    with np.errstate(over="ignore"):
        return np.concatenate([spread, np.arange(-9, 9) / 2, special]).astype(NUMPY[dtype])


@pytest.mark.parametrize("dtype", FLOATS)
def test_cube_roots(dtype: str, run: Run) -> None:
    x = _floats(dtype)
    precise = {"f32": 3e-7, "f64": 1e-15, "f16": 1e-3, "bf16": 8e-3}[dtype]
    found = run[f"cbrt_{dtype}"](x)
    np.testing.assert_allclose(wide(found), np.cbrt(wide(x)), rtol=precise)
    np.testing.assert_array_equal(np.signbit(wide(found)), np.signbit(wide(x)))


@pytest.mark.parametrize("dtype", FLOATS)
def test_halves_go_away_from_zero(dtype: str, run: Run) -> None:
    x = np.concatenate([_floats(dtype), np.array([0.49999997, 2049]).astype(NUMPY[dtype])])
    values = wide(x)
    with np.errstate(invalid="ignore"):
        up = np.abs(values - np.trunc(values)) >= 0.5
    wanted = np.trunc(values) + np.where(up, np.copysign(1, values), 0)
    np.testing.assert_array_equal(wide(run[f"away_{dtype}"](x)), wanted)


@pytest.mark.parametrize("dtype", FLOATS)
def test_remainders_of_floats(dtype: str, run: Run) -> None:
    x = _floats(dtype)
    y = np.random.default_rng(3).permutation(x)
    with np.errstate(all="ignore"):
        wanted = np.fmod(wide(x), wide(y)).astype(NUMPY[dtype])
        quotient = np.trunc((wide(x) / wide(y)).astype(NUMPY[dtype]).astype(np.float64))
    np.testing.assert_array_equal(wide(run[f"fmod_{dtype}"](x, y)), wide(wanted))
    if dtype in ("f32", "f64"):
        np.testing.assert_array_equal(wide(run[f"div_{dtype}"](x, y)), quotient)


@pytest.mark.parametrize("dtype", ["i8", "i64"])
def test_integers_are_divided_as_in_c(dtype: str, run: Run) -> None:
    low, high = (
        int(f(NUMPY[dtype])) for f in (lambda t: np.iinfo(t).min, lambda t: np.iinfo(t).max)
    )
    some = [low, low + 1, -7, -3, -2, -1, 0, 1, 2, 3, 7, high - 1, high]
    pairs = [(a, b) for a in some for b in some]
    a, b = (np.array(x, NUMPY[dtype]) for x in zip(*pairs))
    quotients, rests = [], []
    for x, y in pairs:
        q = 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        quotients.append((q - low) % (high - low + 1) + low)
        rests.append(0 if y == 0 else x - q * y)
    np.testing.assert_array_equal(run[f"div_{dtype}"](a, b), np.array(quotients, NUMPY[dtype]))
    np.testing.assert_array_equal(run[f"fmod_{dtype}"](a, b), np.array(rests, NUMPY[dtype]))


def _reduced(value: float, exponent: int, mantissa: int) -> float:
    """The nearest number of few bits, of Python's exact fractions."""
    if not np.isfinite(value) or value == 0:
        return value
    bias = (1 << (exponent - 1)) - 1
    fraction, power = np.frexp(abs(value))
    scaled = float(fraction) * 2 ** (mantissa + 1)
    rounded = float(np.round(scaled))  # ties to even
    rounded, power = (
        (rounded / 2, power + 1) if rounded == 2 ** (mantissa + 1) else (rounded, power)
    )
    if power - 1 > bias:
        return np.copysign(np.inf, value)
    if power - 1 < 1 - bias:
        return np.copysign(0.0, value)
    return np.copysign(np.ldexp(rounded, power - 1 - mantissa), value)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_fewer_bits(dtype: str, name: str, run: Run) -> None:
    x = _floats(dtype)
    own = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}[dtype]
    exponent, mantissa = (min(pair) for pair in zip(FORMATS[name], own))
    if exponent == own[0]:  # its own range: numbers below normal ones stay
        x = x[(np.abs(wide(x)) >= float(ml_dtypes.finfo(NUMPY[dtype]).tiny)) | (wide(x) == 0)]
    if not mantissa:  # neither neighbour of a tie is even
        x = x[np.abs(np.frexp(wide(x))[0]) != 0.75]
    wanted = [_reduced(value, exponent, mantissa) for value in wide(x)]
    np.testing.assert_array_equal(wide(run[f"{name}_{dtype}"](x)), wanted)


def test_known_formats(run: Run) -> None:
    x = np.random.default_rng(0).standard_normal(500).astype(np.float32)
    for name, dtype in (
        ("f16", np.float16),
        ("bf16", ml_dtypes.bfloat16),
        ("f8", ml_dtypes.float8_e5m2),
    ):
        rounded = x.astype(dtype).astype(np.float32)
        normal = np.abs(rounded) >= float(ml_dtypes.finfo(dtype).tiny)
        np.testing.assert_array_equal(run[f"{name}_f32"](x)[normal], rounded[normal])


@pytest.mark.parametrize(
    "build", [d.cbrt, d.round_half_away, lambda x: d.reduce_precision(x, 5, 2)]
)
def test_what_is_refused(build: Callable[..., Any]) -> None:
    with pytest.raises(ShapeError, match="expects floats, but got i32"):
        module_of({"main": (build, [spec("i32", 4)])})
    with pytest.raises(ShapeError, match="an exponent of a bit at least, but got 0 and 2"):
        module_of({"main": (lambda x: d.reduce_precision(x, 0, 2), [spec("f32", 4)])})
