"""Expands math functions without an instruction to vector arithmetic.

    %1 = math.exp %0 : vector<16xf32>   ->   arith and vector ops, math.fma

Uses instructions of the target.

Needs: nothing. Leaves: math ops that lower to instructions, such as `math.sqrt` and `math.fma`.
Source: J.-M. Muller, "Elementary Functions: Algorithms and Implementation".
"""

from dataclasses import dataclass, field

from relax_mlir.bindings import ir
from relax_mlir.codegen.vector_math import expand_math
from relax_mlir.passes import Pass
from relax_mlir.target import Target, native


@dataclass(frozen=True)
class ExpandMath(Pass):
    """Expands the math functions of the module for a target."""

    target: Target = field(default_factory=native)

    def run(self, op: ir.Operation) -> None:
        """Expands in place."""
        expand_math(op.opview, self.target.host)
