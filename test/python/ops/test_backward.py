"""Gradients of single operators by name, against loops over what each element contributes to."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from decomposed import module_of
from harness import floats, integers, spec

import relax_mlir
from relax_mlir import gradients as g
from relax_mlir.bindings import ir, scf, tensor
from relax_mlir.decompositions.emit import multiply
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError
from relax_mlir.passes import PassFailure

Run = Mapping[str, Callable[..., Any]]
IMAGE = spec("f32", "n", 2, "m + 3", 7)
POOL = {"strides": [2, 1], "padding": [1, 0, 1, 1], "dilation": [1, 2]}
CEIL = {"strides": [3, 2], "padding": [0, 1, 1, 1], "ceil_mode": True}
WINDOW = (3, 2)


def _counts(settings: Mapping[str, Any], dims: list[int]) -> list[int]:
    """How many windows there are along each dim; the last one of `ceil_mode` begins inside."""
    counts = []
    for i, dim in enumerate(dims):
        stride, low, high = (
            settings["strides"][i],
            settings["padding"][i],
            settings["padding"][i + 2],
        )
        extent = (WINDOW[i] - 1) * settings.get("dilation", [1, 1])[i] + 1
        room = dim + low + high - extent
        count = room // stride + 1
        if settings.get("ceil_mode") and room % stride and (count * stride < dim + low):
            count += 1
        counts.append(count)
    return counts


def _windows(settings: Mapping[str, Any], rows: int, columns: int) -> Iterator[tuple[Any, list]]:
    """Each position of a result, and the elements of its window that are in the image."""
    dilation = settings.get("dilation", [1, 1])
    for y, x in np.ndindex(*_counts(settings, [rows, columns])):
        at = y * settings["strides"][0], x * settings["strides"][1]
        inside = []
        for i, j in np.ndindex(*WINDOW):
            row = at[0] - settings["padding"][0] + i * dilation[0]
            column = at[1] - settings["padding"][1] + j * dilation[1]
            if 0 <= row < rows and 0 <= column < columns:
                inside.append((row, column))
        yield (y, x), inside


def _branch(x: ir.Value, condition: ir.Value) -> ir.Value:
    """The square, computed in front of the branch that yields it, or the tensor itself."""
    square = multiply(x, x)
    made = scf.IfOp(tensor.ExtractOp(condition, []), [x.type], has_else=True)
    for block, value in ((made.then_block, square), (made.else_block, x)):
        with ir.InsertionPoint(block):
            scf.YieldOp([multiply(value, 1)])
    return made.results[0]


SPECS: dict[str, Any] = {
    "average": (
        lambda s, x: g.avg_pool_backward(s, x, WINDOW, **POOL),
        [spec("f32", "n", 2, "(m + 2) floordiv 2 + 1", 6), IMAGE],
    ),
    "maximum": (
        lambda s, x: g.max_pool_backward(s, x, WINDOW, **POOL),
        [spec("f32", "n", 2, "(m + 2) floordiv 2 + 1", 6), IMAGE],
    ),
    "line": (
        lambda s, x: g.avg_pool_backward(s, x, [2], count_include_pad=True, padding=[1, 0]),
        [spec("f32", 1, 2, "m"), spec("f32", 1, 2, "m")],
    ),
    "loss": (
        lambda s, x, t, w: g.nll_loss_backward(s, x, t, w, ignore_index=1),
        [spec("f32"), spec("f32", "n", 5, "m"), spec("i32", "n", "m"), spec("f32", 5)],
    ),
    "losses": (
        lambda s, x, t: g.nll_loss_backward(s, x, t, reduction="none"),
        [spec("f32", "n"), spec("f32", "n", 5), spec("i64", "n")],
    ),
    "rows": (
        lambda s, x, i: g.take_backward(s, x, i, 1),
        [spec("f32", 2, "n", 3), spec("f32", 2, "m + 1", 3), spec("i32", "n")],
    ),
    "elements": (
        g.take_backward,
        [spec("f32", "n"), spec("f32", "m + 1", 3), spec("i64", "n")],
    ),
    "branch": (
        lambda s, x, c: g.gradient_of(s, x, lambda v: _branch(v, c)),
        [spec("f32", "n"), spec("f32", "n"), spec("i1")],
    ),
    "own": (
        lambda s, x: g.gradient_of(s, x, lambda v: multiply(multiply(v, v), v)),
        [spec("f32", "n"), spec("f32", "n")],
    ),
}
SIZES = ((1, 1), (2, 5), (3, 8))


@pytest.fixture(
    scope="module",
    params=["interpreted", pytest.param("compiled", marks=pytest.mark.rotate(3, together=True))],
)
def run(request: pytest.FixtureRequest) -> Run:
    text = module_of(SPECS)
    return (relax_mlir.interpret if request.param == "interpreted" else relax_mlir.compile)(text)


@pytest.mark.parametrize("name", ["average", "maximum"])
def test_pools(name: str, run: Run) -> None:
    for n, m in SIZES:
        x = integers((n, 2, m + 3, 7), "f32", 0, 5)
        seed = floats((n, 2, *_counts(POOL, [m + 3, 7])), "f32")
        wanted = np.zeros(x.shape)
        for (row, column), inside in _windows(POOL, m + 3, 7):
            for image in np.ndindex(n, 2):
                at = inside
                if name == "maximum":
                    at = [max(inside, key=lambda p: (x[image][p], [-i for i in p]))]
                for place in at:
                    wanted[image][place] += np.float64(seed[image][row, column]) / len(at)
        np.testing.assert_allclose(run[name](seed, x), wanted, rtol=1e-5, atol=1e-6)


def test_a_line(run: Run) -> None:
    for _, m in SIZES:
        seed = floats((1, 2, m), "f32")
        wanted = (seed + np.pad(seed, [(0, 0), (0, 0), (0, 1)])[..., 1:]) / 2
        np.testing.assert_allclose(run["line"](seed, np.zeros_like(seed)), wanted, rtol=1e-6)


def test_losses(run: Run) -> None:
    for n, m in SIZES:
        x, weight = floats((n, 5, m), "f32"), np.arange(1, 6, dtype=np.float32)
        target = np.random.default_rng(n).integers(0, 5, (n, m)).astype(np.int32)
        target[0, 0] = 2
        wanted = np.zeros(x.shape)
        factors = np.where(target == 1, 0, weight[target]).astype(np.float64)
        for i, j in np.ndindex(n, m):
            wanted[i, target[i, j], j] = -2.5 * factors[i, j] / factors.sum()
        found = run["loss"](np.float32(2.5), x, target, weight)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-7)
        seed, chosen = floats((n,), "f32"), target[:, 0].astype(np.int64)
        wanted = np.zeros((n, 5))
        wanted[np.arange(n), chosen] = -seed
        np.testing.assert_allclose(run["losses"](seed, x[..., 0].copy(), chosen), wanted)


def test_takes(run: Run) -> None:
    for n, m in (*SIZES, (0, 2)):
        indices = np.random.default_rng(n).integers(0, m + 1, n).astype(np.int32)
        seed, wanted = floats((2, n, 3), "f32"), np.zeros((2, m + 1, 3))
        for i in range(n):
            wanted[:, indices[i]] += seed[:, i]
        x = np.zeros(wanted.shape, np.float32)
        np.testing.assert_allclose(run["rows"](seed, x, indices), wanted, rtol=1e-5, atol=1e-6)
        indices = np.random.default_rng(m).integers(0, 3 * m + 3, n)
        wanted = np.bincount(indices, seed[0, :, 0], 3 * m + 3).reshape(m + 1, 3)
        found = run["elements"](seed[0, :, 0].copy(), x[0], indices)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_own_operators(run: Run) -> None:
    for n, _ in SIZES:
        seed, x = floats((n,), "f32"), floats((n,), "f32")
        np.testing.assert_allclose(run["own"](seed, x), 3 * seed * x * x, rtol=1e-5)


def test_windows_beyond_the_end() -> None:
    x, counts = floats((1, 1, 6, 7), "f32"), _counts(CEIL, [6, 7])
    seed = floats((1, 1, *counts), "f32")
    build = {
        "main": (
            lambda s, x: g.avg_pool_backward(s, x, WINDOW, **CEIL),
            [spec("f32", 1, 1, *counts), spec("f32", 1, 1, 6, 7)],
        )
    }
    wanted = np.zeros((6, 7))
    for place, inside in _windows(CEIL, 6, 7):
        for at in inside:
            wanted[at] += np.float64(seed[0, 0][place]) / len(inside)
    found = relax_mlir.interpret(module_of(build))["main"](seed, x)
    np.testing.assert_allclose(found[0, 0], wanted, rtol=1e-5)


def test_what_is_not_needed_goes() -> None:
    build, specs = SPECS["rows"]
    assert "graph.take" not in module_of({"main": (build, specs)})


def test_what_is_refused() -> None:
    pool = SPECS["average"][0]
    with pytest.raises(ShapeError, match="expects a gradient 'tensor<2 x 2 x 3 x 6 x f32>'"):
        module_of({"main": (pool, [spec("f32", 2, 2, 4, 6), spec("f32", 2, 2, 5, 7)])})
    with pytest.raises(ShapeError, match="expects a gradient of f32, but got f64"):
        module_of({"main": (pool, [spec("f64", 2, 2, 3, 6), spec("f32", 2, 2, 5, 7)])})
    with pytest.raises(ShapeError, match="which is not of floats"):
        module_of({"main": (g.take_backward, [spec("i32", 4), spec("i32", 3), spec("i64", 4)])})
    with pytest.raises(PassFailure, match="has loops or calls of functions"):
        module_of({"main": (lambda s, x: g.gradient_of(s, x, _call), [spec("f32", 4)] * 2)})


def _call(x: ir.Value) -> ir.Value:
    return graph.CallOp.build("f", [x], [graph.TensorType.of(x)]).outs[0]


def test_branches_use_what_is_around_them(run: Run) -> None:
    for n, _ in SIZES:
        seed, x = floats((n,), "f32"), floats((n,), "f32")
        for condition in (True, False):
            found = run["branch"](seed, x, np.array(condition))
            np.testing.assert_allclose(found, seed * (2 * x if condition else 1), rtol=1e-5)
