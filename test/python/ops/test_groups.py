"""Rows in groups, counts of groups, elements that masks choose, and attention of own scores."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from decomposed import module_of
from harness import floats, spec

import relax_mlir
from relax_mlir import decompositions as d
from relax_mlir.decompositions.emit import add, multiply
from relax_mlir.dialects.graph import ShapeError
from relax_mlir.errors import ExecutionError

Run = Mapping[str, Callable[..., Any]]
ROWS = [spec("f32", "n", 5), spec("f32", "g", 5, 3), spec("i32", "g")]
QUERIES = [spec("f32", "b", 6, "n", 4), spec("f32", "b", 2, "m", 4), spec("f32", "b", 2, "m", 3)]


def _twice(x: Any, w: Any, ends: Any) -> Any:
    return add(d.grouped_mm(x, w, ends), d.grouped_mm(x, w, ends))


@pytest.fixture(
    scope="module",
    params=["interpreted", pytest.param("compiled", marks=pytest.mark.rotate(3, together=True))],
)
def run(request: pytest.FixtureRequest) -> Run:
    functions: dict[str, Any] = {
        "rows": (d.grouped_mm, ROWS),
        "twice": (_twice, ROWS),
        "histogram": (lambda x: d.histc(x, 7, -2, 1.5), [spec("f32", "n")]),
        "whole": (lambda x: d.histc(x, 4), [spec("f32", "n", 3)]),
        "scatter": (d.masked_scatter, [spec("f32", "n", 4), spec("i1", "n", 1), spec("f32", "k")]),
        "flex": (
            lambda q, k, v: d.flex_attention(
                q, k, v, score_mod=lambda s: multiply(s, 0.5), prob_mod=lambda p: multiply(p, p)
            ),
            QUERIES,
        ),
        "plain": (lambda q, k, v: d.flex_attention(q, k, v, scale=0.75), QUERIES),
    }
    text = module_of(functions)
    return (relax_mlir.interpret if request.param == "interpreted" else relax_mlir.compile)(text)


@pytest.mark.parametrize("name", ["rows", "twice"])
@pytest.mark.parametrize(
    ("n", "ends"), [(0, [0]), (7, [7]), (10, [3, 3, 7, 10]), (33, [0, 1, 20, 20, 30]), (4, [])]
)
def test_rows_of_groups(n: int, ends: list[int], name: str, run: Run) -> None:
    x, w = floats((n, 5), "f32"), floats((len(ends), 5, 3), "f32")
    wanted, begin = np.zeros((n, 3)), 0
    for group, end in enumerate(ends):
        wanted[begin:end] = x[begin:end].astype(np.float64) @ w[group]
        begin = end
    found = run[name](x, w, np.array(ends, np.int32))
    np.testing.assert_allclose(found, wanted * (1 + (name == "twice")), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("ends", [[3, 2], [2, 8], [-1, 4]])
def test_ends_that_are_no_groups(ends: list[int], run: Run) -> None:
    with pytest.raises(ExecutionError):
        run["rows"](floats((7, 5), "f32"), floats((2, 5, 3), "f32"), np.array(ends, np.int32))


def test_histograms(run: Run) -> None:
    for n in (0, 1, 2, 65):
        x = np.concatenate(
            [floats((n,), "f32"), np.array([-2, 1.5, np.nan, np.inf, -1], np.float32)]
        )
        wanted = np.histogram(x[np.isfinite(x)], 7, (-2, 1.5))[0]
        np.testing.assert_array_equal(run["histogram"](x), wanted)
    for n in (1, 2, 65):
        x = np.random.default_rng(n).integers(0, 9, (n, 3)).astype(np.float32)
        np.testing.assert_array_equal(run["whole"](x), np.histogram(x, 4)[0])
    same = np.full((2, 3), 5, np.float32)
    np.testing.assert_array_equal(run["whole"](same), np.histogram(same, 4, (4, 6))[0])


def test_masked_scatter(run: Run) -> None:
    for n in (0, 1, 9):
        x, mask = floats((n, 4), "f32"), np.random.default_rng(n).random((n, 1)) < 0.5
        count = int(mask.sum()) * 4
        for more in (0, 3):
            source, wanted = floats((count + more,), "f32"), x.copy()
            wanted[np.broadcast_to(mask, x.shape)] = source[:count]
            np.testing.assert_array_equal(run["scatter"](x, mask, source), wanted)
    with pytest.raises(ExecutionError, match="masked_scatter has too few elements for its mask"):
        run["scatter"](floats((2, 4), "f32"), np.ones((2, 1), bool), floats((7,), "f32"))


@pytest.mark.parametrize(("b", "n", "m"), [(1, 1, 1), (2, 3, 9), (1, 0, 4), (0, 2, 2)])
def test_flexible_attention(b: int, n: int, m: int, run: Run) -> None:
    q, k, v = (floats(s, "f32") for s in ((b, 6, n, 4), (b, 2, m, 4), (b, 2, m, 3)))
    keys, values = (np.repeat(x, 3, 1).astype(np.float64) for x in (k, v))
    scores = np.einsum("bhnd,bhmd->bhnm", q, keys)
    for name, factor, power in (("flex", 0.25, 2), ("plain", 0.75, 1)):
        e = np.exp(scores * factor - (scores * factor).max(-1, keepdims=True))
        p = (e / e.sum(-1, keepdims=True)) ** power
        wanted = np.einsum("bhnm,bhme->bhne", p, values)
        np.testing.assert_allclose(run[name](q, k, v), wanted, rtol=1e-4, atol=1e-5)


REFUSED = [
    (d.grouped_mm, [ROWS[0], spec("f32", 2, 4, 3), spec("i32", 2)], "has rows of 5 for 4"),
    (d.grouped_mm, [ROWS[0], spec("f32", 2, 5, 3), spec("i32", 3)], "and 3 ends for 2"),
    (d.grouped_mm, [*ROWS[:2], spec("f32", "g")], r"integers \[groups\], not ranks 2, 3, 1"),
    (d.histc, [spec("i32", 4)], "expects floats, and a part at least"),
    (lambda x: d.histc(x, 3, 2, 1), [spec("f32", 4)], "3 parts from 2 to 1"),
    (d.masked_scatter, [spec("f32", 4)] * 3, "expects truth values"),
    (d.masked_scatter, [spec("f32", 4), spec("i1", 4), spec("f64", 4)], "expects a source of f32"),
    (d.flex_attention, [QUERIES[0], *QUERIES[:0:-1]], "has queries, keys and values of dims"),
    (d.flex_attention, [spec("f32", 4)] * 3, r"expects floats \[b, heads, n, d\]"),
    (d.flex_attention, [spec("f32", 1, 2, 3, "d")] * 3, "expects a scale, as the width d is"),
]


@pytest.mark.parametrize(("build", "specs", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_refused(build: Callable[..., Any], specs: list, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        module_of({"main": (build, specs)})
