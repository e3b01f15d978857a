"""Columns of windows and positions of maxima, against NumPy window by window."""

from itertools import product

import numpy as np
import pytest
from decomposed import Decomposed, module_of
from harness import NUMPY, floats, integers, spec, wide

from relax_mlir import decompositions as d
from relax_mlir.dialects.graph import ShapeError

CASES = [
    ((7,), (3,), {}),
    ((9,), (3,), {"strides": [2], "padding": [2, 1], "dilation": [3]}),
    ((6, 5), (2, 3), {"strides": [2, 1], "padding": [1, 1, 0, 1]}),
    ((8, 7), (3, 2), {"strides": [3, 2], "padding": [1, 0, 2, 1], "dilation": [2, 1]}),
    ((4, 5, 6), (2, 2, 3), {"strides": [1, 2, 2], "padding": [1, 0, 1, 0, 1, 1]}),
]
NAMES = ("h", "w", "v")


def _taps(sizes, window, strides=None, padding=None, dilation=None, extra=0):
    """For each window the positions of its elements, by the position of the window."""
    rank = len(sizes)
    strides, dilation = strides or [1] * rank, dilation or [1] * rank
    padding = padding or [0] * (2 * rank)
    counts = []
    for i in range(rank):
        space = sizes[i] + padding[i] + padding[rank + i] - (window[i] - 1) * dilation[i] - 1
        count = -(-space // strides[i]) + 1 if extra else space // strides[i] + 1
        if extra and (count - 1) * strides[i] >= sizes[i] + padding[i]:
            count -= 1
        counts.append(count)
    found = {}
    for at in np.ndindex(*counts):
        found[at] = [
            tuple(o * s - p + t * g for o, s, p, t, g in zip(at, strides, padding, tap, dilation))
            for tap in product(*map(range, window))
        ]
    return counts, found


def _inside(at, sizes) -> bool:
    return all(0 <= i < n for i, n in zip(at, sizes))


@pytest.mark.parametrize(("sizes", "window", "settings"), CASES)
@pytest.mark.parametrize("dtype", ["f64", "i32"])
def test_unfold_and_fold(sizes, window, settings, dtype: str) -> None:
    names = NAMES[: len(sizes)]
    x = floats((2, 3, *sizes), dtype) if dtype == "f64" else integers((2, 3, *sizes), dtype)
    counts, windows = _taps(sizes, window, **settings)
    wanted = np.zeros((2, 3, int(np.prod(window)), *counts), NUMPY[dtype])
    for at, taps in windows.items():
        for k, tap in enumerate(taps):
            if _inside(tap, sizes):
                wanted[(slice(None), slice(None), k, *at)] = x[(slice(None), slice(None), *tap)]
    run = Decomposed(lambda v: d.unfold(v, window, **settings), spec(dtype, "n", 3, *names))
    columns = run(x)
    np.testing.assert_array_equal(columns, wanted.reshape(2, 3 * np.prod(window), -1))

    back = Decomposed(
        lambda c: d.fold(c, sizes, window, **settings),
        spec(dtype, "n", 3 * int(np.prod(window)), int(np.prod(counts))),
    )
    y = np.arange(columns.size).reshape(columns.shape).astype(NUMPY[dtype])
    parts = y.reshape(2, 3, int(np.prod(window)), *counts)
    summed = np.zeros((2, 3, *sizes), NUMPY[dtype])
    for at, taps in windows.items():
        for k, tap in enumerate(taps):
            if _inside(tap, sizes):
                summed[(slice(None), slice(None), *tap)] += parts[
                    (slice(None), slice(None), k, *at)
                ]
    np.testing.assert_array_equal(back(y), summed)


def _best(values):
    """The first greatest element, or the first NaN."""
    for i, v in enumerate(values):
        if np.isnan(v):
            return i
    return int(np.argmax(values))


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize(("sizes", "window", "settings"), CASES)
def test_max_pool_with_indices(sizes, window, settings, ceil_mode: bool) -> None:
    names = NAMES[: len(sizes)]
    run = Decomposed(
        lambda v: d.max_pool_with_indices(v, window, ceil_mode=ceil_mode, **settings),
        spec("f32", "n", 2, *names),
    )
    x = np.round(floats((3, 2, *sizes), "f32"))  # many are equal
    x[1] = -np.inf
    x[2, 0].flat[::5] = np.nan
    counts, windows = _taps(sizes, window, **settings, extra=int(ceil_mode))
    values, indices = run(x)
    assert values.shape == indices.shape == (3, 2, *counts)
    for at, taps in windows.items():
        valid = [tap for tap in taps if _inside(tap, sizes)]
        for n, c in np.ndindex(3, 2):
            best = valid[_best([x[(n, c, *tap)] for tap in valid])]
            np.testing.assert_array_equal(values[(n, c, *at)], x[(n, c, *best)])
            assert indices[(n, c, *at)] == np.ravel_multi_index(best, sizes)


def test_max_pool_of_integers() -> None:
    run = Decomposed(
        lambda v: d.max_pool_with_indices(v, [2], strides=[2], padding=[1, 1]),
        spec("i8", 1, 1, "n"),
    )
    values, indices = run(np.array([[[-128, 5, 5, -128]]], np.int8))
    assert values.tolist() == [[[-128, 5, -128]]]
    assert indices.tolist() == [[[0, 1, 3]]]


@pytest.mark.parametrize("flat", [False, True])
def test_max_unpool(flat: bool) -> None:
    x = floats((2, 3, 8, 6), "f32")
    pooled = Decomposed(
        lambda v: d.max_pool_with_indices(v, [2, 2], strides=[2, 2]), spec("f32", "n", 3, "h", "w")
    )
    values, indices = pooled(x)
    wanted = np.zeros_like(x).reshape(2, 3, -1)
    np.put_along_axis(wanted, indices.reshape(2, 3, -1), values.reshape(2, 3, -1), 2)
    run = Decomposed(
        lambda v, i: d.max_unpool(v, i, ["2*h", "2*w"], flat=flat),
        spec("f32", "n", 3, "h", "w"), spec("i64", "n", 3, "h", "w"),
    )  # fmt: skip
    if flat:
        indices = indices + np.arange(6).reshape(2, 3, 1, 1) * 48
    np.testing.assert_array_equal(run(values, indices), wanted.reshape(x.shape))


def test_positions_outside_are_left_out() -> None:
    run = Decomposed(
        lambda v, i: d.max_unpool(v, i, [3]), spec("f32", 1, 1, "n"), spec("i32", 1, 1, "n")
    )
    found = run(np.array([[[1, 2, 3]]], np.float32), np.array([[[2, -1, 3]]], np.int32))
    assert found.tolist() == [[[0, 0, 1]]]


def test_images_of_less_than_a_window_are_refused() -> None:
    run = Decomposed(lambda v: d.unfold(v, [3]), spec("f32", 1, 1, "n"))
    with pytest.raises(Exception, match="requires 3 <= n"):
        run(np.zeros((1, 1, 2), np.float32))


def _bilinear(image, y, x):
    h, w = image.shape
    total = 0.0
    for i in (int(np.floor(y)), int(np.floor(y)) + 1):
        for j in (int(np.floor(x)), int(np.floor(x)) + 1):
            if 0 <= i < h and 0 <= j < w:
                total += image[i, j] * (1 - abs(y - i)) * (1 - abs(x - j))
    return total


def _deformed(x, offset, weight, mask, strides, padding, dilation, groups, offset_groups):
    n, c, h, w = x.shape
    o, own, kh, kw = weight.shape
    counts, windows = _taps((h, w), (kh, kw), strides, padding, dilation)
    offset = offset.reshape(n, offset_groups, kh * kw, 2, *counts)
    mask = mask.reshape(n, offset_groups, kh * kw, *counts)
    result = np.zeros((n, o, *counts))
    for (row, column), taps in windows.items():
        for b, f, k in np.ndindex(n, o, own):
            channel = f // (o // groups) * own + k
            g = channel // (c // offset_groups)
            for t, (y, z) in enumerate(taps):
                dy, dx = offset[b, g, t, :, row, column]
                value = _bilinear(x[b, channel], y + dy, z + dx) * mask[b, g, t, row, column]
                result[b, f, row, column] += value * weight[f, k].reshape(-1)[t]
    return result


@pytest.mark.parametrize(
    ("groups", "offset_groups", "settings"),
    [
        (1, 1, {}), (2, 1, {"strides": [2, 1], "padding": [1, 0, 1, 2]}),
        (1, 2, {"dilation": [1, 2], "padding": [1, 1, 0, 1]}), (2, 4, {"strides": [2, 3]}),
    ],
)  # fmt: skip
def test_deform_conv2d(groups: int, offset_groups: int, settings) -> None:
    x, weight = floats((2, 4, 6, 7), "f64"), floats((6, 4 // groups, 2, 3), "f64")
    counts, _ = _taps((6, 7), (2, 3), **settings)
    offset = floats((2, offset_groups * 12, *counts), "f64", -2.5, 2.5)
    mask, bias = floats((2, offset_groups * 6, *counts), "f64"), floats((6,), "f64")
    own = {"groups": groups, "offset_groups": offset_groups}
    run = Decomposed(
        lambda v, o, f, b, m: d.deform_conv2d(v, o, f, b, m, **own, **settings),
        spec("f64", "n", 4, "h", "w"), spec("f64", "n", offset_groups * 12, "p", "q"),
        spec("f64", 6, 4 // groups, 2, 3), spec("f64", 6),
        spec("f64", "n", offset_groups * 6, "p", "q"),
    )  # fmt: skip
    full = {"strides": None, "padding": None, "dilation": None} | settings
    wanted = _deformed(x, offset, weight, mask, **full, **own) + bias[:, None, None]
    np.testing.assert_allclose(run(x, offset, weight, bias, mask), wanted, rtol=1e-11, atol=1e-11)


def test_deform_conv2d_without_moves_is_a_convolution() -> None:
    x, weight = floats((1, 3, 5, 5), "f16"), floats((4, 3, 3, 3), "f16")
    run = Decomposed(
        lambda v, o, f: d.deform_conv2d(v, o, f, padding=[1] * 4),
        spec("f16", 1, 3, 5, 5), spec("f16", 1, 18, 5, 5), spec("f16", 4, 3, 3, 3),
    )  # fmt: skip
    plain = Decomposed(
        lambda v, f: d.conv(v, f, padding=[1] * 4), spec("f16", 1, 3, 5, 5), spec("f16", 4, 3, 3, 3)
    )
    found = run(x, np.zeros((1, 18, 5, 5), np.float16), weight)
    np.testing.assert_allclose(wide(found), wide(plain(x, weight)), rtol=2e-3, atol=2e-3)


X, F = spec("f32", 1, 4, 6, 6), spec("f32", 4, 4, 3, 3)


@pytest.mark.parametrize(
    ("build", "specs", "message"),
    [
        (lambda x: d.unfold(x, [7, 1]), [X], "has a window of 7 elements, but a dim of 6"),
        (lambda x: d.fold(x, [6], [3]), [X], "expects columns of rank 3"),
        (lambda x: d.fold(x, [6], [3]), [spec("f32", 1, 4, 4)], "has 4 by 4 elements of columns"),
        (lambda x: d.fold(x, [6], [3]), [spec("f32", 1, 3, 5)], "has 3 by 5 elements of columns"),
        (lambda x: d.max_pool_with_indices(x, [3]), [X], "expects window, strides"),
        (lambda x: d.max_unpool(x, x, [3, 3]), [X], "expects a position for each element"),
        (lambda x, i: d.max_unpool(x, i, [3]), [X, spec("i64", 1, 4, 6, 6)], "1 spatial dims"),
        (lambda x, i: d.max_unpool(x, i, [9, 9]), [X, spec("i64", 1, 4, 6, 5)], "a position for"),
        (d.deform_conv2d, [X, spec("f32", 1, 18, 4, 5), F], "expects offsets of dims"),
        (d.deform_conv2d, [X, spec("f32", 1, 18, 4, 4), spec("f32", 4, 3, 3, 3)],
         "has filters of 3 channels in 1 groups, but 4 channels"),
        (d.deform_conv2d, [X, spec("f64", 1, 18, 4, 4), F], "expects floats of one type"),
        (d.deform_conv2d, [X, X, spec("f32", 4, 4, "k", 3)], "expects filters of constant size"),
        (d.deform_conv2d, [spec("f32", 4, 6, 6), X, F], "expects images and filters"),
        (lambda *v: d.deform_conv2d(*v, groups=3), [X, X, F], "expects 3 groups of channels"),
        (lambda *v: d.deform_conv2d(*v, groups=0), [X, X, F], "expects groups, but got 0 and 1"),
    ],
)  # fmt: skip
def test_what_is_refused(build, specs, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        module_of({"main": (build, specs)})
