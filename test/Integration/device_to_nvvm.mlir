// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-legalize-ops,relax-schedule{target=cuda:sm_90a},relax-outline-launches,gpu.module(convert-scf-to-cf,convert-gpu-to-nvvm,reconcile-unrealized-casts))' | FileCheck %s

// Kernels of devices are of dialects that MLIR itself lowers.

!x = tensor<?x?xf32, #graph.shape<["m", "n"]>>

// CHECK-LABEL: gpu.module @softmax_kernel
// CHECK:         llvm.func @softmax_kernel(
// CHECK-SAME:      nvvm.kernel
// CHECK:         nvvm.read.ptx.sreg.tid.x
// CHECK:         nvvm.barrier
// CHECK-NOT:     unrealized_conversion_cast
// CHECK:         llvm.return
func.func @main(%x: !x) -> !x {
  %0 = "graph.nn_softmax"(%x) {axis = -1 : i64} : (!x) -> !x
  return %0 : !x
}
