"""Joins tensors first and permutes the result, where each of them was permuted alike.

    %0 = "graph.permute_dims"(%a) {axes = [1, 0]}
    %1 = "graph.permute_dims"(%b) {axes = [1, 0]}
    %2 = "graph.concat"(%0, %1) {axis = 1}
      ->
    %0 = "graph.concat"(%a, %b) {axis = 0}
    %1 = "graph.permute_dims"(%0) {axes = [1, 0]}

After `relax-combine-parallel-matmul`, weights that are stored transposed are joined as they are
stored, and schedules of products see through the one permutation. A permutation that something
else uses stays. Elements are only copied: no bit changes.

Needs: a verified module. Leaves: no concat whose operands are all permuted alike.
Source: TVM `ReorderPermuteDimsAfterConcat`.
"""

from dataclasses import dataclass
from typing import ClassVar

from relax_mlir.analysis.functions import graph_functions
from relax_mlir.analysis.purity import Purity
from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import ConcatOp, PermuteDimsOp, normalize_axis
from relax_mlir.passes import Pass
from relax_mlir.rewriting import defining_op, retyped

from .dead_code_elimination import rewrite_and_clean


@dataclass(frozen=True)
class ReorderPermuteDimsAfterConcat(Pass):
    """Joins tensors first and permutes the result, where each was permuted alike."""

    needs_verified: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Rewrites every graph function of the module."""
        purity = Purity.of(op)
        for function in graph_functions(op):
            rewrite_and_clean(function, purity, permute_last)


def permute_last(op: ConcatOp) -> ir.Value | None:
    """A concat of permuted tensors."""
    producers = [defining_op(value, PermuteDimsOp) for value in op.ins]
    permutations = [each for each in producers if each is not None]
    if len(permutations) < len(producers):
        return None
    orders = {tuple(ir.DenseI64ArrayAttr(each.attributes["axes"])) for each in permutations}
    used_here = all(
        use.owner.operation == op.operation for each in permutations for use in each.result.uses
    )
    if len(orders) > 1 or not used_here:
        return None
    axes = orders.pop()
    axis = axes[normalize_axis(ir.IntegerAttr(op.attributes["axis"]).value, len(axes))]
    joined = ConcatOp.build(*(each.input for each in permutations), axis=axis).outs[0]
    return retyped(PermuteDimsOp.build(joined, axes=axes).result, op.outs[0].type)
