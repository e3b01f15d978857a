"""Checks the rules of dataflow nodes; changes nothing.

Each leaf and internal node by what it may contain, each node by its grid and edges, and the
hierarchy: no node contains itself, ids that leaves ask for are there. Reports all errors, each at
its op. `relax-verify` and `relax-lower-dataflow` check the same.

Needs: nothing. Leaves: the module unchanged.
Source: HPVM, arXiv 1611.00860, section 3.
"""

from dataclasses import dataclass
from typing import ClassVar

from relax_mlir.analysis.nodes import report_broken
from relax_mlir.bindings import ir
from relax_mlir.passes import Pass


@dataclass(frozen=True)
class VerifyDataflow(Pass):
    """Checks the rules of dataflow nodes; changes nothing."""

    takes_tuples: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Emits an error for each violated rule of the module."""
        report_broken(op)
