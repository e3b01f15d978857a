"""Takes the ops of dataflow blocks out of them.

    %1 = scf.execute_region -> tensor<n> {
      %0 = "graph.exp"(%x)
      scf.yield %0
    } {graph.dataflow}
      ->
    %0 = "graph.exp"(%x)

The region of a dataflow block runs once, in the scope of symbols around it, so nothing else
changes. Passes that look at one block at a time then see all of it.

Needs: a verified module. Leaves: no dataflow block.
Source: TVM `ToNonDataflow`.
"""

from dataclasses import dataclass
from typing import ClassVar

from relax_mlir.analysis.functions import graph_functions
from relax_mlir.analysis.scopes import runs_once
from relax_mlir.bindings import ir, scf
from relax_mlir.passes import Pass
from relax_mlir.rewriting import replace, retyped, walk_ops

from .convert_to_dataflow import DATAFLOW


@dataclass(frozen=True)
class ToNonDataflow(Pass):
    """Takes the ops of dataflow blocks out of them."""

    needs_verified: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Inlines the dataflow blocks of every graph function, inner ones first."""
        for function in graph_functions(op):
            for region in walk_ops(function, scf.ExecuteRegionOp):
                if DATAFLOW in region.attributes and runs_once(region):
                    _inline(region)


def _inline(op: scf.ExecuteRegionOp) -> None:
    *body, end = op.operation.regions[0].blocks[0].operations
    for each in body:
        each.operation.move_before(op.operation)
    with ir.InsertionPoint(op), op.location:
        pairs = zip(end.operands, op.operation.results, strict=True)
        replace(op, [retyped(value, result.type) for value, result in pairs])
