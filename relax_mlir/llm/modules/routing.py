"""The choice of experts for each token, and their weights."""

import math

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.llm.modules.config import DecoderConfig, Experts
from relax_mlir.llm.modules.nn import (
    Linear,
    Module,
    Parameter,
    Storage,
    add,
    constant,
    dims_of,
    reshape,
    scaled,
    value_of,
)

SMALLEST_SUM = 1e-20
"""What is added to a sum of sigmoids, which may all be 0."""


class Router(Module):
    """Weights and indices of the experts of each token.

    Source: Mixtral (arXiv 2401.04088); DeepSeek-V2 (2405.04434), of groups, and V3 (2412.19437).
    """

    def __init__(
        self, config: DecoderConfig, experts: Experts, prefix: str, storage: Storage
    ) -> None:
        self.experts = experts
        self.scores = Linear(config.hidden_size, {f"{prefix}.gate": experts.count}, storage)
        if experts.bias:
            self.bias = Parameter((experts.count,), (f"{prefix}.expert_bias.bias",))

    def __call__(self, x: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Maps [n, hidden] to weights, float32[n, chosen], and indices, int32[n, chosen]."""
        e = self.experts
        if e.scores == "sigmoid":
            scores = graph.SigmoidOp.build(self.scores(x)).result
        else:
            scores = graph.SoftmaxOp.build(self.scores(x), axis=-1).result
        ranks = add(scores, value_of(self.bias)) if e.bias else scores
        if e.groups > 1:
            ranks = self._eligible(ranks)
        weights, ids = _top(ranks, e.chosen)
        if e.bias:
            weights = graph.GatherElementsOp.build(scores, ids, axis=1).result
        if e.normalises:
            total = graph.SumOp.build(weights, axes=[1], keepdims=True).result
            if e.scores == "sigmoid":
                total = add(total, constant(SMALLEST_SUM))
            weights = graph.DivideOp.build(weights, total).result
        ids = graph.AstypeOp.build(ids, dtype=ir.IntegerType.get_signless(32)).result
        return scaled(weights, e.scale), ids

    def _eligible(self, ranks: ir.Value) -> ir.Value:
        """The ranks in the best groups; others are none."""
        e = self.experts
        rows = dims_of(ranks)[0]
        grouped = reshape(ranks, [rows, e.groups, e.count // e.groups])
        best, _ = _top(grouped, e.group_best)
        sums = graph.SumOp.build(best, axes=[2], keepdims=False).result
        _, ids = _top(sums, e.chosen_groups)
        one_hot = graph.OneHotOp.build(
            ids, constant(1.0), constant(0.0), depth=[e.groups], axis=2
        ).result
        chosen = graph.SumOp.build(one_hot, axes=[1], keepdims=False).result
        is_chosen = graph.GreaterOp.build(chosen, constant(0.5)).result
        column = graph.ExpandDimsOp.build(is_chosen, axes=[2]).result
        ranks = graph.WhereOp.build(column, grouped, constant(-math.inf)).result
        return reshape(ranks, [rows, e.count])


def _top(x: ir.Value, count: int) -> tuple[ir.Value, ir.Value]:
    """The greatest values of the last dim, and their indices."""
    top = graph.TopkOp.build(x, k=[count], axis=-1, largest=True)
    values, ids = top.results
    return values, ids
