// RUN: relax-opt %s --pretty | FileCheck %s --check-prefix=BEFORE
// RUN: relax-opt %s --pass-pipeline='relax-dispatch-library,relax-legalize-ops' --check-equivalent-after-each --pretty | FileCheck %s

// Partial library lowering (paper Figure 12): a registry has pairs of a subgraph's pattern and a
// library's function. What matches becomes a call of the library, what is left is for the compiler,
// which writes tensor programs for it.

!x = tensor<?x128xf32, #graph.shape<["n", 128]>>
!y = tensor<?x256xf32, #graph.shape<["n", 256]>>

// BEFORE-LABEL: func @main(
// BEFORE-NEXT:    %0 = graph.nn_rms_norm(%arg0, %arg1)
// BEFORE-NEXT:    %1 = graph.matmul(%0, %arg2) : tensor<n x 256 x f32>
// BEFORE-NEXT:    %2 = graph.nn_relu(%1)

// CHECK:       lib.function @openblas.sgemm_nn()
// CHECK-LABEL: func @main(
// CHECK-NEXT:    %0 = graph.call_tir @rms_norm(%arg0, %arg1)
// CHECK-NEXT:    %1 = graph.call_dps_library @openblas.sgemm_nn(%0, %arg2) : tensor<n x 256 x f32>
// CHECK-NEXT:    %2 = graph.call_tir @relu(%1)
// CHECK-NEXT:    return %2
// CHECK:       func private @rms_norm(
// CHECK:       func private @relu(
func.func @main(%x: !x, %scale: tensor<128xf32>, %w: tensor<128x256xf32>) -> !y {
  %0 = "graph.nn_rms_norm"(%x, %scale) {axes = array<i64: -1>, epsilon = 1.0e-5 : f64} : (!x, tensor<128xf32>) -> !x
  %1 = "graph.matmul"(%0, %w) : (!x, tensor<128x256xf32>) -> !y
  %2 = "graph.nn_relu"(%1) : (!y) -> !y
  return %2 : !y
}
