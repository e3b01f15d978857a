"""Convolutions of one to three dims, and transposed ones, against float64 NumPy tap by tap."""

import numpy as np
import pytest
from decomposed import Decomposed, module_of
from harness import FLOATS, NUMPY, floats, spec, wide

from relax_mlir import decompositions as d
from relax_mlir.dialects.graph import ShapeError
from relax_mlir.errors import ExecutionError

TOLERANCE = {"f64": 1e-12, "f32": 4e-6, "f16": 2e-3, "bf16": 1.6e-2}
NAMES = ("h", "w", "v")


def _near(actual, expected, dtype: str = "f32") -> None:
    assert actual.dtype == NUMPY[dtype]
    assert actual.shape == expected.shape
    scale = TOLERANCE[dtype] * max(1, np.abs(expected).max(initial=0))
    np.testing.assert_allclose(wide(actual), expected, rtol=TOLERANCE[dtype], atol=scale)


def _conv(x, weight, strides, padding, dilation, groups):
    rank = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0), *zip(padding[:rank], padding[rank:])])
    filters, each, *window = weight.shape
    counts = [
        (n - (k - 1) * step - 1) // stride + 1
        for n, k, stride, step in zip(x.shape[2:], window, strides, dilation)
    ]
    result = np.zeros((len(x), groups, filters // groups, *counts))
    parts = weight.reshape(groups, filters // groups, *weight.shape[1:])
    for tap in np.ndindex(*window):
        at = [
            np.arange(count) * stride + j * step
            for count, j, stride, step in zip(counts, tap, strides, dilation)
        ]
        seen = x[np.ix_(range(len(x)), range(x.shape[1]), *at)]
        seen = seen.reshape(len(x), groups, each, *counts)
        result += np.einsum("ngc...,gfc->ngf...", seen, parts[(..., *tap)])
    return result.reshape(len(x), filters, *counts)


def _transposed(x, weight, strides, padding, output_padding, dilation, groups):
    rank = x.ndim - 2
    channels, each, *window = weight.shape
    full = [
        (n - 1) * stride + (k - 1) * step + 1 + max(more, 0)
        for n, k, stride, step, more in zip(x.shape[2:], window, strides, dilation, output_padding)
    ]
    result = np.zeros((len(x), groups, each, *full))
    seen = x.reshape(len(x), groups, channels // groups, *x.shape[2:])
    parts = weight.reshape(groups, channels // groups, *weight.shape[1:])
    for tap in np.ndindex(*window):
        at = [
            slice(j * step, j * step + (n - 1) * stride + 1, stride)
            for n, j, stride, step in zip(x.shape[2:], tap, strides, dilation)
        ]
        product = np.einsum("ngc...,gcf->ngf...", seen, parts[(..., *tap)])
        result[(slice(None), slice(None), slice(None), *at)] += product
    kept = [slice(a, n - b) for n, a, b in zip(full, padding[:rank], padding[rank:])]
    result = result.reshape(len(x), groups * each, *full)
    return result[(slice(None), slice(None), *kept)]


CONVOLUTIONS = [
    # weight, strides, padding, dilation, groups
    ((4, 2, 32), [16], [30, 41], [1], 2),
    ((3, 1, 17), [17], [20, 23], [1], 1),
    ((2, 3, 32), [16], [5, 6], [1], 1),
    ((5, 3, 3), [1], [1, 1], [1], 1),
    ((4, 2, 4), [3], [0, 2], [2], 2),
    ((6, 1, 5), [1], [2, 2], [1], 3),
    ((4, 3, 2, 3), [2, 1], [1, 0, 0, 2], [1, 2], 1),
    ((6, 1, 3, 3), [1, 1], [1, 1, 1, 1], [1, 1], 3),
    ((5, 3, 2, 3, 2), [1, 1, 1], [0] * 6, [1, 1, 1], 1),
    ((4, 2, 3, 2, 1), [2, 1, 2], [1, 0, 0, 2, 1, 0], [2, 1, 1], 2),
    ((3, 1, 1, 3, 3), [1, 2, 1], [0, 1, 1, 0, 1, 1], [1, 1, 2], 3),
]


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize(("weight", "strides", "padding", "dilation", "groups"), CONVOLUTIONS)
def test_convolutions(weight, strides, padding, dilation, groups, symbolic: bool) -> None:
    rank, channels = len(weight) - 2, weight[1] * groups
    settings = {"strides": strides, "padding": padding, "dilation": dilation, "groups": groups}
    for sizes in ((7, 8, 9), (9, 11, 7)):
        dims = ("n", channels, *NAMES[:rank]) if symbolic else (2, channels, *sizes[:rank])
        run = Decomposed(
            lambda *v: d.conv(*v, **settings),
            spec("f32", *dims), spec("f32", *weight), spec("f32", weight[0]),
        )  # fmt: skip
        x, w, bias = (
            floats(shape, "f32") for shape in ((2, channels, *sizes[:rank]), weight, weight[:1])
        )
        wanted = _conv(wide(x), wide(w), **settings)
        _near(run(x, w, bias), wanted + wide(bias).reshape(-1, *[1] * rank))


@pytest.mark.parametrize("dtype", FLOATS)
def test_types(dtype: str) -> None:
    x, w, back = floats((2, 3, 4, 5, 3), dtype), floats((2, 3, 2, 3, 1), dtype), (3, 2, 2, 2, 2)
    run = Decomposed(d.conv, spec(dtype, 2, 3, "h", "w", 3), spec(dtype, *w.shape))
    _near(run(x, w), _conv(wide(x), wide(w), [1] * 3, [0] * 6, [1] * 3, 1), dtype)
    run = Decomposed(
        lambda *v: d.conv_transpose(*v, strides=[2, 1, 2]),
        spec(dtype, 2, 3, "h", "w", 3), spec(dtype, *back),
    )  # fmt: skip
    w = floats(back, dtype)
    wanted = _transposed(wide(x), wide(w), [2, 1, 2], [0] * 6, [0] * 3, [1] * 3, 1)
    _near(run(x, w), wanted, dtype)


TRANSPOSED = [
    # weight, strides, padding, output padding, dilation, groups
    ((3, 5, 3), [1], [0, 0], [0], [1], 1),
    ((3, 5, 4), [2], [1, 1], [0], [1], 1),
    ((4, 2, 3), [2], [1, 1], [1], [1], 2),
    ((3, 2, 2), [3], [0, 1], [2], [1], 1),
    ((2, 2, 4), [2], [0, 2], [1], [2], 1),
    ((2, 1, 3), [4], [1, 0], [3], [6], 2),
    ((2, 2, 3), [3], [0, 0], [0], [2], 1),
    ((3, 2, 3), [1], [2, 1], [0], [2], 1),
    ((3, 4, 3, 3), [2, 2], [1, 1, 1, 1], [1, 1], [1, 1], 1),
    ((4, 1, 2, 3), [2, 1], [0, 1, 0, 0], [0, 0], [1, 2], 4),
    ((4, 3, 1, 5), [3, 2], [0, 2, 0, 1], [1, 0], [1, 3], 2),
    ((2, 3, 2, 3, 2), [2, 1, 2], [0, 1, 0, 1, 1, 0], [1, 0, 0], [1, 1, 1], 1),
    ((4, 1, 3, 1, 2), [2, 2, 1], [1, 0, 0, 1, 0, 1], [0, 1, 0], [1, 1, 2], 2),
]


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize(
    ("weight", "strides", "padding", "output_padding", "dilation", "groups"), TRANSPOSED
)
def test_transposed(
    weight, strides, padding, output_padding, dilation, groups, symbolic: bool
) -> None:
    rank, channels = len(weight) - 2, weight[0]
    settings = {
        "strides": strides,
        "padding": padding,
        "output_padding": output_padding,
        "dilation": dilation,
        "groups": groups,
    }
    sizes = (3, 5, 4)[:rank]
    dims = ("n", channels, *NAMES[:rank]) if symbolic else (2, channels, *sizes)
    run = Decomposed(
        lambda *v: d.conv_transpose(*v, **settings),
        spec("f32", *dims), spec("f32", *weight), spec("f32", weight[1] * groups),
    )  # fmt: skip
    x, w, bias = (
        floats(shape, "f32") for shape in ((2, channels, *sizes), weight, (weight[1] * groups,))
    )
    wanted = _transposed(wide(x), wide(w), **settings)
    _near(run(x, w, bias), wanted + wide(bias).reshape(-1, *[1] * rank))


ANY = [(CONVOLUTIONS[i], None) for i in (1, 3, 6)] + [(TRANSPOSED[i], 0) for i in (2, 9, 12)]


@pytest.mark.parametrize(("case", "axis"), ANY)
def test_filters_of_any_extents(case, axis) -> None:
    weight, strides, padding, *output_padding, dilation, groups = case
    build, reference = (d.conv, _conv) if axis is None else (d.conv_transpose, _transposed)
    settings = {"strides": strides, "padding": padding, "dilation": dilation, "groups": groups}
    if output_padding:
        settings["output_padding"] = output_padding[0]
    rank, channels = len(weight) - 2, weight[0] if axis == 0 else weight[1] * groups
    filters = spec("f32", *weight[:2], *("i", "j", "k")[:rank])
    image = spec("f32", "n", channels, *NAMES[:rank])
    run = Decomposed(lambda *v: build(*v, **settings), image, filters)
    for sizes, more in (((7, 8, 9), 0), ((9, 11, 7), 1)):
        own = (*weight[:2], *(extent + more for extent in weight[2:]))
        x, w = floats((2, channels, *sizes[:rank]), "f32"), floats(own, "f32")
        _near(run(x, w), reference(wide(x), wide(w), **settings))


def test_groups_of_any_channels() -> None:
    filters = spec("f32", "o", 2, "i")
    run = Decomposed(lambda *v: d.conv(*v, groups=2), spec("f32", 1, 4, "h"), filters)
    x = floats((1, 4, 6), "f32")
    assert run(x, floats((6, 2, 3), "f32")).shape == (1, 6, 4)
    with pytest.raises(ExecutionError, match=r"requires o mod 2 == 0, but o = 5"):
        run(x, floats((5, 2, 3), "f32"))
    with pytest.raises(ExecutionError, match=r"requires i <= h \+ 1, but i = 8"):
        run(x, floats((6, 2, 8), "f32"))


def test_an_infinite_element_reaches_its_own_taps_alone() -> None:
    x = np.array([[[1, np.inf, 2]]], np.float32)
    w = np.array([[[1, 2, 3]]], np.float32)
    run = Decomposed(
        lambda *v: d.conv_transpose(*v, strides=[2]), spec("f32", 1, 1, 3), spec("f32", 1, 1, 3)
    )
    inf = np.inf
    np.testing.assert_array_equal(run(x, w), [[[1, 2, inf, inf, inf, 4, 6]]])


def test_volumes_of_no_window_are_refused() -> None:
    filters = spec("f32", 3, 2, 3, 2, 2)
    run = Decomposed(lambda *v: d.conv(*v), spec("f32", 1, 2, "n", 4, 4), filters)
    w = np.ones((3, 2, 3, 2, 2), np.float32)
    assert run(np.ones((1, 2, 2, 4, 4), np.float32), w).shape == (1, 3, 0, 3, 3)
    with pytest.raises(ExecutionError, match=r"requires 3 <= n \+ 1, but n = 1"):
        run(np.ones((1, 2, 1, 4, 4), np.float32), w)
    with pytest.raises(ShapeError, match="a window of 3 with stride 1, but a dim of 1"):
        module_of({"main": (d.conv, [spec("f32", 1, 2, 1, 4, 4), filters])})


IMAGE, FILTER = spec("f32", 1, 4, 7, 8), spec("f32", 4, 2, 3, 3)


def test_transposed_convolution_of_a_great_stride() -> None:
    stride = (1 << 16) + 1
    x, weight = np.array([[[2, 3]]], np.float32), np.array([[[5, 7, 11]]], np.float32)
    run = Decomposed(
        lambda *v: d.conv_transpose(*v, strides=[stride]),
        spec("f32", 1, 1, 2),
        spec("f32", 1, 1, 3),
    )
    expected = np.zeros((1, 1, stride + 3), np.float32)
    expected[..., :3], expected[..., stride:] = 2 * weight, 3 * weight
    np.testing.assert_array_equal(run(x, weight), expected)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda x, w: d.conv(x, d.einsum("abcd->abc", w)), "convolves ranks 4 and 3"),
        (lambda x, w: d.conv(x, w, strides=[1]), "expects strides, padding and dilation of rank 4"),
        (lambda x, w: d.conv(x, w, strides=[1, 0], groups=2), "has strides"),
        (lambda x, w: d.conv(x, w), "expects 2 channels"),
        (lambda x, w: d.conv_transpose(x, w, output_padding=[1]), "has output padding"),
        (lambda x, w: d.conv_transpose(x, w, groups=3), "expects groups that divide 4"),
    ],
)
def test_what_is_refused(build, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        module_of({"main": (build, [IMAGE, FILTER])})
