"""Outlines the launches of kernels for devices: code of the device apart from that of the host.

    func.func private @k(%x: memref<?xf32>) attributes {tir.scheduled} {
      gpu.launch blocks(..) in (%n, 1, 1) threads(..) in (256, 1, 1) { use(%x, %n, %c) }
      ->
    func.func private @k(%x: memref<?xf32>) attributes {tir.scheduled} {
      gpu.launch_func @k_kernel::@k_kernel blocks in (%n, 1, 1) threads in (256, 1, 1) args(%x, %n)
    gpu.module @k_kernel { gpu.func @k_kernel(%x: memref<?xf32>, %n: index) kernel { .. } }

Kernels take buffers of one dim and scalars; constants are copied into them.

Needs: kernels scheduled for a device (`relax-schedule`). Leaves: no `gpu.launch`.
Source: MLIR `gpu-kernel-outlining`.
"""

from dataclasses import dataclass

from relax_mlir.bindings import ir
from relax_mlir.codegen.gpu import outline_launches
from relax_mlir.passes import Pass


@dataclass(frozen=True)
class OutlineLaunches(Pass):
    """Outlines the launches of kernels for devices: code of the device apart from the host's."""

    def run(self, op: ir.Operation) -> None:
        """Outlines in place."""
        outline_launches(op)
