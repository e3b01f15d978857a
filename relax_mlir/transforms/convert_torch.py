"""Converts functions of PyTorch's dialect, as torch-mlir imports them, to graph functions.

    %0 = torch.aten.mm %x, %w : !torch.vtensor<[?,4],f32>, !torch.vtensor<[4,8],f32> -> ...
      ->
    %0 = "graph.call_tir"(%x, %w) {callee = @matmul}

Passes of torch-mlir, which are part of the bindings, lower the dialect to linalg; PyTorch is not
needed. What comes of it is converted as `relax-convert-linalg` does: dims that are not known become
symbols, and assertions of dims facts.

Needs: nothing. Leaves: no op of PyTorch's dialect. Fails at each op that torch-mlir does not lower.
"""

from dataclasses import dataclass
from typing import ClassVar

from relax_mlir.bindings import ir
from relax_mlir.conversion import convert
from relax_mlir.conversion.torch import has_torch, lower_torch
from relax_mlir.passes import Pass


@dataclass(frozen=True)
class ConvertTorch(Pass):
    """Converts functions of PyTorch's dialect to graph functions."""

    keeps_verified: ClassVar[bool] = False
    takes_tuples: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Lowers the module to linalg, and converts that."""
        if has_torch(op) and lower_torch(op):
            convert(op, ("linalg",), broadcasts=True)
