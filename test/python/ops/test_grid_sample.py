"""Sampling by grids, against NumPy element by element in float64."""

from itertools import product

import numpy as np
import pytest
from decomposed import Decomposed, module_of
from harness import NUMPY, floats, spec, wide

from relax_mlir import decompositions as d
from relax_mlir.dialects.graph import ShapeError

TOLERANCE = {"f64": 1e-11, "f32": 2e-5, "f16": 4e-3}


def _reflected(p: float, low: float, high: float) -> float:
    if high <= low:
        return low
    while not low <= p <= high:
        p = 2 * low - p if p < low else 2 * high - p
    return p


def _pad(p: float, n: int, padding: str, align: bool) -> float:
    if padding == "reflection":
        p = _reflected(p, 0, n - 1) if align else _reflected(p, -0.5, n - 0.5)
    return p if padding == "zeros" else min(max(p, 0), n - 1)


def _cubic(s: float) -> float:
    s, a = abs(s), -0.75
    if s <= 1:
        return (a + 2) * s**3 - (a + 3) * s**2 + 1
    return a * s**3 - 5 * a * s**2 + 8 * a * s - 4 * a


def _taps(p: float, mode: str):
    if mode == "nearest":
        return [(int(np.rint(p)), 1.0)]
    first = int(np.floor(p))
    if mode == "linear":
        return [(first, 1 - (p - first)), (first + 1, p - first)]
    return [(first + k, _cubic(p - first - k)) for k in (-1, 0, 1, 2)]


def _sampled(x, grid, mode, padding, align):
    sizes = x.shape[2:]
    result = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for at in np.ndindex(*grid.shape[:-1]):
        g = grid[at][::-1]
        where = [
            (v + 1) / 2 * (n - 1) if align else ((v + 1) * n - 1) / 2 for v, n in zip(g, sizes)
        ]
        if mode != "cubic":
            where = [_pad(p, n, padding, align) for p, n in zip(where, sizes)]
        for chosen in product(*(_taps(p, mode) for p in where)):
            index = [k for k, _ in chosen]
            if mode == "cubic":
                index = [int(_pad(k, n, padding, align)) for k, n in zip(index, sizes)]
            if all(0 <= k < n for k, n in zip(index, sizes)):
                weight = np.prod([w for _, w in chosen])
                result[(at[0], slice(None), *at[1:])] += weight * x[(at[0], slice(None), *index)]
    return result


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize(
    ("mode", "sizes"),
    [("nearest", (4, 5)), ("linear", (4, 5)), ("cubic", (4, 5)), ("linear", (2, 3, 4)),
     ("linear", (1, 3))],
)  # fmt: skip
def test_grid_sample(mode: str, sizes, padding: str, align: bool) -> None:
    rank = len(sizes)
    x = floats((2, 3, *sizes), "f64")
    grid = floats((2, *(3, 2, 4)[:rank], rank), "f64", -2.3, 2.3)
    names = ("h", "w", "v")[:rank]
    run = Decomposed(
        lambda v, g: d.grid_sample(v, g, mode=mode, padding=padding, align_corners=align),
        spec("f64", "n", 3, *names), spec("f64", "n", *"abc"[:rank], rank),
    )  # fmt: skip
    np.testing.assert_allclose(
        run(x, grid), _sampled(x, grid, mode, padding, align), rtol=1e-11, atol=1e-11
    )


@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_types(dtype: str) -> None:
    run = Decomposed(d.grid_sample, spec(dtype, 1, 2, 4, 5), spec(dtype, 1, "a", "b", 2))
    x, grid = floats((1, 2, 4, 5), dtype), floats((1, 3, 2, 2), dtype, -1, 1)
    found = run(x, grid)
    assert found.dtype == NUMPY[dtype]
    wanted = _sampled(wide(x), wide(grid), "linear", "zeros", False)
    np.testing.assert_allclose(wide(found), wanted, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def test_coordinates_far_away_read_nothing() -> None:
    run = Decomposed(d.grid_sample, spec("f32", 1, 1, 2, 2), spec("f32", 1, 1, "a", 2))
    grid = np.array([[[[1e30, 0], [-1e30, -1e30], [0, 0]]]], np.float32)
    x = np.array([[[[1, 2], [3, 4]]]], np.float32)
    assert run(x, grid).tolist() == [[[[0, 0, 2.5]]]]


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("sizes", [(3, 4), (1, 5), (2, 3, 4)])
def test_affine_grid(sizes, align: bool) -> None:
    rank = len(sizes)
    theta = floats((2, rank, rank + 1), "f64")
    lines = [
        (np.linspace(-1, 1, n) if n > 1 else np.zeros(1)) if align
        else (2 * np.arange(n) + 1) / n - 1
        for n in sizes
    ]  # fmt: skip
    points = np.stack([*np.meshgrid(*lines, indexing="ij")[::-1], np.ones(sizes)], -1)
    run = Decomposed(
        lambda t: d.affine_grid(t, sizes, align_corners=align), spec("f64", "n", rank, rank + 1)
    )
    wanted = np.einsum("nij,...j->n...i", theta, points)
    np.testing.assert_allclose(run(theta), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda x, g: d.grid_sample(x, g, mode="area"), "expects one of nearest"),
        (lambda x, g: d.grid_sample(x, g, padding="wrap"), "expects one of zeros"),
        (lambda x, g: d.grid_sample(x, x), "expects 2 coordinates, but got 5"),
        (lambda x, g: d.grid_sample(d.einsum("abcd->abc", x), g), "samples rank 3"),
        (lambda x, g: d.affine_grid(d.einsum("abcd->abc", x), [3, 4]), "expects maps of 2 dims"),
    ],
)
def test_what_is_refused(build, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        module_of({"main": (build, [spec("f32", 1, 2, 4, 5), spec("f32", 1, 3, 3, 2)])})
