"""Ensembles of decision trees, in both forms that `ai.onnx.ml` has for them."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    add,
    astype,
    divide,
    element_of,
    emit,
    is_integer,
    vector,
)
from relax_mlir.decompositions.learned import Trees
from relax_mlir.dialects import graph
from relax_mlir.errors import ModelError

from ..node import Node
from ..registry import operator
from .learned import DOMAIN

AGGREGATES = ("average", "sum", "min", "max")
MODES = ("<=", "<", ">=", ">", "==", "!=", "in")
NAMES = {
    f"BRANCH_{name}": mode
    for name, mode in zip(("LEQ", "LT", "GTE", "GT", "EQ", "NEQ"), MODES, strict=False)
}
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


@operator("TreeEnsemble", domain=DOMAIN, since=5)
def tree_ensemble(node: Node) -> ir.Value:
    """Sums, means or bounds of the leaves that rows reach."""
    modes = [MODES[int(each)] for each in node.required("nodes_modes").array.reshape(-1)]
    yes, no = (
        [
            -1 - at if is_leaf else at
            for at, is_leaf in zip(
                node.required(f"nodes_{way}nodeids"),
                node.required(f"nodes_{way}leafs"),
                strict=True,
            )
        ]
        for way in ("true", "false")
    )
    trees = Trees(
        node.required("nodes_featureids"),
        node.required("nodes_splits").array.reshape(-1).tolist(),
        modes,
        yes,
        no,
        node.required("tree_roots"),
        node.required("leaf_targetids"),
        node.required("leaf_weights").array.reshape(-1).tolist(),
        list(map(bool, node.attribute("nodes_missing_value_tracks_true", []))),
        _members(node, modes) if "in" in modes else (),
    )
    aggregate = AGGREGATES[node.attribute("aggregate_function", 1)]
    result = d.tree_ensemble(
        node.tensor(0), trees, node.attribute("n_targets", 1), aggregate=aggregate
    )
    return _transformed(result, TRANSFORMS[node.attribute("post_transform", 0)])


def _members(node: Node, modes: list[str]) -> list[list[float]]:
    """The values that each node of mode "in" has, which a NaN ends; none for other nodes."""
    sets: list[list[float]] = [[]]
    for value in node.required("membership_values").array.reshape(-1).tolist():
        if np.isnan(value):
            sets.append([])
        else:
            sets[-1].append(value)
    own = iter(sets)
    return [next(own) if mode == "in" else [] for mode in modes]


@operator("TreeEnsembleRegressor", domain=DOMAIN)
def tree_ensemble_regressor(node: Node) -> ir.Value:
    """The same of trees whose nodes are counted in each tree, with a value for each target."""
    name = node.attribute("aggregate_function", "SUM").lower()
    table = _Table.of(node, name)
    x, count = node.tensor(0), node.attribute("n_targets", 1)
    if is_integer(element_of(x)):
        x = astype(x, ir.F32Type.get())
    result = d.tree_ensemble(
        x, table.trees(), count, aggregate="sum" if name == "average" else name
    )
    if name == "average":
        result = divide(result, len(table.roots))
    base = _floats(node, "base_values")
    if base:
        if len(base) != count:
            raise ModelError(f"has {len(base)} base values for {count} targets")
        result = add(result, vector(base, element_of(result)))
    return astype(_transformed(result, node.attribute("post_transform", "NONE")), ir.F32Type.get())


def _floats(node: Node, name: str) -> list[float]:
    """An attribute that is floats, or a tensor of them under another name."""
    if node.has(f"{name}_as_tensor"):
        return node.attribute(f"{name}_as_tensor").array.reshape(-1).tolist()
    return node.attribute(name, [])


def _transformed(x: ir.Value, transform: str) -> ir.Value:
    if transform == "NONE":
        return x
    if transform == "LOGISTIC":
        return emit(graph.SigmoidOp, x)
    if transform == "SOFTMAX":
        return emit(graph.SoftmaxOp, x, axis=1)
    raise ModelError(f"has post_transform '{transform}', which is not supported")


@dataclass
class _Table:
    """Nodes by tree and name; `copies` of each tree, since a leaf of `Trees` has one target."""

    rows: list[dict[str, Any]]
    leaves: list[list[tuple[int, float]]]
    roots: dict[int, int]
    """Of each tree, the first of its nodes."""
    copies: int
    at: dict[tuple[int, int], int] = field(default_factory=dict)
    """The row of a node, or -1 - l for leaf l."""

    @staticmethod
    def of(node: Node, aggregate: str) -> "_Table":
        """Reads the attributes of a node."""
        weights: dict[tuple[int, int], list[tuple[int, float]]] = defaultdict(list)
        keys = zip(node.required("target_treeids"), node.required("target_nodeids"), strict=True)
        values = _floats(node, "target_weights")
        for key, target, weight in zip(keys, node.required("target_ids"), values, strict=True):
            weights[key].append((target, weight))
        table = _Table([], [], {}, max(map(len, weights.values()), default=1))
        columns = {
            name: node.required(f"nodes_{name}")
            for name in ("treeids", "nodeids", "featureids", "truenodeids", "falsenodeids")
        }
        columns["modes"] = [each.decode() for each in node.required("nodes_modes")]
        columns["values"] = _floats(node, "nodes_values")
        count = len(columns["modes"])
        columns["missing"] = node.attribute("nodes_missing_value_tracks_true") or [0] * count
        if any(len(column) != count for column in columns.values()):
            raise ModelError("has tables of nodes that are not equally long")
        for i in range(count):
            row = {name: column[i] for name, column in columns.items()}
            table._add(row, weights[row["treeids"], row["nodeids"]], aggregate)
        return table

    def _add(self, row: dict[str, Any], weights: list[tuple[int, float]], aggregate: str) -> None:
        key = row["treeids"], row["nodeids"]
        if key in self.at:
            raise ModelError(f"has node {key[1]} of tree {key[0]} twice")
        if row["modes"] == "LEAF":
            if not weights and aggregate in ("min", "max"):
                raise ModelError(f"has leaf {key[1]} of tree {key[0]} without a weight")
            # The same again is no other bound, nothing more is no other sum.
            rest = weights[0] if aggregate in ("min", "max") else (0, 0.0)
            self.leaves.append([*weights, *[rest] * (self.copies - len(weights))])
            self.at[key] = -len(self.leaves)
        else:
            if row["modes"] not in NAMES:
                raise ModelError(f"has mode '{row['modes']}', which is none of {', '.join(NAMES)}")
            self.at[key] = len(self.rows)
            self.rows.append(row)
        self.roots.setdefault(key[0], self.at[key])

    def trees(self) -> Trees:
        """All copies, one after the other."""
        size, leaves = len(self.rows), len(self.leaves)
        every = range(self.copies)

        def shifted(at: int, copy: int) -> int:
            return at + copy * size if at >= 0 else at - copy * leaves

        def following(name: str) -> list[int]:
            own = [self.at[row["treeids"], row[name]] for row in self.rows]
            return [shifted(at, copy) for copy in every for at in own]

        def column(name: str) -> list[Any]:
            return [row[name] for row in self.rows] * self.copies

        return Trees(
            column("featureids"),
            column("values"),
            [NAMES[mode] for mode in column("modes")],
            following("truenodeids"),
            following("falsenodeids"),
            [shifted(root, copy) for copy in every for root in self.roots.values()],
            [leaf[copy][0] for copy in every for leaf in self.leaves],
            [leaf[copy][1] for copy in every for leaf in self.leaves],
            list(map(bool, column("missing"))),
        )
