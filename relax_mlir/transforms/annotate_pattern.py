"""Annotates each tensor program with its compute pattern.

    func.func private @exp(%x, %out) attributes {tir.prim_func}
      ->
    func.func private @exp(%x, %out) attributes {tir.pattern = #tir.pattern<"element_wise">, ...}

An existing pattern is kept: the author of the program may know better.

Needs: nothing. Leaves: a `tir.pattern` on every tensor program that is not scheduled.
Source: paper Algorithm 1; TVM `AnnotateTIROpPattern`.
"""

from dataclasses import dataclass
from typing import ClassVar

from relax_mlir.analysis.compute_pattern import compute_pattern
from relax_mlir.bindings import ir
from relax_mlir.dialects.tir import prim_funcs
from relax_mlir.passes import Pass


@dataclass(frozen=True)
class AnnotatePattern(Pass):
    """Annotates each tensor program with its compute pattern."""

    needs_verified: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Annotates every tensor program of the module."""
        for kernel in prim_funcs(op):
            if kernel.pattern is None and not kernel.is_scheduled:
                kernel.set_pattern(compute_pattern(kernel))
