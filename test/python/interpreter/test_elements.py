"""Conversions between element types round once, to nearest even."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from relax_mlir.bindings import ir
from relax_mlir.dialects import make_context
from relax_mlir.interpreter.constants import constant_value
from relax_mlir.interpreter.elements import exact, garbage, round_to, stored_dtype, widen

RANDOM = np.random.default_rng(7)
ALL_BITS = np.arange(1 << 16, dtype=np.uint16)


def bits_of_bfloat16(values: np.ndarray) -> np.ndarray:
    return values.astype(ml_dtypes.bfloat16).view(np.uint16)


def test_bfloat16_is_widened_exactly() -> None:
    expected = ALL_BITS.view(ml_dtypes.bfloat16).astype(np.float32)
    np.testing.assert_array_equal(widen(ALL_BITS, "bf16"), expected)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(exact(ALL_BITS, "bf16"), expected.astype(np.float64))
    assert exact(ALL_BITS, "bf16").dtype == np.float64


def test_bfloat16_comes_back() -> None:
    numbers = ~np.isnan(widen(ALL_BITS, "bf16"))
    for wide in (widen(ALL_BITS, "bf16"), exact(ALL_BITS, "bf16")):
        back = round_to(wide, "bf16")
        np.testing.assert_array_equal(back[numbers], ALL_BITS[numbers])
        assert np.isnan(widen(back, "bf16")[~numbers]).all()


def test_float32_is_rounded_as_by_others() -> None:
    x = RANDOM.integers(0, 1 << 32, 100_000, dtype=np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        x = x[~np.isnan(x)]
        np.testing.assert_array_equal(round_to(x, "bf16"), bits_of_bfloat16(x))


def neighbours(element: str) -> np.ndarray:
    """Every finite number of a type, in order."""
    kind = {"bf16": "bf16", "f16": np.float16}[element]
    wide = exact(ALL_BITS if kind == "bf16" else ALL_BITS.view(kind), element)
    return np.unique(wide[np.isfinite(wide)])


@pytest.mark.parametrize("element", ["bf16", "f16"])
def test_float64_is_rounded_once(element: str) -> None:
    """Halfway between two numbers, and as little off as float64 can tell."""
    numbers = neighbours(element)
    low = numbers[RANDOM.integers(0, len(numbers) - 1, 5000)]
    high = numbers[np.searchsorted(numbers, low, side="right")]
    middle = (low + high) / 2
    is_even = round_to(low, element).view(np.uint16) % 2 == 0
    even = np.where(is_even, low, high)
    with np.errstate(all="ignore"):
        for x, expected in (
            (middle, even),
            (np.nextafter(middle, np.inf), high),
            (np.nextafter(middle, -np.inf), low),
        ):
            np.testing.assert_array_equal(exact(round_to(x, element), element), expected)


@pytest.mark.parametrize("element", ["bf16", "f16", "f32", "f64"])
def test_integers_are_rounded_once(element: str) -> None:
    x = RANDOM.integers(-(2**63), 2**63 - 1, 400) >> RANDOM.integers(0, 63, 400)
    x[:3] = 2**63 - 1, -(2**63), 2**62 + 2**54 + 1  # just above the middle in bf16
    with np.errstate(over="ignore"):
        found = exact(round_to(x, element), element)
    one = np.array(1, np.int16)
    for value, number in zip(x.tolist(), found.tolist(), strict=True):
        if np.isinf(number):
            assert element == "f16"
            assert abs(value) >= 65520
            continue
        stored = np.array(round_to(np.float64(number), element))
        bits = stored.view(f"int{8 * stored.itemsize}")
        for other in (bits + one, bits - one):
            near = float(exact(other.view(stored.dtype), element))
            if np.isfinite(near):
                assert abs(Fraction(near) - value) >= abs(Fraction(number) - value)


def test_integers_wrap() -> None:
    x = np.array([-(2**63), -129, 128, 255, 256], np.int64)
    np.testing.assert_array_equal(round_to(x, "i8"), [0, 127, -128, -1, 0])


def test_garbage_shows() -> None:
    assert not np.isnan(garbage((3,), "f32")).any()
    assert (np.abs(garbage((2, 3), "f32")) > 1e12).all()
    assert garbage((0, 3), "bf16").shape == (0, 3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dense<[1.0, -2.5]> : tensor<2xbf16>", [1, -2.5]),
        ("dense<[[0x7F80, 3.0e2]]> : tensor<1x2xbf16>", [[np.inf, 300]]),
        ("dense<0xFF80> : tensor<2xbf16>", [-np.inf, -np.inf]),
        ('dense<"0x803F00C0"> : tensor<2xbf16>', [1, -2]),
        ("dense<> : tensor<0xbf16>", []),
        ("dense<[1.0, 0x7C00]> : tensor<2xf16>", [1, np.inf]),
        ("dense<[true, false, true]> : tensor<3xi1>", [True, False, True]),
        ("dense<true> : tensor<2xi1>", [True, True]),
        ("dense<-3> : tensor<2x1xi8>", [[-3], [-3]]),
        ("dense<[5, -6]> : tensor<2xindex>", [5, -6]),
        ("1.5 : f32", 1.5),
        ("-1 : i1", True),
        ("true", True),
        ("7 : index", 7),
        ("-9 : i64", -9),
    ],
)
def test_constants(text: str, expected: object) -> None:
    with make_context(), ir.Location.unknown():
        attribute = ir.Attribute.parse(text)
        value = constant_value(attribute)
        kind = attribute.type
        element = kind.element_type if isinstance(kind, ir.ShapedType) else kind
        dtype = stored_dtype(element)
        element = str(element)
    assert np.asarray(value).dtype == dtype
    np.testing.assert_array_equal(exact(np.asarray(value), element), expected)
