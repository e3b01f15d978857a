// RUN: relax-opt %s --relax-dispatch-library --pretty | FileCheck %s
// RUN: relax-opt %s --pass-pipeline='relax-dispatch-library{functions=other}' --pretty | FileCheck %s --check-prefix=NONE
// RUN: relax-opt %s --pass-pipeline='relax-dispatch-library{min-work=1000}' --pretty | FileCheck %s --check-prefix=WORK
// RUN: exits 2 relax-opt %s --pass-pipeline='relax-dispatch-library{libraries=blas}' 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: relax-opt %s --pass-pipeline="relax-dispatch-library{when='m >= 32'}" --pretty | FileCheck %s --check-prefix=WHEN
// RUN: relax-opt %s --pass-pipeline="relax-dispatch-library{when='m >= 32' at-run-time=false}" --pretty | FileCheck %s --check-prefix=PROVED
// RUN: exits 1 relax-opt %s --pass-pipeline="relax-dispatch-library{when='q >= 32'}" 2>&1 | FileCheck %s --check-prefix=VARIABLE
// RUN: exits 1 relax-opt %s --pass-pipeline="relax-dispatch-library{when='m mod 8 == 0'}" 2>&1 | FileCheck %s --check-prefix=MOD
// RUN: exits 2 relax-opt %s --pass-pipeline="relax-dispatch-library{when='m'}" 2>&1 | FileCheck %s --check-prefix=RELATION
// VARIABLE: dispatch_library.mlir:{{[0-9]+}}:8: error: 'graph.matmul' op matches 'openblas.sgemm_nn', of k, m, n, but 'q >= 32' names q
// MOD: 'graph.matmul' op matches 'openblas.sgemm_nn', but 'm mod 8' cannot be computed at run time; sums, products, min and max can
// RELATION: pass 'relax-dispatch-library': 'm': column 2
// UNKNOWN: relax-opt: pass 'relax-dispatch-library': unknown library 'blas'; known are cublas, openblas

!x = tensor<?x64xf32, #graph.shape<["n", 64]>>
!y = tensor<?x32xf32, #graph.shape<["n", 32]>>

// NONE-NOT: call_dps_library

// CHECK-DAG: lib.function @openblas.sgemm_nn() {c_symbol="scipy_cblas_sgemm64_", convention="cblas_sgemm_nn"
// CHECK-DAG: lib.function @openblas.sgemm_nt() {c_symbol="scipy_cblas_sgemm64_", convention="cblas_sgemm_nt"
// CHECK-DAG: lib.function @openblas.dgemm_nn() {c_symbol="scipy_cblas_dgemm64_", convention="cblas_dgemm_nn"

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
func.func @negative_others(%a: tensor<4x4xf16>, %b: tensor<5x4x4xf32>, %c: tensor<?x4xf32>, %d: tensor<4x4xf32>) -> (tensor<4x4xf16>, tensor<5x4x4xf32>, tensor<?x4xf32>) {
  %0 = "graph.matmul"(%a, %a) : (tensor<4x4xf16>, tensor<4x4xf16>) -> tensor<4x4xf16>
  %1 = "graph.matmul"(%b, %b) : (tensor<5x4x4xf32>, tensor<5x4x4xf32>) -> tensor<5x4x4xf32>
  %2 = "graph.matmul"(%c, %d) : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  return %0, %1, %2 : tensor<4x4xf16>, tensor<5x4x4xf32>, tensor<?x4xf32>
}

// f64 has functions of its own; a permutation that leaves the dims in order is no transposition.
// CHECK-LABEL: func @types(
// CHECK-NEXT:    %0 = graph.permute_dims
// CHECK-NEXT:    %1 = graph.call_dps_library @openblas.sgemm_nn(%arg1, %0)
// CHECK-NEXT:    %2 = graph.call_dps_library @openblas.dgemm_nn(%arg0, %arg0)
func.func @types(%a: tensor<4x4xf64>, %b: tensor<4x4xf32>) -> (tensor<4x4xf64>, tensor<4x4xf32>) {
  %0 = "graph.permute_dims"(%b) {axes = array<i64: 0, 1>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "graph.matmul"(%b, %0) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = "graph.matmul"(%a, %a) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
  return %2, %1 : tensor<4x4xf64>, tensor<4x4xf32>
}

// Many rows are the library's, few are the compiler's; which they are is decided by the call,
// unless facts tell.
// WHEN-LABEL: func @few_or_many(
// WHEN:         %[[M:.*]] = arith.sitofp
// WHEN:         %[[C:.*]] = arith.cmpf(%[[M]], %{{.*}})
// WHEN:         scf.if(%[[C]])
// WHEN-NEXT:      graph.call_dps_library @openblas.sgemm_nt(%arg0, %arg1)
// WHEN-NEXT:      scf.yield
// WHEN-NEXT:    } {
// WHEN-NEXT:      graph.permute_dims(%arg1)
// WHEN-NEXT:      graph.matmul(%arg0
// WHEN:         graph.call_dps_library @openblas.sgemm_nn(%arg2
// WHEN-NEXT:    graph.matmul(%arg3
// WHEN-NEXT:    return

// PROVED-LABEL: func @few_or_many(
// PROVED-NEXT:    graph.permute_dims
// PROVED-NEXT:    graph.matmul
// PROVED-NEXT:    graph.call_dps_library
// PROVED-NEXT:    graph.matmul
func.func @few_or_many(%x: !x, %w: tensor<32x64xf32>, %z: tensor<8x?x64xf32, #graph.shape<[8, "p", 64]>>, %u: tensor<31x64xf32>, %v: tensor<64x32xf32>) -> (!y, tensor<8x?x32xf32, #graph.shape<[8, "p", 32]>>, tensor<31x32xf32>) attributes {graph.facts = ["p >= 4"]} {
  %t = "graph.permute_dims"(%w) {axes = array<i64: 1, 0>} : (tensor<32x64xf32>) -> tensor<64x32xf32>
  %0 = "graph.matmul"(%x, %t) : (!x, tensor<64x32xf32>) -> !y
  %1 = "graph.matmul"(%z, %v) : (tensor<8x?x64xf32, #graph.shape<[8, "p", 64]>>, tensor<64x32xf32>) -> tensor<8x?x32xf32, #graph.shape<[8, "p", 32]>>
  %2 = "graph.matmul"(%u, %v) : (tensor<31x64xf32>, tensor<64x32xf32>) -> tensor<31x32xf32>
  return %0, %1, %2 : !y, tensor<8x?x32xf32, #graph.shape<[8, "p", 32]>>, tensor<31x32xf32>
}

// All leading dims are rows.
// WHEN-LABEL: func @leading_dims(
// WHEN:         %[[A:.*]] = arith.sitofp
// WHEN:         %[[B:.*]] = arith.sitofp
// WHEN-NEXT:    arith.mulf(%[[A]], %[[B]])
// WHEN:         scf.if
func.func @leading_dims(%x: tensor<?x3x64xf32, #graph.shape<["n", 3, 64]>>, %v: tensor<64x32xf32>) -> tensor<?x3x32xf32, #graph.shape<["n", 3, 32]>> {
  %0 = "graph.matmul"(%x, %v) : (tensor<?x3x64xf32, #graph.shape<["n", 3, 64]>>, tensor<64x32xf32>) -> tensor<?x3x32xf32, #graph.shape<["n", 3, 32]>>
  return %0 : tensor<?x3x32xf32, #graph.shape<["n", 3, 32]>>
}
