"""Convolution and pooling against float64 NumPy that adds window by window."""

import numpy as np
import pytest
from harness import FLOATS, Program, floats, integers, spec, wide

from relax_mlir.dialects import graph

TOLERANCE = {"f64": 1e-13, "f32": 3e-6, "f16": 2e-3, "bf16": 1.6e-2}


def _windows(x: np.ndarray, size, strides, padding, dilation, fill: float) -> np.ndarray:
    """The windows of x[n, c, h, w] as [n, c, y, x, kh, kw]."""
    top, left, bottom, right = padding
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=fill)
    counts = [
        (x.shape[2 + i] - (size[i] - 1) * dilation[i] - 1) // strides[i] + 1 for i in range(2)
    ]
    found = np.empty((*x.shape[:2], *counts, *size), x.dtype)
    for u in range(size[0]):
        for v in range(size[1]):
            rows = u * dilation[0] + strides[0] * np.arange(counts[0])
            columns = v * dilation[1] + strides[1] * np.arange(counts[1])
            found[..., u, v] = x[:, :, rows][..., columns]
    return found


def conv2d(x, weight, strides=(1, 1), padding=(0, 0, 0, 0), dilation=(1, 1), groups=1):
    """The reference, in the precision of its operands."""
    windows = _windows(x, weight.shape[2:], strides, padding, dilation, 0)
    n, _, rows, columns = windows.shape[:4]
    windows = windows.reshape(n, groups, weight.shape[1], *windows.shape[2:])
    filters = weight.reshape(groups, len(weight) // groups, *weight.shape[1:])
    return np.einsum("ngcyxuv,gfcuv->ngfyx", windows, filters).reshape(
        n, len(weight), rows, columns
    )


def _assert_near(actual: np.ndarray, expected: np.ndarray, dtype: str) -> None:
    assert actual.shape == expected.shape
    scale = max(1.0, np.abs(expected).max(initial=0))
    difference = np.abs(wide(actual) - expected).max(initial=0)
    assert difference <= TOLERANCE[dtype] * scale


def _convolve(route, dtype, weight_dims, sizes, **attributes) -> None:
    filled = {"strides": (1, 1), "padding": (0, 0, 0, 0), "dilation": (1, 1), "groups": 1}
    filled |= attributes
    channels = weight_dims[1] * filled["groups"]
    specs = spec(dtype, "n", channels, "h", "w"), spec(dtype, *weight_dims)
    program = Program(graph.Conv2dOp, *specs, route=route, **filled)
    weight = floats(weight_dims, dtype)
    for n, h, w in sizes:
        x = floats((n, channels, h, w), dtype)
        _assert_near(program(x, weight), conv2d(wide(x), wide(weight), **filled), dtype)


SIZES = ((1, 5, 6), (2, 3, 17), (1, 1, 1), (0, 4, 4), (3, 9, 31))


@pytest.mark.parametrize("dtype", FLOATS)
def test_three_by_three(dtype: str, route: str) -> None:
    _convolve(route, dtype, (5, 3, 3, 3), SIZES, padding=(1, 1, 1, 1))


@pytest.mark.parametrize(
    ("weight", "attributes"),
    [
        ((33, 7, 1, 1), {}),
        ((27, 3, 1, 1), {"groups": 3}),
        ((8, 4, 1, 1), {"strides": (2, 2)}),
        ((6, 3, 3, 3), {"strides": (2, 2), "padding": (1, 1, 1, 1)}),
        ((4, 3, 7, 7), {"strides": (2, 2), "padding": (3, 3, 3, 3)}),
        ((4, 2, 3, 3), {"dilation": (2, 2), "padding": (2, 2, 2, 2)}),
        ((3, 2, 2, 3), {"strides": (1, 3), "padding": (0, 2, 1, 1), "dilation": (3, 1)}),
        ((6, 2, 3, 3), {"groups": 3, "padding": (1, 1, 1, 1)}),
        ((5, 1, 3, 3), {"groups": 5, "padding": (1, 1, 1, 1), "strides": (2, 1)}),
        ((4, 0, 1, 1), {}),
    ],
)
def test_windows(weight, attributes, route: str) -> None:
    sizes = ((1, 7, 8), (2, 11, 16), (1, 7, 33))
    _convolve(route, "f32", weight, sizes, **attributes)


@pytest.mark.parametrize(
    ("dtype", "weight", "attributes"),
    [
        ("f32", (67, 2, 3, 3), {"padding": (1, 0, 2, 1)}),
        ("f16", (16, 17, 1, 1), {"strides": (2, 1)}),
        ("bf16", (34, 3, 2, 3), {"groups": 2, "strides": (1, 3), "dilation": (3, 1)}),
        ("f64", (64, 1, 5, 7), {"strides": (2, 2), "padding": (2, 3, 2, 3)}),
        ("f32", (48, 16, 1, 1), {"groups": 3, "padding": (0, 0, 0, 2)}),
    ],
)
def test_tiles(dtype, weight, attributes, route: str) -> None:
    """So many filters, and products in a sum, that devices multiply them by tiles."""
    _convolve(route, dtype, weight, ((1, 7, 9), (3, 4, 11), (0, 5, 8)), **attributes)


def test_no_place_for_a_window(route: str) -> None:
    _convolve(route, "f32", (3, 2, 3, 3), ((1, 0, 5), (2, 4, 0)), padding=(1, 1, 1, 1))


def _max_pool2d(x, window, strides, padding, dilation, fill) -> np.ndarray:
    return _windows(x, window, strides, padding, dilation, fill).max((4, 5), initial=fill)


def _pool(route: str, dtype: str, sizes, **attributes) -> None:
    program = Program(graph.MaxPool2dOp, spec(dtype, "n", 3, "h", "w"), route=route, **attributes)
    fill = -128 if dtype == "i8" else -np.inf
    for n, h, w in sizes:
        x = (integers if dtype == "i8" else floats)((n, 3, h, w), dtype)
        expected = _max_pool2d(wide(x), **attributes, fill=fill)
        np.testing.assert_array_equal(wide(program(x)), expected)


@pytest.mark.parametrize(
    ("window", "strides", "padding", "dilation"),
    [
        ((3, 3), (2, 2), (1, 1, 1, 1), (1, 1)),
        ((1, 3), (1, 1), (0, 1, 0, 1), (1, 2)),
        ((2, 2), (3, 3), (4, 0, 0, 3), (1, 1)),
        ((7, 7), (1, 4), (0, 0, 0, 0), (1, 1)),
    ],
)
def test_max_pool(window, strides, padding, dilation, route: str) -> None:
    sizes = ((1, 7, 8), (2, 9, 35), (0, 7, 7), (1, 8, 150))
    _pool(
        route, "f32", sizes, window=window, strides=strides, padding=padding, dilation=dilation
    )  # fmt: skip


@pytest.mark.parametrize("dtype", ["bf16", "f64", "i8"])
def test_max_pool_of_other_types(dtype: str, route: str) -> None:
    sizes = ((1, 7, 8), (2, 3, 35))
    attributes = {"strides": (2, 2), "padding": (1, 1, 1, 1), "dilation": (1, 1)}
    _pool(route, dtype, sizes, window=(3, 3), **attributes)


def test_max_pool_keeps_nan(route: str) -> None:
    attributes = {"window": (2, 2), "strides": (1, 1), "padding": (0,) * 4, "dilation": (1, 1)}
    program = Program(graph.MaxPool2dOp, spec("f32", 1, 1, "h", "w"), route=route, **attributes)
    x = floats((1, 1, 4, 20), "f32")
    x[0, 0, 1, 7] = np.nan
    expected = _max_pool2d(wide(x), **attributes, fill=-np.inf)
    np.testing.assert_array_equal(program(x), expected.astype(np.float32))
