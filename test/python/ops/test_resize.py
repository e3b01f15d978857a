"""Resizing, against the formulas of ONNX element by element, in fractions and float64."""

from fractions import Fraction
from math import ceil, floor

import numpy as np
import pytest
from decomposed import Decomposed, module_of
from harness import FLOATS, NUMPY, numbers, spec, wide

from relax_mlir import decompositions as d
from relax_mlir.decompositions.resize import COORDINATES, NEAREST
from relax_mlir.dialects.graph import ShapeError

TOLERANCE = {"f64": 1e-12, "f32": 4e-6, "f16": 2e-3, "bf16": 1.6e-2}


def _coordinate(i, n, m, scale, mode, start, end):
    length = n * scale
    if mode == "asymmetric":
        return i / scale
    if mode == "align_corners":
        return Fraction(0) if length <= 1 or m == 1 else i * (n - 1) / (length - 1)
    if mode == "tf_crop_and_resize":
        if m == 1:
            return (start + end) * (n - 1) / 2
        return start * (n - 1) + i * (end - start) * (n - 1) / (length - 1)
    if mode == "pytorch_half_pixel" and m == 1:
        return Fraction(0)
    half = (i + Fraction(1, 2)) / scale - Fraction(1, 2)
    if mode == "half_pixel_symmetric":
        return half + Fraction(n, 2) * (1 - m / length)
    return half


def _taps(at, mode: str, nearest: str, a: float):
    half = Fraction(1, 2)
    if mode == "nearest":
        rounded = {
            "floor": floor(at), "ceil": ceil(at),
            "round_prefer_floor": ceil(at - half), "round_prefer_ceil": floor(at + half),
        }  # fmt: skip
        return [(rounded[nearest], 1.0)]
    first = floor(at)
    t = float(at - first)
    if mode == "linear":
        return [(first, 1 - t), (first + 1, t)]

    def weight(s):
        s = abs(s)
        if s <= 1:
            return (a + 2) * s**3 - (a + 3) * s**2 + 1
        return a * s**3 - 5 * a * s**2 + 8 * a * s - 4 * a

    return [(first + k, weight(k - t)) for k in (-1, 0, 1, 2)]


def _resized(x, axis, m, scale, region, mode, coordinates, nearest, a, exclude):
    """One axis, and where its coordinates are outside."""
    n = x.shape[axis]
    parts, outside = [], []
    for i in range(m):
        at = _coordinate(Fraction(i), n, m, scale, coordinates, *map(Fraction, region))
        taps = _taps(at, mode, nearest, a)
        if exclude:
            taps = [(k, w if 0 <= k < n else 0.0) for k, w in taps]
            total = sum(w for _, w in taps)
            taps = [(k, w / total) for k, w in taps]
        parts.append(sum(w * np.take(x, min(max(k, 0), n - 1), axis) for k, w in taps))
        outside.append(not 0 <= at <= n - 1)
    return np.stack(parts, axis), np.array(outside)


def check(shape, axes, dims, dtype="f32", sizes=None, scales=None, region=None, **more) -> None:
    full = {
        "mode": "nearest", "coordinates": "half_pixel", "nearest": "round_prefer_floor",
        "cubic": -0.75, "exclude_outside": False,
    } | more  # fmt: skip
    chosen = {"sizes": sizes, "scales": scales, "region": region, "extrapolation": 7}
    run = Decomposed(lambda x: d.resize(x, axes, **chosen, **full), spec(dtype, *dims))
    x = numbers(shape, dtype)
    wanted, beyond = wide(x), np.array(False)
    for i, axis in enumerate(axes):
        n = shape[axis]
        scale = Fraction(sizes[i], n) if scales is None else Fraction(scales[i])
        m = floor(n * scale) if sizes is None else sizes[i]
        wanted, outside = _resized(
            wanted, axis, m, scale, (region or [(0, 1)] * len(axes))[i], full["mode"],
            full["coordinates"], full["nearest"], full["cubic"], full["exclude_outside"],
        )  # fmt: skip
        beyond = beyond | outside.reshape(-1, *[1] * (len(shape) - axis - 1))
    if full["coordinates"] == "tf_crop_and_resize":
        wanted = np.where(beyond, 7, wanted)
    found = run(x)
    assert found.dtype == NUMPY[dtype]
    tolerance = TOLERANCE.get(dtype, 0)
    np.testing.assert_allclose(wide(found), wanted, rtol=tolerance, atol=4 * tolerance)


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("coordinates", COORDINATES)
def test_coordinates(coordinates: str, mode: str, symbolic: bool) -> None:
    settings = {"mode": mode, "coordinates": coordinates}
    region = [(0.25, 1.125), (-0.5, 0.75)]
    dims = (2, "n", 3, "m") if symbolic else (2, 5, 3, 4)
    for sizes in ([3, 9], [1, 4]) if symbolic else ([7, 1],):
        check((2, 5, 3, 4), [1, 3], dims, sizes=sizes, region=region, **settings)
    for scales in ([0.6, 2.0],) if symbolic else ([1.25, 0.75],):
        check((2, 5, 3, 4), [1, 3], dims, scales=scales, region=region, **settings)


@pytest.mark.parametrize("nearest", NEAREST)
@pytest.mark.parametrize("dtype", ["f32", "i8", "i1"])
def test_nearest(nearest: str, dtype: str) -> None:
    for coordinates in ("half_pixel", "asymmetric"):
        settings = {"nearest": nearest, "coordinates": coordinates, "dtype": dtype}
        check((1, 7, 4), [1, 2], (1, "n", "m"), sizes=[14, 2], **settings)
        check((1, 7, 4), [2], (1, 7, 4), scales=[1.5], **settings)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_scales_say_where_and_sizes_how_many(mode: str) -> None:
    for coordinates in ("half_pixel", "asymmetric"):
        for size in (3, 20):
            settings = {"mode": mode, "coordinates": coordinates, "sizes": [size]}
            check((2, 7), [1], (2, "n"), scales=[1.3], **settings)


@pytest.mark.parametrize("dtype", FLOATS)
def test_cubic_of_types_without_what_is_outside(dtype: str) -> None:
    settings = {"mode": "cubic", "cubic": -0.5, "exclude_outside": True, "dtype": dtype}
    check((2, 4, 5), [1, 2], (2, "n", "m"), sizes=[7, 3], **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sizes": [3], "mode": "area"}, "expects one of nearest, linear, cubic"),
        ({"sizes": [3], "coordinates": "x"}, "expects one of half_pixel"),
        ({"sizes": [3], "nearest": "up"}, "expects one of round_prefer_floor"),
        ({}, "expects sizes or scales for 1 axes"),
        ({"sizes": [3], "scales": [2.0, 2.0]}, "expects sizes or scales for 1 axes"),
        ({"scales": [-1.0]}, "expects positive scales"),
        ({"sizes": [3], "region": []}, "expects a region of 1 axes"),
    ],
)
def test_what_is_refused(settings, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        module_of({"main": (lambda x: d.resize(x, [1], **settings), [spec("f32", 2, 5)])})


def test_interpolation_of_integers_is_refused() -> None:
    with pytest.raises(ShapeError, match="interpolates floats, but got i8"):
        module_of({"main": (lambda x: d.resize(x, [0], sizes=[3], mode="linear"), [spec("i8", 2)])})
