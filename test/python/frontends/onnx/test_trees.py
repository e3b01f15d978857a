"""Ensembles of trees whose nodes are counted in each tree, against a walk in NumPy."""

import numpy as np
import pytest
from onnx import helper
from onnx_nodes import model, node

import relax_mlir
from relax_mlir.errors import ModelError
from relax_mlir.frontends.onnx import from_onnx

RNG = np.random.default_rng(0)
COMPARE = {"BRANCH_LEQ": np.less_equal, "BRANCH_LT": np.less, "BRANCH_GT": np.greater}


def forest(trees, depth, features, targets):
    """Random trees as attributes: whole ones, whose leaves weigh some of the targets."""
    rows = {name: [] for name in ("treeids", "nodeids", "featureids", "modes", "values")}
    rows |= {"truenodeids": [], "falsenodeids": []}
    leaves = {name: [] for name in ("treeids", "nodeids", "ids", "weights")}
    for tree in range(trees):
        for at in range(2 ** (depth + 1) - 1):
            is_leaf = at >= 2**depth - 1
            mode = "LEAF" if is_leaf else str(RNG.choice(list(COMPARE)))
            below = (0, 0) if is_leaf else (2 * at + 1, 2 * at + 2)
            value = float(np.float32(RNG.normal()))
            row = tree, at, int(RNG.integers(features)), mode, value, *below
            for name, entry in zip(rows, row, strict=True):
                rows[name].append(entry)
            for target in (
                RNG.permutation(targets)[: RNG.integers(1, targets + 1)] if is_leaf else []
            ):
                entry = tree, at, int(target), float(np.float32(RNG.normal()))
                for name, each in zip(leaves, entry, strict=True):
                    leaves[name].append(each)
    made = {f"nodes_{name}": column for name, column in rows.items()}
    return made | {f"target_{name}": column for name, column in leaves.items()}


def walked(x, tables, targets, aggregate):
    """The result for a row, in float64."""
    reached = [[] for _ in range(targets)]
    count = 0
    for tree in dict.fromkeys(tables["nodes_treeids"]):
        count, at = count + 1, 0
        while True:
            row = next(
                i
                for i, key in enumerate(zip(tables["nodes_treeids"], tables["nodes_nodeids"]))
                if key == (tree, at)
            )
            mode = tables["nodes_modes"][row]
            if mode == "LEAF":
                break
            value = x[tables["nodes_featureids"][row]]
            holds = COMPARE[mode](value, np.float32(tables["nodes_values"][row]))
            at = tables["nodes_truenodeids" if holds else "nodes_falsenodeids"][row]
        keys = zip(tables["target_treeids"], tables["target_nodeids"], strict=True)
        for i, key in enumerate(keys):
            if key == (tree, at):
                reached[tables["target_ids"][i]].append(tables["target_weights"][i])
    join = {"SUM": sum, "AVERAGE": lambda v: sum(v) / count, "MIN": min, "MAX": max}[aggregate]
    return [join(each) if each else 0.0 for each in reached]


def regressor(tables, targets, **attributes):
    made = node("TreeEnsembleRegressor", "x", "y", n_targets=targets, **tables, **attributes)
    made.domain = "ai.onnx.ml"
    proto = model([made], {"x": ["rows", 5]}, ["y"])
    proto.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    return proto


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_regressors(aggregate):
    targets = 3
    tables = forest(4, 3, 5, targets)
    base = [0.5, -1.0, 2.0]
    proto = regressor(tables, targets, aggregate_function=aggregate, base_values=base)
    imported = from_onnx(proto)
    if aggregate == "SUM":
        main = relax_mlir.compile(imported, opt_level=0)["main"]
    else:
        assert not imported.parameters
        main = relax_mlir.interpret(imported.module)["main"]
    for rows in (0, 1, 9):
        x = RNG.normal(size=(rows, 5)).astype(np.float32)
        wanted = [np.add(walked(row, tables, targets, aggregate), base) for row in x]
        np.testing.assert_allclose(main(x), np.reshape(wanted, (rows, targets)), atol=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes_modes": ["BRANCH_NEAR"] * 15}, "has mode 'BRANCH_NEAR'"),
        ({"nodes_nodeids": [0] * 15}, "has node 0 of tree 0 twice"),
        ({"nodes_values": [0.0]}, "tables of nodes that are not equally long"),
        ({"nodes_truenodeids": [99] * 15}, "is malformed"),
        ({"nodes_truenodeids": [0] * 15}, "a path from node 0 to itself"),
        ({"post_transform": "PROBIT"}, "post_transform 'PROBIT', which is not supported"),
        ({"base_values": [1.0]}, "has 1 base values for 2 targets"),
    ],
)
def test_negative_regressors(change, message):
    tables = forest(1, 3, 5, 2) | change
    with pytest.raises(ModelError, match=f"node 0 .TreeEnsembleRegressor.: .*{message}"):
        from_onnx(regressor(tables, 2))
