"""Regions of images, against loops over their parts."""

from collections.abc import Iterator

import numpy as np
import pytest
from decomposed import Decomposed, module_of
from harness import FLOATS, NUMPY, floats, spec, wide

import relax_mlir
from relax_mlir.decompositions import roi_align, roi_pool
from relax_mlir.dialects.graph import ShapeError

pytestmark = pytest.mark.usefixtures("llvm_turns")

REGIONS = [
    [0, 0, 0, 4, 4],
    [1, 1.5, 0.5, 3.25, 6],
    [0, -3, -2, 2, 1],
    [1, 5, 5, 20, 30],
    [0, 3, 3, 3, 3],
    [1, 6, 5, 2, 1],
    [0, 40, 40, 50, 50],
]


def _at(image: np.ndarray, y: float, x: float) -> np.ndarray:
    """The channels at a point between pixels."""
    h, w = image.shape[1:]
    if not (-1 <= y <= h and -1 <= x <= w):
        return np.zeros(image.shape[0])
    y, x = min(max(y, 0), h - 1), min(max(x, 0), w - 1)
    top, left = int(y), int(x)
    below, right = min(top + 1, h - 1), min(left + 1, w - 1)
    v, u = y - top, x - left
    upper = (1 - u) * image[:, top, left] + u * image[:, top, right]
    lower = (1 - u) * image[:, below, left] + u * image[:, below, right]
    return (1 - v) * upper + v * lower


def _align(
    x: np.ndarray,
    regions: np.ndarray,
    size: tuple[int, int],
    scale: float,
    samples: int,
    aligned: bool,
    mode: str,
) -> np.ndarray:
    result = np.zeros((len(regions), x.shape[1], *size))
    for number, (image, *corners) in enumerate(wide(regions)):
        left, top, right, bottom = (c * scale - (0.5 if aligned else 0) for c in corners)
        extents = bottom - top, right - left
        if not aligned:
            extents = max(extents[0], 1), max(extents[1], 1)
        high, across = extents[0] / size[0], extents[1] / size[1]
        for row, column in np.ndindex(*size):
            points = [
                _at(
                    x[int(image)],
                    top + row * high + (i + 0.5) * high / samples,
                    left + column * across + (j + 0.5) * across / samples,
                )
                for i, j in np.ndindex(samples, samples)
            ]
            combine = np.mean if mode == "avg" else np.max
            result[number, :, row, column] = combine(points, axis=0)
    return result


def _pool(x: np.ndarray, regions: np.ndarray, size: tuple[int, int], scale: float) -> np.ndarray:
    def nearest(value: float) -> int:
        return int(np.floor(abs(value) + 0.5)) * (1 if value >= 0 else -1)

    result = np.zeros((len(regions), x.shape[1], *size))
    for number, (image, *corners) in enumerate(wide(regions)):
        left, top, right, bottom = (nearest(corner * scale) for corner in corners)
        parts = max(bottom - top + 1, 1) / size[0], max(right - left + 1, 1) / size[1]
        for at in np.ndindex(*size):
            ends = []
            for axis, first in ((0, top), (1, left)):
                begin = int(np.floor(at[axis] * parts[axis])) + first
                end = int(np.ceil((at[axis] + 1) * parts[axis])) + first
                most = x.shape[2 + axis]
                ends.append(slice(min(max(begin, 0), most), min(max(end, 0), most)))
            inside = x[int(image)][:, ends[0], ends[1]]
            if inside.size:
                result[(number, slice(None), *at)] = inside.max(axis=(1, 2))
    return result


def _images(dtype: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    regions = np.array(REGIONS, NUMPY[dtype])
    for c, h, w in ((3, 7, 9), (1, 1, 1), (2, 8, 5)):
        yield floats((2, c, h, w), dtype), regions
    yield floats((2, 0, 3, 3), dtype), regions
    yield floats((2, 3, 3, 3), dtype), regions[:0]


IMAGE = ("n", "c", "h", "w")
ULPS = {"f32": 1e-5, "f64": 1e-12, "f16": 4e-3, "bf16": 3e-2}


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_roi_align(dtype: str, mode: str, aligned: bool) -> None:
    for size, scale, samples in (((2, 3), 1.0, 2), ((1, 1), 0.5, 1), ((5, 2), 0.75, 3)):
        settings = {"scale": scale, "samples": samples, "aligned": aligned, "mode": mode}
        run = Decomposed(
            lambda x, r, size=size, settings=settings: roi_align(x, r, size, **settings),
            spec(dtype, *IMAGE),
            spec(dtype, "r", 5),
        )
        for x, regions in _images(dtype):
            wanted = _align(wide(x), regions, size, **settings)
            found = run(x, regions)
            assert found.dtype == x.dtype
            np.testing.assert_allclose(wide(found), wanted, ULPS[dtype], ULPS[dtype])


@pytest.mark.parametrize("dtype", FLOATS)
def test_roi_pool(dtype: str) -> None:
    for size, scale in (((2, 3), 1.0), ((1, 1), 0.5), ((3, 2), 0.75)):
        run = Decomposed(
            lambda x, r, size=size, scale=scale: roi_pool(x, r, size, scale=scale),
            spec(dtype, *IMAGE),
            spec(dtype, "r", 5),
        )
        for x, regions in _images(dtype):
            wanted = _pool(wide(x), regions, size, scale)
            np.testing.assert_array_equal(wide(run(x, regions)), wanted)


@pytest.mark.rotate(2)
def test_compiled() -> None:
    operands = [spec("f32", *IMAGE), spec("f32", "r", 5)]
    functions = {
        "align": (lambda x, r: roi_align(x, r, (2, 3), scale=0.75), operands),
        "pool": (lambda x, r: roi_pool(x, r, (2, 3), scale=0.75), operands),
    }
    compiled = relax_mlir.compile(module_of(functions))
    for x, regions in _images("f32"):
        wanted = _align(wide(x), regions, (2, 3), 0.75, 2, False, "avg")
        np.testing.assert_allclose(compiled["align"](x, regions), wanted, 1e-5, 1e-5)
        np.testing.assert_array_equal(
            compiled["pool"](x, regions), _pool(wide(x), regions, (2, 3), 0.75)
        )


def test_nan_is_outside() -> None:
    run = Decomposed(
        lambda x, r: (roi_align(x, r, (1, 1)), roi_pool(x, r, (1, 1))),
        spec("f32", 1, 1, 3, 3),
        spec("f32", 1, 5),
    )
    region = np.array([[0, np.nan, 0, 2, 2]], np.float32)
    for found in run(np.ones((1, 1, 3, 3), np.float32), region):
        np.testing.assert_array_equal(found, [[[[0]]]])


@pytest.mark.parametrize(
    ("specs", "settings", "message"),
    [
        (("f32", 2, 3, 4), {}, r"but got \[2, 3, 4\] and \[7, 5\]"),
        (("i32", 2, 3, 4, 4), {}, "images and regions of floats"),
        (("f32", 2, 3, 4, 4), {"samples": 0}, "not 0 of avg"),
        (("f32", 2, 3, 4, 4), {"mode": "min"}, "not 2 of min"),
        (("f32", 2, 3, 4, 4), {"size": (0, 1)}, r"rows and columns of a result, but got \[0, 1\]"),
    ],
)
def test_what_is_refused(specs, settings, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        Decomposed(
            lambda x, r: roi_align(x, r, **{"size": (2, 2), **settings}),
            spec(*specs),
            spec("f32", 7, 5),
        )
