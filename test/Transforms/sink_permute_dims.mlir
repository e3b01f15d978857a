// RUN: relax-opt %s --split-input-file --relax-sink-permute-dims --pretty | FileCheck %s

!x = tensor<?x3x?x5xf32, #graph.shape<["n", 3, "h", 5]>>
!t = tensor<?x?x5x3xf32, #graph.shape<["n", "h", 5, 3]>>
!b = tensor<?x?x5x3xi1, #graph.shape<["n", "h", 5, 3]>>

// What is added along the channels is reshaped; two permutations cancel.
// CHECK-LABEL: func @cancels(
// CHECK-NEXT:    %0 = graph.reshape(%arg1) {shape=#graph.shape<[1, 3, 1, 1]>}
// CHECK-NEXT:    %1 = graph.add(%arg0, %0) : tensor<n x 3 x h x 5 x f32>
// CHECK-NEXT:    %2 = graph.nn_relu(%1) : tensor<n x 3 x h x 5 x f32>
// CHECK-NEXT:    return %2
func.func @cancels(%x: !x, %bias: tensor<3xf32>) -> !x {
  %0 = "graph.permute_dims"(%x) {axes = array<i64: 0, 2, 3, 1>} : (!x) -> !t
  %1 = "graph.add"(%0, %bias) : (!t, tensor<3xf32>) -> !t
  %2 = "graph.nn_relu"(%1) : (!t) -> !t
  %3 = "graph.permute_dims"(%2) {axes = array<i64: 0, 3, 1, 2>} : (!t) -> !x
  return %3 : !x
}

// Both operands; the order of operands stays; one number needs no reshape.
// CHECK-LABEL: func @both(
// CHECK-NEXT:    %0 = constant
// CHECK-NEXT:    %1 = graph.subtract(%0, %arg0) : tensor<n x 3 x h x 5 x f32>
// CHECK-NEXT:    %2 = graph.less(%1, %arg1) : tensor<n x 3 x h x 5 x i1>
// CHECK-NEXT:    %3 = graph.permute_dims(%2) {axes=array<i64: 0, 2, 3, 1>} : tensor<n x h x 5 x 3 x i1>
// CHECK-NEXT:    return %3
func.func @both(%x: !x, %y: !x) -> !b {
  %one = arith.constant dense<1.0> : tensor<f32>
  %0 = "graph.permute_dims"(%x) {axes = array<i64: 0, 2, 3, 1>} : (!x) -> !t
  %1 = "graph.subtract"(%one, %0) : (tensor<f32>, !t) -> !t
  %2 = "graph.permute_dims"(%y) {axes = array<i64: 0, 2, 3, 1>} : (!x) -> !t
  %3 = "graph.less"(%1, %2) : (!t, !t) -> !b
  return %3 : !b
}

// -----

!x = tensor<?x?xf32, #graph.shape<["n", "m"]>>
!t = tensor<?x?xf32, #graph.shape<["m", "n"]>>

// What else uses a permutation, a matrix on the other side, and dims that may broadcast.
// CHECK-LABEL: func @negative_operands(
// CHECK-NEXT:    %0 = graph.permute_dims(%arg0)
// CHECK-NEXT:    %1 = graph.exp(%0)
// CHECK-NEXT:    %2 = graph.permute_dims(%arg1)
// CHECK-NEXT:    %3 = graph.add(%2, %0)
// CHECK-NEXT:    %4 = graph.permute_dims(%arg0)
// CHECK-NEXT:    %5 = graph.add(%4, %arg2)
func.func @negative_operands(%x: !x, %y: tensor<?x?xf32, #graph.shape<["n", "m"]>>, %v: tensor<?xf32, #graph.shape<["k"]>>) -> (!t, !t, tensor<?x?xf32>) {
  %0 = "graph.permute_dims"(%x) {axes = array<i64: 1, 0>} : (!x) -> !t
  %1 = "graph.exp"(%0) : (!t) -> !t
  %2 = "graph.permute_dims"(%y) {axes = array<i64: 1, 0>} : (!x) -> !t
  %3 = "graph.add"(%2, %0) : (!t, !t) -> !t
  %4 = "graph.permute_dims"(%x) {axes = array<i64: 1, 0>} : (!x) -> !t
  %5 = "graph.add"(%4, %v) : (!t, tensor<?xf32, #graph.shape<["k"]>>) -> tensor<?x?xf32>
  return %1, %3, %5 : !t, !t, tensor<?x?xf32>
}
