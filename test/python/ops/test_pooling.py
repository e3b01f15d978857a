"""Pooling of one to three dims, against NumPy window by window in float64."""

import itertools

import numpy as np
import pytest
from decomposed import Decomposed, module_of
from harness import FLOATS, NUMPY, Program, floats, integers, numbers, spec, wide

from relax_mlir import decompositions as d
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError
from relax_mlir.errors import ExecutionError

TOLERANCE = {"f64": 1e-13, "f32": 3e-6, "f16": 2e-3, "bf16": 1.6e-2}
NAMES = ("h", "w", "v")


def _starts(size, window, stride, low, high, dilation, ceil_mode):
    """Where the windows of a dim begin, as PyTorch and ONNX say."""
    span = size + low + high - (window - 1) * dilation - 1
    count = (-(-span // stride) if ceil_mode else span // stride) + 1
    starts = [i * stride - low for i in range(count)]
    return [s for s in starts if not ceil_mode or s < size]


def pooled(x, combine, window, strides, padding, dilation, ceil_mode):
    """`combine(elements, in_padding)` of each window."""
    spatial = x.shape[2:]
    rank = len(spatial)
    settings = zip(spatial, window, strides, padding[:rank], padding[rank:], dilation)
    starts = [_starts(*each, ceil_mode) for each in settings]
    result = np.empty((*x.shape[:2], *map(len, starts)), np.float64)
    for at in np.ndindex(*map(len, starts)):
        ranges = [
            [first[i] + k * step for k in range(size)]
            for first, i, size, step in zip(starts, at, window, dilation)
        ]
        inside = [[p for p in r if 0 <= p < n] for r, n in zip(ranges, spatial)]
        padded = [
            sum(-low <= p < n + high for p in r)
            for r, n, low, high in zip(ranges, spatial, padding[:rank], padding[rank:])
        ]
        part = x[(slice(None), slice(None), *np.ix_(*inside))]
        result[(..., *at)] = combine(
            part.reshape(*x.shape[:2], int(np.prod(part.shape[2:]))), int(np.prod(padded))
        )
    return result


def _near(actual, expected, dtype: str = "f32") -> None:
    assert actual.dtype == NUMPY[dtype]
    np.testing.assert_allclose(wide(actual), expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


SETTINGS = [
    # window, strides, padding, dilation, ceil_mode
    ([3], [2], [1, 1], [1], False),
    ([3], [2], [0, 0], [1], True),
    ([1], [3], [0, 1], [1], True),
    ([2], [3], [1, 0], [2], True),
    ([3, 2], [2, 1], [1, 0, 1, 1], [1, 2], False),
    ([2, 2], [2, 2], [0, 0, 0, 0], [1, 1], True),
    ([3, 3], [2, 2], [1, 1, 1, 1], [1, 1], True),
    ([3, 2, 2], [2, 1, 2], [1, 0, 1, 0, 1, 0], [1, 1, 2], False),
    ([2, 3, 1], [2, 2, 3], [1, 1, 0, 0, 1, 0], [1, 1, 1], True),
]
SIZES = ((7, 8, 9), (5, 6, 4))


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize(("window", "strides", "padding", "dilation", "ceil_mode"), SETTINGS)
def test_windows(window, strides, padding, dilation, ceil_mode, symbolic: bool) -> None:
    settings = {"strides": strides, "padding": padding, "dilation": dilation}
    settings["ceil_mode"] = ceil_mode
    rank = len(window)
    kinds = {
        "max": (d.max_pool, {}, lambda x, _: x.max(-1, initial=-np.inf)),
        "inside": (d.avg_pool, {}, lambda x, _: x.sum(-1) / x.shape[-1]),
        "padded": (d.avg_pool, {"count_include_pad": True}, lambda x, count: x.sum(-1) / count),
        "divisor": (d.avg_pool, {"divisor": 7}, lambda x, _: x.sum(-1) / 7),
        "sum": (d.sum_pool, {}, lambda x, _: x.sum(-1)),
        "p2": (d.lp_pool, {}, lambda x, _: np.sqrt((x**2).sum(-1))),
        "p1": (d.lp_pool, {"p": 1}, lambda x, _: np.abs(x).sum(-1)),
        "p3": (d.lp_pool, {"p": 3}, lambda x, _: (np.abs(x) ** 3).sum(-1) ** (1 / 3)),
    }
    for sizes in SIZES:
        dims = NAMES[:rank] if symbolic else sizes[:rank]
        for pool, more, combine in kinds.values():
            run = Decomposed(
                lambda x, p=pool, m=more: p(x, window, **settings, **m), spec("f32", 2, 3, *dims)
            )
            x = floats((2, 3, *sizes[:rank]), "f32")
            with np.errstate(invalid="ignore"):
                wanted = pooled(wide(x), combine, window, **settings)
            _near(run(x), wanted)


@pytest.mark.parametrize("dtype", FLOATS)
def test_averages_of_types(dtype: str) -> None:
    run = Decomposed(
        lambda x: d.avg_pool(x, [3, 3], padding=[1, 1, 1, 1]), spec(dtype, 1, 2, "h", "w")
    )
    x = floats((1, 2, 5, 6), dtype)
    settings = ([3, 3], [1, 1], [1] * 4, [1, 1], False)
    _near(run(x), pooled(wide(x), lambda v, _: v.sum(-1) / v.shape[-1], *settings), dtype)


@pytest.mark.parametrize("dtype", [*FLOATS, "i32", "i8"])
def test_sums_of_types(dtype: str, route: str) -> None:
    settings = {"strides": (2, 1), "padding": (1, 0, 1, 2), "dilation": (1, 2)}
    image = spec(dtype, "n", 2, "h", "w")
    program = Program(graph.SumPool2dOp, image, window=(3, 2), route=route, **settings)
    for n, h, w in ((1, 5, 6), (2, 3, 17), (0, 4, 4)):
        x = numbers((n, 2, h, w), dtype)
        wanted = pooled(wide(x), lambda v, _: v.sum(-1), (3, 2), **settings, ceil_mode=False)
        if dtype in FLOATS:
            _near(program(x), wanted, dtype)
        else:
            np.testing.assert_array_equal(program(x), wanted)


def test_sums_of_integers_wrap() -> None:
    x = integers((1, 1, 4, 5), "i8", 90, 127)
    run = Decomposed(lambda v: d.sum_pool(v, [2, 2]), spec("i8", 1, 1, "h", "w"))
    wanted = pooled(x, lambda v, _: v.sum(-1), [2, 2], [1, 1], [0] * 4, [1, 1], False)
    np.testing.assert_array_equal(run(x), wanted.astype(np.int64).astype(np.int8))


def test_a_window_of_padding_alone_has_no_average() -> None:
    run = Decomposed(lambda x: d.avg_pool(x, [1], padding=[1, 1]), spec("f32", 1, 1, "w"))
    found = run(np.ones((1, 1, 2), np.float32))
    np.testing.assert_array_equal(found, [[[np.nan, 1, 1, np.nan]]])


@pytest.mark.parametrize("sizes", [[1], [3], [4], [3, 5], [2, 1], [2, 3, 4]])
@pytest.mark.parametrize("symbolic", [False, True])
def test_adaptive(sizes: list[int], symbolic: bool) -> None:
    rank = len(sizes)
    for extents in ((7, 9, 8), (3, 5, 4), (1, 2, 3)):
        dims = NAMES[:rank] if symbolic else extents[:rank]
        operand = spec("f32", 2, 3, *dims)
        x = floats((2, 3, *extents[:rank]), "f32")
        mean, most = (np.empty((2, 3, *sizes)) for _ in range(2))
        for at in itertools.product(*map(range, sizes)):
            part = wide(x)[
                (
                    ...,
                    *(
                        slice(i * n // m, -(-(i + 1) * n // m))
                        for i, n, m in zip(at, extents, sizes)
                    ),
                )
            ]
            mean[(..., *at)] = part.mean(tuple(range(2, rank + 2)))
            most[(..., *at)] = part.max(tuple(range(2, rank + 2)))
        _near(Decomposed(lambda v: d.adaptive_avg_pool(v, sizes), operand)(x), mean)
        _near(Decomposed(lambda v: d.adaptive_max_pool(v, sizes), operand)(x), most)


def test_adaptive_to_sizes_of_symbols() -> None:
    specs = spec("f32", 2, 3, "w"), spec("f32", "m")
    run = Decomposed(lambda v, _: d.adaptive_avg_pool(v, ["m"]), *specs)
    indexed = Decomposed(lambda v, _: d.adaptive_max_pool_with_indices(v, ["m"]), *specs)
    for extent, count in ((7, 3), (3, 7), (6, 2), (5, 1), (4, 4)):
        x, like = floats((2, 3, extent), "f32"), np.empty(count, np.float32)
        ends = [(i * extent // count, -(-(i + 1) * extent // count)) for i in range(count)]
        means = np.stack([wide(x)[..., a:b].mean(-1) for a, b in ends], -1)
        _near(run(x, like), means)
        values, indices = indexed(x, like)
        np.testing.assert_array_equal(np.take_along_axis(x, indices, -1), values)
        _near(values, np.stack([wide(x)[..., a:b].max(-1) for a, b in ends], -1))
    with pytest.raises(ExecutionError, match=r"requires 1 <= m, but m = 0"):
        run(x, np.empty(0, np.float32))


def test_adaptive_windows_of_one_length() -> None:
    run = Decomposed(lambda v: d.adaptive_avg_pool(v, [3]), spec("f16", 1, 2, "3*w"))
    x = floats((1, 2, 15), "f16")
    _near(run(x), wide(x).reshape(1, 2, 3, 5).mean(-1), "f16")


def test_global() -> None:
    operand = spec("f32", "n", 3, "h", "w")
    x = floats((2, 3, 5, 7), "f32")
    axes = {"axis": (2, 3), "keepdims": True}
    _near(Decomposed(d.global_avg_pool, operand)(x), wide(x).mean(**axes))
    _near(Decomposed(d.global_max_pool, operand)(x), wide(x).max(**axes))
    _near(Decomposed(d.global_lp_pool, operand)(x), np.sqrt((wide(x) ** 2).sum(**axes)))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda x: d.max_pool(x, [3]), "expects window, strides, padding and dilation of rank 4"),
        (lambda x: d.max_pool(x, [3, 0]), "has a window of"),
        (lambda x: d.max_pool(x, [3, 3], padding=[0, 0, -1, 0]), "has a window of"),
        (lambda x: d.max_pool(x, [30, 3]), "slides a window of 30"),
        (lambda x: d.lp_pool(x, [3, 3], p=0), "expects a norm of 1 or more, but got 0"),
        (lambda x: d.global_lp_pool(x, 0), "expects a norm of 1 or more, but got 0"),
        (lambda x: d.adaptive_avg_pool(x, [3]), "expects 2 positive sizes"),
        (lambda x: d.adaptive_max_pool(x, [3, 0]), "expects 2 positive sizes"),
        (lambda x: d.max_pool(d.einsum("abcd->ab", x), [1]), "pools one to three dims"),
    ],
)
def test_what_is_refused(build, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        module_of({"main": (build, [spec("f32", 1, 2, 7, 8)])})
