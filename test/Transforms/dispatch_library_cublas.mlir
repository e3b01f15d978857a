// RUN: relax-opt %s --pass-pipeline='relax-dispatch-library{libraries=cublas target=native@cuda:sm_90a@vulkan}' --pretty | FileCheck %s
// RUN: exits 2 relax-opt %s --pass-pipeline='relax-dispatch-library{libraries=cublas target=vulkan}' 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-dispatch-library{libraries=cublas target=x86-64-v3@cuda:sm_90a@vulkan},relax-legalize-ops,relax-schedule{target=x86-64-v3@cuda:sm_90a@vulkan},relax-copy-between-devices,relax-lower-calls,relax-plan-memory{alignment=256},relax-outline-launches,relax-to-host{target=x86-64-v3@cuda:sm_90a@vulkan})' | FileCheck %s --check-prefix=HOST

// NONE: library 'cublas' computes on devices of 'cuda', but target 'vulkan' has none

!x = tensor<?x64xf32, #graph.shape<["n", 64]>>
!y = tensor<?x32xf32, #graph.shape<["n", 32]>>

// CHECK-DAG: lib.function @cublas.gemm_nt_f32() {c_symbol="cublasGemmStridedBatchedEx", convention="cublas_gemm_nt"
// CHECK-DAG: lib.function @cublas.gemm_nn_bf16_3d() {c_symbol="cublasGemmStridedBatchedEx", convention="cublas_gemm_nn"

// Rows by one matrix, which may be transposed, and batches of matrices.
// CHECK-LABEL: func @products(
// CHECK-NEXT:    graph.call_dps_library @cublas.gemm_nt_f32(%arg0, %arg1) : tensor<n x 32 x f32>
// CHECK-NEXT:    graph.call_dps_library @cublas.gemm_nn_bf16_3d(%arg2, %arg2) : tensor<5 x 4 x 4 x bf16>

// The runtime queues products: the function, elements, whether rhs is transposed, matrices, rows, columns, sums.
// HOST-LABEL: func.func @rx_fn_products
// HOST: %[[FUNCTION:.*]] = llvm.load %{{.*}} : !llvm.ptr -> !llvm.ptr
// HOST: llvm.store %[[FUNCTION]], %[[PRODUCT:.*]] : !llvm.ptr, !llvm.ptr
// HOST: call @rx_device_product(%arg0, %{{.*}}, %[[PRODUCT]]) : (!llvm.ptr, i32, !llvm.ptr) -> i32
func.func @products(%x: !x, %w: tensor<32x64xf32>, %b: tensor<5x4x4xbf16>) -> (!y, tensor<5x4x4xbf16>) {
  %t = "graph.permute_dims"(%w) {axes = array<i64: 1, 0>} : (tensor<32x64xf32>) -> tensor<64x32xf32>
  %0 = "graph.matmul"(%x, %t) : (!x, tensor<64x32xf32>) -> !y
  %1 = "graph.matmul"(%b, %b) : (tensor<5x4x4xbf16>, tensor<5x4x4xbf16>) -> tensor<5x4x4xbf16>
  return %0, %1 : !y, tensor<5x4x4xbf16>
}

// Integers, batches of other dims and other devices are the compiler's own.
// CHECK-LABEL: func @negative_others(
// CHECK-NOT: call_dps_library
// CHECK: return
func.func @negative_others(%a: tensor<4x4xi32>, %b: tensor<5x1x4x4xf32>, %c: tensor<1x6x4x4xf32>) -> (tensor<4x4xi32>, tensor<5x6x4x4xf32>) {
  %0 = "graph.matmul"(%a, %a) : (tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xi32>
  %1 = "graph.matmul"(%b, %c) : (tensor<5x1x4x4xf32>, tensor<1x6x4x4xf32>) -> tensor<5x6x4x4xf32>
  return %0, %1 : tensor<4x4xi32>, tensor<5x6x4x4xf32>
}

// CHECK-LABEL: func private @on_vulkan(
// CHECK-NOT: call_dps_library
func.func private @on_vulkan(%x: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {graph.device = "vulkan", graph.noinline} {
  %0 = "graph.matmul"(%x, %x) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
