"""Outlines the bodies of parallel loops to functions that the runtime calls on its threads.

    func.func private @k(%x: memref<?xf32>) attributes {tir.scheduled} {
      scf.parallel (%i) = (%lb) to (%ub) step (%s) { use(%x, %i) } {tir.grain = 8 : i64}
      ->
    func.func private @k(%x: memref<?xf32>) attributes {tir.scheduled} {
      llvm.store (%x, %lb, %s), %data
      llvm.call @rx_parallel_for(@k_parallel0_task, %data, iterations, 8)
    func.func private @k_parallel0(%x: memref<?xf32>, %lb, %s, %begin, %end)
    llvm.func @k_parallel0_task(%data: !llvm.ptr, %begin: i64, %end: i64)

Needs: parallel loops of one dim without reductions. Leaves: only nested parallel loops.
Source: OpenMP's outlining of parallel regions; MLIR `convert-scf-to-openmp`.
"""

from dataclasses import dataclass

from relax_mlir.bindings import ir
from relax_mlir.codegen.parallel import outline_parallel
from relax_mlir.passes import Pass


@dataclass(frozen=True)
class OutlineParallel(Pass):
    """Outlines the parallel loops of every function of the module."""

    def run(self, op: ir.Operation) -> None:
        """Outlines in place."""
        outline_parallel(op.opview)
