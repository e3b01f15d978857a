"""Ensembles of decision trees: all trees of all rows take a step at once.

x : tensor<n, features>    at : tensor<n, trees>, the node that each tree is at
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError
from relax_mlir.symbolic import Expr

from ..emit import (
    arange,
    binary,
    broadcast_to,
    dims_of,
    divide,
    element_of,
    emit,
    expand_dims,
    greater,
    is_integer,
    maximum,
    rank_of,
    reduce,
    vector,
    where,
)
from ..loops import repeat

MODES = ("<=", "<", ">=", ">", "==", "!=", "in")
AGGREGATES = {"sum": graph.SumOp, "average": graph.SumOp, "min": graph.MinOp, "max": graph.MaxOp}
COMPARISONS = (
    graph.LessEqualOp,
    graph.LessOp,
    graph.GreaterEqualOp,
    graph.GreaterOp,
    graph.EqualOp,
    graph.NotEqualOp,
)


@dataclass(frozen=True)
class Trees:
    """Nodes of all trees in one table, and leaves in another one.

    A node compares the feature `features[i]` with `splits[i]` by `modes[i]`; of mode "in" with each
    of `members[i]`. Then `yes[i]` or `no[i]` is the next node, or -1 - l for leaf l. A NaN goes on
    by `yes` where `missing[i]` is true. Leaf l adds `weights[l]` to target `targets[l]`. Roots are
    nodes, or leaves as next nodes are.
    """

    features: Sequence[int]
    splits: Sequence[float]
    modes: Sequence[str]
    yes: Sequence[int]
    no: Sequence[int]
    roots: Sequence[int]
    targets: Sequence[int]
    weights: Sequence[float]
    missing: Sequence[bool] = ()
    members: Sequence[Sequence[float]] = field(default=())

    def check(self, features: Expr, targets: int) -> None:
        """Raises ShapeError unless the tables are complete, and nothing is outside of them."""
        count, leaves = len(self.features), len(self.weights)
        tables = [self.splits, self.modes, self.yes, self.no]
        tables += [table for table in (self.missing, self.members) if table]
        if any(len(table) != count for table in tables) or len(self.targets) != leaves:
            raise ShapeError(f"expects tables of {count} nodes and of {leaves} leaves")
        if not set(self.modes) <= set(MODES) or not self.roots or not leaves:
            raise ShapeError(f"expects trees, with modes of {', '.join(MODES)}")
        if any(not -leaves <= node < count for node in (*self.roots, *self.yes, *self.no)):
            raise ShapeError(f"has a node that is not one of {count}, nor of {leaves} leaves")
        most = max(self.features, default=0)
        if min(self.features, default=0) < 0 or features.value is None or most >= features.value:
            raise ShapeError(f"reads feature {most} of {features}")
        if any(not 0 <= target < targets for target in self.targets):
            raise ShapeError(f"has a leaf of a target that is not one of {targets}")

    def depth(self) -> int:
        """The most nodes on a path to a leaf; raises ShapeError if a path has no end."""
        depths: dict[int, int] = {}
        for root in self.roots:
            stack = [root]
            entered: set[int] = set()
            while stack:
                node = stack[-1]
                if node < 0 or node in depths:
                    stack.pop()
                    continue
                below = [next_ for next_ in (self.yes[node], self.no[node]) if next_ >= 0]
                open_ = [next_ for next_ in below if next_ not in depths]
                if node in entered and open_:
                    raise ShapeError(f"has a path from node {node} to itself")
                entered.add(node)
                if open_:
                    stack += open_
                else:
                    depths[stack.pop()] = 1 + max((depths[next_] for next_ in below), default=0)
        return max((depths.get(root, 0) for root in self.roots), default=0)


def tree_ensemble(x: ir.Value, trees: Trees, targets: int, *, aggregate: str = "sum") -> ir.Value:
    """[n, targets]: the weights of the leaves that rows reach, aggregated over trees.

    A target that no tree reaches is 0. Source: ONNX `ai.onnx.ml.TreeEnsemble`, whose transforms of
    results are operators.
    """
    if rank_of(x) != 2 or is_integer(element_of(x)):
        raise ShapeError(f"expects floats of rank 2, but got {element_of(x)}, rank {rank_of(x)}")
    if aggregate not in AGGREGATES:
        raise ShapeError(f"expects one of {', '.join(AGGREGATES)}, but got '{aggregate}'")
    n, features = dims_of(x)
    trees.check(features, targets)
    i64 = ir.IntegerType.get_signless(64)
    at = broadcast_to(expand_dims(vector(trees.roots, i64), [0]), [n, len(trees.roots)])
    depth = trees.depth()
    if depth:
        at = repeat(depth, [at], lambda at: [_step(x, trees, at)])[0]
    leaf = binary(graph.SubtractOp, -1, at)
    weight = emit(graph.TakeOp, vector(trees.weights, element_of(x)), leaf, axis=0)
    target = emit(graph.TakeOp, vector(trees.targets, i64), leaf, axis=0)
    is_own = binary(graph.EqualOp, expand_dims(target, [2]), arange(0, targets, 1, i64))
    return _aggregated(expand_dims(weight, [2]), is_own, aggregate, len(trees.roots))


def _step(x: ir.Value, trees: Trees, at: ir.Value) -> ir.Value:
    """The next node of each tree; a leaf is the next one of itself."""
    i64, element = ir.IntegerType.get_signless(64), element_of(x)
    node = maximum(at, 0)

    def own(table: Sequence[float], kind: ir.Type) -> ir.Value:
        return emit(graph.TakeOp, vector(table, kind), node, axis=0)

    value = emit(graph.GatherElementsOp, x, own(trees.features, i64), axis=1)
    mode = own([MODES.index(each) for each in trees.modes], i64)
    split, holds = own(trees.splits, element), None
    for index, compare in enumerate(COMPARISONS):
        if MODES[index] in trees.modes:
            result = emit(compare, value, split)
            holds = (
                result
                if holds is None
                else where(binary(graph.EqualOp, mode, index), result, holds)
            )
    if "in" in trees.modes:
        result = _is_member(value, trees, own)
        is_in = binary(graph.EqualOp, mode, MODES.index("in"))
        holds = result if holds is None else where(is_in, result, holds)
    assert holds is not None  # a tree with a node has a mode
    if any(trees.missing):
        tracked = greater(own([int(each) for each in trees.missing], i64), 0)
        is_missing = emit(graph.LogicalAndOp, emit(graph.IsnanOp, value), tracked)
        holds = emit(graph.LogicalOrOp, holds, is_missing)
    following = where(holds, own(trees.yes, i64), own(trees.no, i64))
    return where(binary(graph.GreaterEqualOp, at, 0), following, at)


def _is_member(
    value: ir.Value, trees: Trees, own: Callable[[Sequence[float], ir.Type], ir.Value]
) -> ir.Value:
    """Whether a value is one of those of its node."""
    width, is_any = max(map(len, trees.members), default=0), None
    for index in range(width):
        column = [each[index] if index < len(each) else math.nan for each in trees.members]
        is_one = emit(graph.EqualOp, value, own(column, element_of(value)))
        is_any = is_one if is_any is None else emit(graph.LogicalOrOp, is_any, is_one)
    return emit(graph.LessOp, value, value) if is_any is None else is_any


def _aggregated(weight: ir.Value, is_own: ir.Value, aggregate: str, count: int) -> ir.Value:
    """Weights [n, trees, 1] over the trees whose leaf is of a target, for each target."""
    outside = {"min": math.inf, "max": -math.inf}.get(aggregate, 0)
    result = reduce(AGGREGATES[aggregate], where(is_own, weight, outside), [1])
    if aggregate in ("min", "max"):
        return where(reduce(graph.AnyOp, is_own, [1]), result, 0)
    return divide(result, count) if aggregate == "average" else result
