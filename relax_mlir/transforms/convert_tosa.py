"""Converts functions of TOSA to graph functions.

    %0 = tosa.matmul %x, %w, %zx, %zw        ->      %0 = "graph.matmul"(%x, %w)

Ops become operators, which broadcast along dims of 1 as TOSA's do; a dim that is not known
broadcasts at run time. Shapes are expressions over symbols. Quantised integers are exact: what
is rescaled is computed in 64 bits. Functions may have ops of linalg, tensor and scf as well, as
for `relax-convert-linalg`.

Needs: nothing. Leaves: no op of TOSA. Fails at each op that is not supported.
Source: TOSA 1.0 specification.
"""

from dataclasses import dataclass
from typing import ClassVar

from relax_mlir.bindings import ir
from relax_mlir.conversion import convert
from relax_mlir.passes import Pass


@dataclass(frozen=True)
class ConvertTosa(Pass):
    """Converts functions of TOSA to graph functions."""

    keeps_verified: ClassVar[bool] = False
    takes_tuples: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Converts the functions of the module that have ops of TOSA."""
        convert(op, ("tosa", "linalg"))
