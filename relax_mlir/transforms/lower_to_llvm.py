"""Lowers scheduled kernels and host code to the LLVM dialect for a target.

    func, scf, vector, memref, arith, math, llvm   ->   llvm

Needs: `relax-expand-math` and `relax-outline-parallel`, if the module has math or parallel loops.
Leaves: the LLVM dialect alone, which `mlir-translate` translates to LLVM IR.
Source: MLIR, "LLVM IR target".
"""

from dataclasses import dataclass, field

from relax_mlir.bindings import ir
from relax_mlir.codegen.lower import lower_to_llvm
from relax_mlir.passes import Pass
from relax_mlir.target import Target, native


@dataclass(frozen=True)
class LowerToLlvm(Pass):
    """Lowers the module to the LLVM dialect."""

    target: Target = field(default_factory=native)

    def run(self, op: ir.Operation) -> None:
        """Lowers in place."""
        lower_to_llvm(op.opview, self.target.host)
