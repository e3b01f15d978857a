// RUN: relax-opt %s --relax-dispatch-library --pretty | FileCheck %s
// RUN: relax-opt %s --pass-pipeline='relax-dispatch-library{functions=other}' --pretty | FileCheck %s --check-prefix=NONE
// RUN: relax-opt %s --pass-pipeline='relax-dispatch-library{min-work=1000}' --pretty | FileCheck %s --check-prefix=WORK
// RUN: exits 2 relax-opt %s --pass-pipeline='relax-dispatch-library{libraries=blas}' 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: relax-opt: pass 'relax-dispatch-library': unknown library 'blas'; known are openblas

!x = tensor<?x64xf32, #graph.shape<["n", 64]>>
!y = tensor<?x32xf32, #graph.shape<["n", 32]>>

// NONE-NOT: call_dps_library

// CHECK: lib.function
// CHECK-SAME: cblas_sgemm_nn
// CHECK: lib.function
// CHECK-SAME: cblas_sgemm_nt

// A transposed weight is read as it lies; two products share a declaration.
// CHECK-LABEL: func @products(
// CHECK-NEXT:    graph.call_dps_library @openblas.sgemm_nt(%arg0, %arg1) : tensor<n x 32 x f32>
// CHECK-NEXT:    graph.call_dps_library @openblas.sgemm_nn(%arg0, %arg2) : tensor<n x 32 x f32>
// CHECK-NEXT:    graph.call_dps_library @openblas.sgemm_nn(%arg3, %arg2) : tensor<2 x 3 x 32 x f32>
// n may be 0, so only the product of known extents is proved to be worth a call.
// WORK-LABEL: func @products(
// WORK-NEXT:    graph.permute_dims
// WORK-NEXT:    graph.matmul
// WORK-NEXT:    graph.matmul
// WORK-NEXT:    graph.call_dps_library
func.func @products(%x: !x, %w: tensor<32x64xf32>, %v: tensor<64x32xf32>, %z: tensor<2x3x64xf32>) -> (!y, !y, tensor<2x3x32xf32>) {
  %t = "graph.permute_dims"(%w) {axes = array<i64: 1, 0>} : (tensor<32x64xf32>) -> tensor<64x32xf32>
  %0 = "graph.matmul"(%x, %t) : (!x, tensor<64x32xf32>) -> !y
  %1 = "graph.matmul"(%x, %v) : (!x, tensor<64x32xf32>) -> !y
  %2 = "graph.matmul"(%z, %v) : (tensor<2x3x64xf32>, tensor<64x32xf32>) -> tensor<2x3x32xf32>
  return %0, %1, %2 : !y, !y, tensor<2x3x32xf32>
}

// Other types, batches of weights and unknown dims are the compiler's own.
// CHECK-LABEL: func @negative_others(
// CHECK-NEXT:    graph.matmul
// CHECK-NEXT:    graph.matmul
// CHECK-NEXT:    graph.matmul
// CHECK-NEXT:    return
func.func @negative_others(%a: tensor<4x4xf64>, %b: tensor<5x4x4xf32>, %c: tensor<?x4xf32>, %d: tensor<4x4xf32>) -> (tensor<4x4xf64>, tensor<5x4x4xf32>, tensor<?x4xf32>) {
  %0 = "graph.matmul"(%a, %a) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
  %1 = "graph.matmul"(%b, %b) : (tensor<5x4x4xf32>, tensor<5x4x4xf32>) -> tensor<5x4x4xf32>
  %2 = "graph.matmul"(%c, %d) : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  return %0, %1, %2 : tensor<4x4xf64>, tensor<5x4x4xf32>, tensor<?x4xf32>
}
