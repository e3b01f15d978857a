// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,relax-pack-weights{target=aarch64 parameters=false},relax-pack-filters{target=aarch64 parameters=false},symbol-dce' | FileCheck %s
// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,relax-pack-weights{target=aarch64},relax-pack-filters{target=aarch64},symbol-dce' | FileCheck %s --check-prefix=ALL

!x2 = tensor<?x2xf32, #graph.shape<["n", 2]>>
!x3 = tensor<?x3xf32, #graph.shape<["n", 3]>>

// A constant [k, n] becomes a panel of 8 columns, filled up with zeros; nothing is computed later.
// CHECK-LABEL: func.func @constant(
// CHECK-NOT:     tensor<2x3xf32>
// CHECK:         %[[P:.*]] = arith.constant dense<{{\[\[\[}}1.000000e+00, 2.000000e+00, 3.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00], [4.000000e+00, 5.000000e+00, 6.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00{{\]\]\]}}> : tensor<1x2x8xf32>
// CHECK-NOT:     pack_weights
// CHECK:         "graph.call_tir"(%{{.*}}, %[[P]]) {callee = @matmul{{[_0-9]*}}_packed,
func.func @constant(%x: !x2) -> !x3 {
  %w = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %0 = "graph.matmul"(%x, %w) : (!x2, tensor<2x3xf32>) -> !x3
  return %0 : !x3
}

// So does its transpose [n, k].
// CHECK-LABEL: func.func @turned(
// CHECK:         arith.constant dense<{{\[\[\[}}1.000000e+00, 2.000000e+00, 3.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00], [4.000000e+00, 5.000000e+00, 6.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00{{\]\]\]}}> : tensor<1x2x8xf32>
// CHECK:         callee = @fused_permute_dims_matmul_packed
func.func @turned(%x: !x2) -> !x3 {
  %w = arith.constant dense<[[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]> : tensor<3x2xf32>
  %t = "graph.permute_dims"(%w) {axes = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %0 = "graph.matmul"(%x, %t) : (!x2, tensor<2x3xf32>) -> !x3
  return %0 : !x3
}

// A table that is looked up too is kept in panels only.
// CHECK-LABEL: func.func @tied(
// CHECK-NOT:     tensor<3x2xf32>
// CHECK:         %[[P:.*]] = arith.constant {{.*}} : tensor<1x2x8xf32>
// CHECK-NOT:     tensor<3x2xf32>
// CHECK:         %[[X:.*]] = "graph.call_tir"(%[[P]], %{{.*}}) {callee = @take_packed,
// CHECK:         "graph.call_tir"(%[[P]], %[[X]]) {callee = @fused_permute_dims_matmul_packed
func.func @tied(%ids: tensor<?xi32, #graph.shape<["n"]>>) -> !x3 {
  %w = arith.constant dense<[[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]> : tensor<3x2xf32>
  %x = "graph.take"(%w, %ids) {axis = 0 : i64} : (tensor<3x2xf32>, tensor<?xi32, #graph.shape<["n"]>>) -> !x2
  %t = "graph.permute_dims"(%w) {axes = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %0 = "graph.matmul"(%x, %t) : (!x2, tensor<2x3xf32>) -> !x3
  return %0 : !x3
}

// One that is a result as well stays as it is, beside its panels.
// CHECK-LABEL: func.func @result_too(
// CHECK:         %[[W:.*]] = arith.constant {{.*}} : tensor<2x3xf32>
// CHECK:         %[[P:.*]] = arith.constant {{.*}} : tensor<1x2x8xf32>
// CHECK:         %[[Y:.*]] = "graph.call_tir"(%{{.*}}, %[[P]])
// CHECK:         return %[[Y]], %[[W]]
func.func @result_too(%x: !x2) -> (!x3, tensor<2x3xf32>) {
  %w = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %0 = "graph.matmul"(%x, %w) : (!x2, tensor<2x3xf32>) -> !x3
  return %0, %w : !x3, tensor<2x3xf32>
}

// Filters [1, 1, 1, 2] become a panel of 8: columns, rows, channels, filters.
// CHECK-LABEL: func.func @filters(
// CHECK:         %[[P:.*]] = arith.constant dense<{{\[\[\[\[\[}}3.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00{{\]\]\]}}, {{\[\[\[}}4.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00{{\]\]\]\]\]}}> : tensor<1x2x1x1x8xf32>
// CHECK-NOT:     tensor<1x1x1x2xf32>
// CHECK:         "graph.call_tir"(%{{.*}}, %[[P]]) {callee = @conv2d_packed,
func.func @filters(%x: tensor<1x1x4x4xf32>) -> tensor<1x1x4x3xf32> {
  %w = arith.constant dense<[[[[3.0, 4.0]]]]> : tensor<1x1x1x2xf32>
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x1x4x4xf32>, tensor<1x1x1x2xf32>) -> tensor<1x1x4x3xf32>
  return %0 : tensor<1x1x4x3xf32>
}

// So does one that is reshaped before.
// CHECK-LABEL: func.func @reshaped(
// CHECK-NOT:     tensor<2x3x1xf32>
// CHECK:         %[[P:.*]] = arith.constant dense<{{.*}}1.000000e+00, 2.000000e+00, 3.000000e+00, 0.{{.*}}> : tensor<1x2x8xf32>
// CHECK-NEXT:    "graph.call_tir"(%{{.*}}, %[[P]]) {callee = @matmul{{[_0-9]*}}_packed,
func.func @reshaped(%x: !x2) -> !x3 {
  %w = arith.constant dense<[[[1.0], [2.0], [3.0]], [[4.0], [5.0], [6.0]]]> : tensor<2x3x1xf32>
  %m = "graph.reshape"(%w) {shape = #graph.shape<[2, 3]>} : (tensor<2x3x1xf32>) -> tensor<2x3xf32>
  %0 = "graph.matmul"(%x, %m) : (!x2, tensor<2x3xf32>) -> !x3
  return %0 : !x3
}

// Arguments are packed if the pipeline wants new signatures.
// CHECK-LABEL: func.func @negative_parameter(
// CHECK-NOT:     packed
// CHECK:         return
// ALL-LABEL:   func.func @negative_parameter(
// ALL:           callee = @pack_weights
// ALL:           return
func.func @negative_parameter(%x: !x2, %w: tensor<2x3xf32>) -> !x3 attributes {graph.num_inputs = 1 : i64} {
  %0 = "graph.matmul"(%x, %w) : (!x2, tensor<2x3xf32>) -> !x3
  return %0 : !x3
}

// What repeats one element takes no memory, and panels would.
// CHECK-LABEL: func.func @negative_splat(
// CHECK-NOT:     packed
// CHECK:         return
func.func @negative_splat(%x: !x2) -> !x3 {
  %w = arith.constant dense<2.0> : tensor<2x3xf32>
  %0 = "graph.matmul"(%x, %w) : (!x2, tensor<2x3xf32>) -> !x3
  return %0 : !x3
}
