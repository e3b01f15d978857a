"""Converts functions of linalg on tensors to graph functions and tensor programs.

    %0 = linalg.matmul ins(%x, %w : tensor<?x?xf32>, tensor<?x8xf32>) outs(%zeros : ...) -> ...
      ->
    func.func private @matmul(...) attributes {tir.prim_func} { linalg.fill, linalg.matmul }
    %0 = "graph.call_tir"(%x, %w) {callee = @matmul}

Dims of arguments that are not known become symbols; those that ops which always run need to be
equal become one symbol, or a fact. `tensor.dim` and arithmetic on indices are expressions over
symbols; a size that they do not tell is bound at run time. Ops of tensor become operators, arith
and math on tensors tensor programs; scf and func.call stay. What linalg leaves undefined, such as
an index outside of a tensor or a division by 0, has the meaning that it has for operators.

Needs: nothing. Leaves: no structured op outside of tensor programs. Fails at each op that is not
supported.
"""

from dataclasses import dataclass
from typing import ClassVar

from relax_mlir.bindings import ir
from relax_mlir.conversion import convert
from relax_mlir.passes import Pass


@dataclass(frozen=True)
class ConvertLinalg(Pass):
    """Converts functions of linalg on tensors to graph functions and tensor programs."""

    keeps_verified: ClassVar[bool] = False
    takes_tuples: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Converts the functions of the module that have ops of linalg."""
        convert(op, ("linalg",))
