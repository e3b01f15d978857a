"""Tensors in other dims, cut off, padded or with strides; windows along any axes."""

from collections.abc import Callable, Mapping
from functools import partial, reduce
from typing import Any

import numpy as np
import pytest
from decomposed import module_of
from harness import integers, spec

import relax_mlir
from relax_mlir import decompositions as d
from relax_mlir.dialects.graph import ShapeError
from relax_mlir.errors import ExecutionError

Run = Mapping[str, Callable[..., Any]]
REDUCED = {"add": np.add, "multiply": np.multiply, "minimum": np.minimum, "maximum": np.maximum}
WINDOWS: dict[str, dict[str, Any]] = {
    "plain": {"window": [2, 3]},
    "strided": {"window": [1, 3], "strides": [2, 2], "padding": [(0, 0), (2, 1)]},
    "dilated": {"window": [3, 2], "dilation": [1, 3], "padding": [(1, 1), (0, 2)]},
    "spread": {"window": [2, 2], "base_dilation": [2, 3], "padding": [(-1, 1), (1, -1)]},
}


@pytest.fixture(
    scope="module",
    params=["interpreted", pytest.param("compiled", marks=pytest.mark.rotate(3, together=True))],
)
def run(request: pytest.FixtureRequest) -> Run:
    functions: dict[str, Any] = {
        "crop": (
            lambda x, y: d.center_crop_pad(x, [4, "m", 3], [0, 1, -1]),
            [spec("f32", "n", 5, 8), spec("f32", "m")],
        ),
        "whole": (lambda x: d.center_crop_pad(x, [5, 2]), [spec("i32", 2, 5)]),
        "diagonal": (lambda x: d.as_strided(x, ["n"], ["n + 1"]), [spec("f32", "n", "n")]),
        "frames": (lambda x: d.as_strided(x, [3, 4], [2, 1], 1), [spec("f32", "n")]),
        "one": (lambda x: d.as_strided(x, [], [], "n - 1"), [spec("f32", "n")]),
    }
    for dtype in ("f32", "i32", "ui8"):
        for reduction in REDUCED:
            for name, settings in WINDOWS.items():
                build = partial(d.reduce_window, reduction=reduction, **settings)
                specs = [spec(dtype, "n + 4", "m + 7")]
                functions[f"{reduction}_{name}_{dtype}"] = build, specs
    text = module_of(functions)
    return (relax_mlir.interpret if request.param == "interpreted" else relax_mlir.compile)(text)


def _centered(x: np.ndarray, sizes: list[int]) -> np.ndarray:
    for axis, size in enumerate(sizes):
        dim = x.shape[axis]
        if size <= dim:
            x = np.take(x, range((dim - size) // 2, (dim - size) // 2 + size), axis)
        else:
            widths = [(0, 0)] * x.ndim
            widths[axis] = (size - dim) // 2, size - dim - (size - dim) // 2
            x = np.pad(x, widths)
    return x


def test_centers(run: Run) -> None:
    for n, m in ((0, 0), (1, 1), (3, 4), (4, 5), (7, 6), (8, 9), (9, 12)):
        x = integers((n, 5, 8), "f32")
        found = run["crop"](x, np.zeros(m, np.float32))
        np.testing.assert_array_equal(found, _centered(x, [4, m, 3]))
    x = integers((2, 5), "i32")
    np.testing.assert_array_equal(run["whole"](x), _centered(x, [5, 2]))


def test_strides(run: Run) -> None:
    for n in (1, 2, 9):
        x = integers((n, n), "f32")
        np.testing.assert_array_equal(run["diagonal"](x), np.diagonal(x))
        assert run["one"](x[0].copy()) == x[0, -1]
    x = integers((9,), "f32")
    wanted = np.lib.stride_tricks.sliding_window_view(x[1:], 4)[:5:2]
    np.testing.assert_array_equal(run["frames"](x), wanted)
    with pytest.raises(ExecutionError, match="as_strided"):
        run["frames"](x[:8].copy())


def _reduced(x: np.ndarray, reduction: str, settings: Mapping[str, Any]) -> np.ndarray:
    """Windows one by one, of the elements that they have."""
    base, step = settings.get("base_dilation", [1, 1]), settings.get("dilation", [1, 1])
    pads, strides = settings.get("padding", [(0, 0)] * 2), settings.get("strides", [1, 1])
    spread = {
        tuple(np.multiply(at, base) + [p for p, _ in pads]): x[at] for at in np.ndindex(x.shape)
    }
    dims = [(size - 1) * b + 1 + sum(p) for size, b, p in zip(x.shape, base, pads)]
    extents = [(size - 1) * s + 1 for size, s in zip(settings["window"], step)]
    counts = [(dim - extent) // s + 1 for dim, extent, s in zip(dims, extents, strides)]
    bounds = (
        (np.iinfo(x.dtype).max, np.iinfo(x.dtype).min)
        if x.dtype.kind in "iu"
        else (np.inf, -np.inf)
    )
    neutral = {"add": 0, "multiply": 1, "minimum": bounds[0], "maximum": bounds[1]}[reduction]
    result = np.empty(counts, x.dtype)
    for place in np.ndindex(*counts):
        at = [
            np.multiply(place, strides) + np.multiply(w, step)
            for w in np.ndindex(*settings["window"])
        ]
        inside = [
            spread[tuple(a)]
            for a in at
            if tuple(a) in spread and (a >= 0).all() and (a < dims).all()
        ]
        result[place] = reduce(REDUCED[reduction], inside, x.dtype.type(neutral))
    return result


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("reduction", REDUCED)
def test_windows(reduction: str, name: str, run: Run) -> None:
    for dtype in ("f32", "i32", "ui8"):
        for n, m in ((4, 7), (5, 9), (6, 12)):
            x = integers((n, m), dtype, 1, 5)
            wanted = _reduced(x, reduction, WINDOWS[name])
            np.testing.assert_array_equal(run[f"{reduction}_{name}_{dtype}"](x), wanted)


X = [spec("f32", 4, 5)]
REFUSED = [
    (lambda x: d.center_crop_pad(x, [3], [0, 1]), "has 1 sizes for axes"),
    (lambda x: d.as_strided(x, [3, 2], [1]), "has 2 sizes, but 1 strides"),
    (lambda x: d.as_strided(x, [3], [-1], 4), "an offset and strides of 0 or more"),
    (lambda x: d.as_strided(x, [3, 3], [9, 1]), "reads element 20 of 20"),
    (lambda x: d.reduce_window(x, "mean", [1, 1]), "expects one of add, multiply"),
    (lambda x: d.reduce_window(x, "add", [1]), "expects a window of rank 2"),
    (lambda x: d.reduce_window(x, "add", [0, 1]), r"has a window of \[0, 1\]"),
    (lambda x: d.reduce_window(x, "add", [5, 1]), "a window of 5 elements, but a dim of 4"),
]


@pytest.mark.parametrize(("build", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_refused(build: Callable[..., Any], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        module_of({"main": (build, X)})
