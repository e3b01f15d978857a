// RUN: relax-opt %s --split-input-file --relax-reorder-permute-dims-after-concat --pretty | FileCheck %s

!a = tensor<?x8xf32, #graph.shape<["n", 8]>>
!b = tensor<?x8xf32, #graph.shape<["k", 8]>>
!at = tensor<8x?xf32, #graph.shape<[8, "n"]>>
!bt = tensor<8x?xf32, #graph.shape<[8, "k"]>>
!c = tensor<8x?xf32, #graph.shape<[8, "k + n"]>>

// CHECK-LABEL: func @transposed(
// CHECK-NEXT:    %0 = graph.concat(%arg0, %arg1) {axis=0 : i64} : tensor<k + n x 8 x f32>
// CHECK-NEXT:    %1 = graph.permute_dims(%0) {axes=array<i64: 1, 0>} : tensor<8 x k + n x f32>
// CHECK-NEXT:    return %1
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
func.func @transposed(%a: !a, %b: !b) -> !c {
  %0 = "graph.permute_dims"(%a) {axes = array<i64: 1, 0>} : (!a) -> !at
  %1 = "graph.permute_dims"(%b) {axes = array<i64: 1, 0>} : (!b) -> !bt
  %2 = "graph.concat"(%0, %1) {axis = -1 : i64, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!at, !bt) -> !c
  return %2 : !c
}

// One is not permuted; one has another use.
// CHECK-LABEL: func @negative_one(
// CHECK-NEXT:    graph.permute_dims
// CHECK-NEXT:    graph.concat
// CHECK-NEXT:    graph.permute_dims
// CHECK-NEXT:    graph.concat
func.func @negative_one(%a: !a, %b: !b, %c: !bt) -> (!c, !c, !bt) {
  %0 = "graph.permute_dims"(%a) {axes = array<i64: 1, 0>} : (!a) -> !at
  %1 = "graph.concat"(%0, %c) {axis = 1 : i64, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!at, !bt) -> !c
  %2 = "graph.permute_dims"(%b) {axes = array<i64: 1, 0>} : (!b) -> !bt
  %3 = "graph.concat"(%0, %2) {axis = 1 : i64, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!at, !bt) -> !c
  return %1, %3, %2 : !c, !c, !bt
}

// -----

#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!x = tensor<2x3x?xf32, #graph.shape<[2, 3, "n"]>>
!p = tensor<?x2x3xf32, #graph.shape<["n", 2, 3]>>
!c = tensor<?x4x3xf32, #graph.shape<["n", 4, 3]>>

// Three dims: axis 1 of the result is axis 0 of the operands. Other orders stay.
// CHECK-LABEL: func @three(
// CHECK-NEXT:    %0 = graph.concat(%arg0, %arg1) {axis=0 : i64} : tensor<4 x 3 x n x f32>
// CHECK-NEXT:    %1 = graph.permute_dims(%0) {axes=array<i64: 2, 0, 1>} : tensor<n x 4 x 3 x f32>
func.func @three(%x: !x, %y: !x) -> !c {
  %0 = "graph.permute_dims"(%x) {axes = array<i64: 2, 0, 1>} : (!x) -> !p
  %1 = "graph.permute_dims"(%y) {axes = array<i64: 2, 0, 1>} : (!x) -> !p
  %2 = "graph.concat"(%0, %1) {axis = 1 : i64, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!p, !p) -> !c
  return %2 : !c
}

// CHECK-LABEL: func @negative_orders(
// CHECK-COUNT-2: graph.permute_dims
// CHECK:       graph.concat
func.func @negative_orders(%x: tensor<3x3xf32>, %y: tensor<3x3xf32>) -> tensor<3x6xf32> {
  %0 = "graph.permute_dims"(%x) {axes = array<i64: 1, 0>} : (tensor<3x3xf32>) -> tensor<3x3xf32>
  %1 = "graph.permute_dims"(%y) {axes = array<i64: 0, 1>} : (tensor<3x3xf32>) -> tensor<3x3xf32>
  %2 = "graph.concat"(%0, %1) {axis = 1 : i64, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x6xf32>
  return %2 : tensor<3x6xf32>
}
