"""Reads at clamped indices: vectors inside, one branch a vector for all of them at borders."""

from typing import Any

import numpy as np
import pytest

import relax_mlir
from relax_mlir.dataflow import Instance, Port, Scalar, Tensor, graph, leaf, maximum, module, whole


@leaf(x="f32[h, w]")
def mixed(at: Instance, x: Tensor) -> Scalar:
    i, j = at.ids(2)
    near = x[i - 1, j - 3] + 2.0 * x[i, j + 17] + 4.0 * x[i + 1, j]
    return near + 8.0 * x[i + 1000, j - 1000] + 16.0 * x[j, i]


@graph(x="f32[h, w]")
def main(x: Port) -> Any:
    return mixed.over("h", "w")(whole(x))


@leaf(x="f32[h, w]")
def windows(at: Instance, x: Tensor) -> Scalar:
    i, j = at.ids(2)
    most = at.loop(5, -1e30, lambda p, most: maximum(most, x[i + p - 2, j + 2 - p]))
    return most * 2.0 - x[i, j]  # what follows the loop is no part of its terms


@graph(x="f32[h, w]")
def greatest(x: Port) -> Any:
    return windows.over("h", "w")(whole(x))


@pytest.fixture(scope="module")
def compiled() -> Any:
    return relax_mlir.compile(module(main, greatest))


def clamped(x: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    h, w = x.shape
    return x[np.clip(i, 0, h - 1), np.clip(j, 0, w - 1)].astype(np.float64)


@pytest.mark.parametrize("threads", [1, 3])
def test_indices_outside_are_clamped_at_every_border(compiled: Any, threads: int) -> None:
    compiled.threads = threads
    draw = np.random.default_rng()
    for h, w in [(1, 1), (3, 15), (2, 16), (5, 17), (4, 31), (7, 33), (2, 64), (3, 65), (2, 2100)]:
        x = draw.standard_normal((h, w)).astype(np.float32)
        i, j = np.indices(x.shape)
        want = clamped(x, i - 1, j - 3) + 2 * clamped(x, i, j + 17) + 4 * clamped(x, i + 1, j)
        want += 8 * clamped(x, i + 1000, j - 1000) + 16 * clamped(x, j, i)
        np.testing.assert_allclose(compiled["main"](x), want, rtol=1e-5, atol=1e-5)
        most = np.max([clamped(x, i + p - 2, j + 2 - p) for p in range(5)], 0)
        np.testing.assert_allclose(compiled["greatest"](x), 2 * most - x, rtol=1e-5, atol=1e-5)
    for h, w in [(0, 3), (3, 0)]:
        assert compiled["main"](np.zeros((h, w), np.float32)).shape == (h, w)


def test_loads_inside_are_vectors_under_one_branch() -> None:
    @leaf(x="f32[h, w]")
    def row(at: Instance, x: Tensor) -> Scalar:
        i, j = at.ids(2)
        return x[i, j - 1] + x[i, j + 1]

    @graph(x="f32[h, w]")
    def rows(x: Port) -> Any:
        return row.over("h", "w")(whole(x))

    passes = "relax-lower-dataflow,relax-legalize-ops,relax-schedule{target=x86-64-v4}"
    loop = str(module(rows, passes=passes)).partition("step %c16 {\n")[2]
    inside, _, border = loop.partition("} else {\n")
    assert inside.count("scf.if") == 1
    assert inside.count("vector.load") == 2
    assert "gather" not in inside
    assert "vector.gather" in border
