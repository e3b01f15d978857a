"""Puts pure ops that follow each other into dataflow blocks.

    %0 = "graph.exp"(%x)
    %1 = "graph.add"(%0, %x)
      ->
    %1 = scf.execute_region -> tensor<n> {
      %0 = "graph.exp"(%x)
      %1 = "graph.add"(%0, %x)
      scf.yield %1
    } {graph.dataflow}

A block yields what is used after it. Constants stay outside, where passes look for them; so do
runs of fewer than `min-size` ops, and blocks that are there. What may be refused at run time, and
branches and loops, end a run.

Needs: a verified module. Leaves: `relax-to-non-dataflow` undoes it.
Source: TVM `ConvertToDataflow`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from relax_mlir.analysis.functions import PRIMITIVE, graph_functions
from relax_mlir.analysis.purity import is_pure_operator
from relax_mlir.bindings import arith, ir, scf
from relax_mlir.passes import Pass

DATAFLOW = "graph.dataflow"


@dataclass(frozen=True)
class ConvertToDataflow(Pass):
    """Puts pure ops that follow each other into dataflow blocks."""

    needs_verified: ClassVar[bool] = True

    min_size: int = 2
    """Ops that a block has at least."""

    def __post_init__(self) -> None:
        if self.min_size < 1:
            raise ValueError(f"a block has one op or more, but got min-size={self.min_size}")

    def run(self, op: ir.Operation) -> None:
        """Looks at every graph function that is no kernel."""
        for function in graph_functions(op):
            if PRIMITIVE not in function.attributes:
                self._block(function.entry_block)

    def _block(self, block: ir.Block) -> None:
        for op in block.operations:
            if DATAFLOW not in op.attributes:
                for region in op.operation.regions:
                    for inner in region.blocks:
                        self._block(inner)
        for run in _runs(block):
            if len(run) >= self.min_size:
                _outline(run)


def _runs(block: ir.Block) -> list[list[ir.Operation]]:
    """The longest runs of pure operators; constants among them are not part of a run."""
    runs: list[list[ir.Operation]] = [[]]
    for op in block.operations:
        if isinstance(op, arith.ConstantOp):
            continue
        if is_pure_operator(op):
            runs[-1].append(op.operation)
        else:
            runs.append([])
    return runs


def _outline(run: Sequence[ir.Operation]) -> None:
    """Moves ops into a block of their own, where the first one was."""
    first, inside = run[0], set(run)
    operations = [op.operation for op in first.block.operations]
    for op in operations[operations.index(first) : operations.index(run[-1])]:
        if op not in inside:  # a constant
            op.move_before(first)
    results = [
        result
        for op in run
        for result in op.results
        if any(use.owner.operation not in inside for use in result.uses)
    ]
    with ir.InsertionPoint(first), first.location:
        types = [result.type for result in results]
        made = scf.ExecuteRegionOp(types, no_inline=True)
        made.operation.attributes[DATAFLOW] = ir.UnitAttr.get()
        body = made.operation.regions[0].blocks.append()
    with ir.InsertionPoint(body), first.location:
        end = scf.YieldOp(results).operation
    for op in run:
        op.move_before(end)
    for old, new in zip(results, made.operation.results, strict=True):
        old.replace_all_uses_except(new, [*run, end])
