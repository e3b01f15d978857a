"""Computes once what is computed twice from the same operands.

    %0 = "graph.exp"(%x) : tensor<?xf32>
    %1 = "graph.match_cast"(%x) : ... tensor<n x f32>
    %2 = "graph.exp"(%1) : tensor<n x f32>
      ->
    %2 = "graph.match_cast"(%0) : ... tensor<n x f32>

The later op goes if it has the name, attributes and operands of one that is visible there: before
it in its block, or in a block around it. Operands count as the same through casts, which change no
value; where the annotations of the results differ, a cast stays. A cast that says what an earlier
one said goes too, and so does a call of the same function, unless it prints or calls a function
from outside.

It never costs a computation, but it may cost memory: what was cheap to compute again stays in it,
and what each of two kernels could have computed for itself is written. The default pipelines run it
on calls of kernels, where each call saved is a kernel that does not run.

Needs: a verified module. Leaves: no two visible ops of the same name, attributes and operands.
Source: TVM `EliminateCommonSubexpr`.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

from relax_mlir.analysis.functions import graph_functions
from relax_mlir.analysis.purity import Purity, is_pure_operator
from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import (
    CallOp,
    InferredOp,
    InferredSlotOp,
    MatchCastOp,
    TensorType,
    annotation_of,
)
from relax_mlir.passes import Pass
from relax_mlir.rewriting import replace, retyped, uncast


@dataclass(frozen=True)
class EliminateCommonSubexpr(Pass):
    """Computes once what is computed twice from the same operands."""

    needs_verified: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Looks at every graph function of the module."""
        purity = Purity.of(op)
        for function in graph_functions(op):
            _visit(function.entry_block, {}, purity)


def _visit(block: ir.Block, seen: dict[Hashable, ir.OpView], purity: Purity) -> None:
    """Replaces the ops of a block, `seen` being those that are visible there."""
    for op in list(block.operations):
        for region in op.operation.regions:
            for inner in region.blocks:
                _visit(inner, dict(seen), purity)
        is_call = isinstance(op, CallOp) and purity.is_silent(op)
        if not is_call and not isinstance(op, MatchCastOp) and not is_pure_operator(op):
            continue
        first = seen.setdefault(_key(op), op)
        if first is not op and _fits(first, op):
            with ir.InsertionPoint(op), op.location:
                pairs = zip(first.operation.results, op.operation.results, strict=True)
                replace(op, [retyped(new, old.type) for new, old in pairs])


def _fits(first: ir.OpView, op: ir.OpView) -> bool:
    """Whether the results of one can stand for those of the other; tensors are cast."""
    pairs = zip(first.operation.results, op.operation.results, strict=True)
    return all(
        a.type == b.type or all(isinstance(annotation_of(x), TensorType) for x in (a, b))
        for a, b in pairs
    )


def _key(op: ir.OpView) -> Hashable:
    """What two ops have in common that compute the same.

    The results' types of an operator follow from the rest; those of a call say what it allocates.
    """
    attributes = tuple(sorted((name, op.attributes[name]) for name in op.attributes))
    return op.operation.name, attributes, tuple(map(uncast, op.operands)), _stated(op)


def _stated(op: ir.OpView) -> tuple[ir.Type, ...]:
    if isinstance(op, InferredOp | InferredSlotOp):
        return ()
    return tuple(result.type for result in op.operation.results)
