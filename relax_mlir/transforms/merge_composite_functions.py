"""Merges calls of composites for one library, or other code generator, into private functions.

    %0 = "graph.call"(%x) {callee = @blas_dense}        func.func private @blas(%x)
    %1 = "graph.call"(%0) {callee = @blas_relu}             attributes {graph.codegen = "blas"} {
                                                   ->     both calls, return %1
                                                        }
                                                        %1 = "graph.call"(%x) {callee = @blas}

Calls are merged if one uses what the other makes, both are for the same (their patterns' names up
to the first dot), and nothing outside computes an operand of the merged call from its results. A
call that cannot be merged becomes a function of its own.

Needs: `relax-fuse-ops-by-pattern`. Leaves: calls of composites only inside of such functions.
Source: TVM `MergeCompositeFunctions`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from relax_mlir.analysis.functions import CODEGEN, COMPOSITE, graph_functions
from relax_mlir.analysis.purity import Purity
from relax_mlir.analysis.signatures import functions_by_name
from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import CallOp
from relax_mlir.outlining import Group, Outliner, Refused, in_order
from relax_mlir.passes import Pass
from relax_mlir.rewriting import identity, walk_ops


@dataclass(frozen=True)
class MergeCompositeFunctions(Pass):
    """Merges calls of composites for one library into private functions."""

    needs_verified: ClassVar[bool] = True

    max_size: int = 256

    def __post_init__(self) -> None:
        if self.max_size < 1:
            raise ValueError(f"max-size must be positive, but is {self.max_size}")

    def run(self, op: ir.Operation) -> None:
        """Merges calls in each graph function that is no composite, and not merged itself."""
        outliner = Outliner(op, Purity.of(op))
        codegen = {
            name: function.attributes[COMPOSITE].value.partition(".")[0]
            for name, function in functions_by_name(op).items()
            if COMPOSITE in function.attributes
        }
        for function in graph_functions(op):
            if not {COMPOSITE, CODEGEN} & set(function.attributes):
                calls = [c for c in walk_ops(function, CallOp) if c.callee_name in codegen]
                waiting = {
                    identity(call.operation): (call.operation, codegen[call.callee_name])
                    for call in calls
                    if len(call.outs)
                }
                while waiting:
                    _, (seed, name) = waiting.popitem()  # the last one
                    self._merge(seed, name, waiting, outliner)

    def _merge(
        self,
        seed: ir.Operation,
        name: str,
        waiting: dict[int, tuple[ir.Operation, str]],
        outliner: Outliner,
    ) -> None:
        """Outlines a call with as many others as possible, which leave `waiting`."""
        try:
            group = Group.of([seed], [], outliner.purity)
        except Refused:
            return
        grown = True
        while grown and len(group.ops) < self.max_size:
            grown = False
            for op in reversed(_neighbours(group, name, waiting)):
                try:
                    group = Group.of([*group.ops, op], [], outliner.purity)
                except Refused:
                    continue
                del waiting[identity(op)]
                grown = True
                break
        if group.outputs:
            base = re.sub(r"\W", "_", name) or "merged"
            outliner.outline(group, base, {CODEGEN: ir.StringAttr.get(name)})


def _neighbours(
    group: Group, name: str, waiting: dict[int, tuple[ir.Operation, str]]
) -> list[ir.Operation]:
    """The calls for the same that use results of the group, or make its operands, in order."""
    near = [op for op in _adjacent(group) if _name(op, waiting) == name]
    return in_order(op for op in near if op.block == group.ops[0].block)


def _name(op: ir.Operation, waiting: dict[int, tuple[ir.Operation, str]]) -> str | None:
    return waiting.get(identity(op), (op, None))[1] if len(op.results) else None


def _adjacent(group: Group) -> Iterator[ir.Operation]:
    for value in group.inputs:
        if isinstance(value, ir.OpResult):
            yield value.owner.operation
    for value in group.outputs:
        for use in value.uses:
            yield use.owner.operation
