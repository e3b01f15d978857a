"""Trees node by node, tables of labels, and steps of training as ONNX writes them out."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from decomposed import module_of
from harness import floats, spec

import relax_mlir
from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.learned import Trees
from relax_mlir.dialects.graph import ShapeError

Run = Mapping[str, Callable[..., Any]]
TREES = Trees(
    features=[0, 1, 2, 0, 1, 2, 3],
    splits=[0.5, -1, 0, 2, 0, 1, 0],
    modes=["<=", "<", ">=", ">", "==", "!=", "in"],
    yes=[1, -1, -3, -5, -4, 4, 2],
    no=[2, 3, -2, -1, -6, -3, -5],
    roots=[0, 5, 6, -2],
    targets=[0, 1, 2, 0, 1, 2],
    weights=[1.5, -2, 0.25, 4, 8, -0.5],
    missing=[True, False, False, True, False, False, True],
    members=[[], [], [], [], [], [], [0, 2, 3]],
)
KEYS, VALUES = [3, -1, 7, 3, 0], [10, 20, 30, 40, 50]
TABLES = {"i64": "i64", "f32": "i64", "f64": "f32"}
STATE = [spec("f32", 1), spec("i64"), *[spec("f32", "n", 3)] * 3]


def _encode(x: ir.Value, keys: list, values: list, result: str) -> ir.Value:
    return d.label_encoder(x, keys, values, ir.Type.parse(result), default=-5)


@pytest.fixture(
    scope="module",
    params=["interpreted", pytest.param("compiled", marks=pytest.mark.rotate(3, together=True))],
)
def run(request: pytest.FixtureRequest) -> Run:
    functions: dict[str, Any] = {}
    for kind in ("sum", "average", "min", "max"):
        build = partial(d.tree_ensemble, trees=TREES, targets=4, aggregate=kind)
        functions[kind] = build, [spec("f32", "n", 5)]
    leaf = Trees([], [], [], [], [], [-1], [1], [3.0])
    functions["leaf"] = lambda x: d.tree_ensemble(x, leaf, 2), [spec("f32", "n", 5)]
    for dtype, result in TABLES.items():
        keys = [*KEYS, np.nan] if dtype == "f32" else KEYS
        build = partial(_encode, keys=keys, values=[*VALUES, 60][: len(keys)], result=result)
        functions[f"labels_{dtype}"] = build, [spec(dtype, "n", 2)]
    functions["no labels"] = (
        partial(_encode, keys=[], values=[], result="i32"),
        [spec("f32", "n", 2)],
    )
    functions["chosen"] = d.array_feature_extractor, [spec("f32", "n", 5), spec("i64", 1, "m")]
    functions["of one"] = d.array_feature_extractor, [spec("f32", 5), spec("i64", "m")]
    functions["binary"] = lambda x: d.binarizer(x, 0.5), [spec("f32", "n", 2)]
    functions["momentum"] = partial(d.momentum, alpha=0.9, beta=0.5, norm=0.125), STATE
    functions["nesterov"] = partial(d.momentum, alpha=0.9, beta=0.5, nesterov=True), STATE
    functions["adagrad"] = partial(d.adagrad, decay=0.1, norm=0.25), STATE
    functions["adam"] = partial(d.adam, norm=0.25, norm_after=0.125), [*STATE, STATE[-1]]
    text = module_of({name.replace(" ", "_"): each for name, each in functions.items()})
    return (relax_mlir.interpret if request.param == "interpreted" else relax_mlir.compile)(text)


def _leaf(row: np.ndarray, node: int) -> int:
    """The leaf that one tree leads a row to."""
    while node >= 0:
        value, split = row[TREES.features[node]], TREES.splits[node]
        holds = {
            "<=": value <= split,
            "<": value < split,
            ">=": value >= split,
            ">": value > split,
            "==": value == split,
            "!=": value != split,
            "in": value in TREES.members[node],
        }[TREES.modes[node]]
        holds = holds or (np.isnan(value) and TREES.missing[node])
        node = TREES.yes[node] if holds else TREES.no[node]
    return -1 - node


@pytest.mark.parametrize("kind", ["sum", "average", "min", "max"])
def test_trees(kind: str, run: Run) -> None:
    for n in (0, 1, 7, 64):
        x = np.random.default_rng(n).integers(-3, 4, (n, 5)).astype(np.float32)
        x[np.random.default_rng(n).random((n, 5)) < 0.1] = np.nan
        wanted = np.zeros((n, 4))
        for i, row in enumerate(x):
            leaves = [_leaf(row, root) for root in TREES.roots]
            for target in range(4):
                own = [TREES.weights[leaf] for leaf in leaves if TREES.targets[leaf] == target]
                function = {"min": min, "max": max}.get(kind, sum)
                wanted[i, target] = function(own) if own else 0
        wanted /= len(TREES.roots) if kind == "average" else 1
        np.testing.assert_allclose(run[kind](x), wanted, rtol=1e-6)
        np.testing.assert_array_equal(run["leaf"](x), np.tile([0, 3], (n, 1)))


@pytest.mark.parametrize("dtype", TABLES)
def test_labels(dtype: str, run: Run) -> None:
    table = dict(zip(KEYS, VALUES))
    for n in (0, 1, 9):
        x = (
            np.random.default_rng(n)
            .integers(-3, 9, (n, 2))
            .astype("i8" if dtype == "i64" else dtype.replace("f32", "f4").replace("f64", "f8"))
        )
        wanted = [[table.get(int(each), -5) for each in row] for row in x]
        found = run[f"labels_{dtype}"](x)
        np.testing.assert_array_equal(found, np.array(wanted).reshape(n, 2))
    if dtype == "f32":
        odd = np.array([[np.nan, 2.5], [-0.0, np.inf]], np.float32)
        np.testing.assert_array_equal(run["labels_f32"](odd), [[60, -5], [50, -5]])
        assert (run["no_labels"](odd) == -5).all()


def test_features(run: Run) -> None:
    x, indices = floats((4, 5), "f32"), np.array([[4, 0, 0, 2]])
    np.testing.assert_array_equal(run["chosen"](x, indices), x[:, indices[0]])
    np.testing.assert_array_equal(run["of_one"](x[0].copy(), indices[0]), x[:1, indices[0]])
    x = np.array([[0.5, 0.75], [np.nan, -1]], np.float32)
    np.testing.assert_array_equal(run["binary"](x), [[0, 1], [0, 0]])


@pytest.mark.parametrize("step", [0, 1, 5])
def test_steps(step: int, run: Run) -> None:
    for n in (0, 1, 7):
        x, g, v, h = (floats((n, 3), "f32", low, 2) + i for i, low in enumerate((-2, -2, -2, 0)))
        h = np.abs(h)
        given = np.array([0.1], np.float32), np.array(step)
        x64, g64, v64, h64 = (each.astype(np.float64) for each in (x, g, v, h))
        beta = 0.5 if step else 1
        new = 0.9 * v64 + beta * (g64 + 0.125 * x64)
        _near(run["momentum"](*given, x, g, v), [x64 - 0.1 * new, new])
        new = 0.9 * v64 + beta * g64
        _near(run["nesterov"](*given, x, g, v), [x64 - 0.1 * (g64 + 0.9 * new), new])
        slope = g64 + 0.25 * x64
        new = h64 + slope**2
        by = 0.1 / (1 + 0.1 * step) * slope / (np.sqrt(new) + 1e-6)
        _near(run["adagrad"](*given, x, g, h), [x64 - by, new])
        mean, squares = 0.9 * v64 + 0.1 * slope, 0.999 * h64 + 0.001 * slope**2
        rate = 0.1 * np.sqrt(1 - 0.999**step) / (1 - 0.9**step) if step else 0.1
        after = (x64 - rate * mean / (np.sqrt(squares) + 1e-6)) * (1 - 0.125)
        _near(run["adam"](*given, x, g, v, h), [after, mean, squares])


def _near(found: Any, wanted: list) -> None:
    for own, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(own, other, rtol=2e-4, atol=1e-6)


X = spec("f32", "n", 5)
REFUSED = [
    (replace(TREES, splits=[0]), "expects tables of 7 nodes and of 6 leaves"),
    (replace(TREES, modes=["<>"] * 7), "expects trees, with modes of <="),
    (replace(TREES, roots=[7]), "has a node that is not one of 7, nor of 6 leaves"),
    (replace(TREES, roots=[-7]), "has a node that is not one of 7, nor of 6 leaves"),
    (replace(TREES, features=[9] * 7), "reads feature 9 of 5"),
    (replace(TREES, targets=[4] * 6), "has a leaf of a target that is not one of 4"),
    (replace(TREES, yes=[1, -1, 0, -5, -4, 4, 2]), "has a path from node 0 to itself"),
]


@pytest.mark.parametrize(("trees", "message"), REFUSED, ids=range(len(REFUSED)))
def test_trees_that_are_refused(trees: Trees, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        module_of({"main": (lambda x: d.tree_ensemble(x, trees, 4), [X])})


OTHERS = [
    (lambda x: d.tree_ensemble(x, TREES, 4, aggregate="mean"), [X], "expects one of sum"),
    (lambda x: d.tree_ensemble(x, TREES, 4), [spec("i32", "n", 5)], "expects floats of rank 2"),
    (lambda x: _encode(x, [1], [], "i32"), [X], "has 1 keys, but 0 values"),
    (partial(d.adagrad), [spec("f32", 2), *STATE[1:]], "expects one element, but got dims"),
    (partial(d.adagrad), [*STATE[:4], spec("f32", "n", 4)], "expects state of dims"),
    (partial(d.adagrad), [*STATE[:4], spec("f64", "n", 3)], "expects floats of f32, but got f64"),
]


@pytest.mark.parametrize(("build", "specs", "message"), OTHERS, ids=range(len(OTHERS)))
def test_what_is_refused(build: Callable[..., Any], specs: list, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        module_of({"main": (build, specs)})
