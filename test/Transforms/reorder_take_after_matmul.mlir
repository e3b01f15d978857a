// RUN: relax-opt %s --relax-reorder-take-after-matmul --pretty | FileCheck %s

!x = tensor<?x4xf32, #graph.shape<["m", 4]>>
!w = tensor<4x9xf32>
!i = tensor<?xi32, #graph.shape<["k"]>>
!p = tensor<4x?xf32, #graph.shape<[4, "k"]>>
!y = tensor<?x?xf32, #graph.shape<["m", "k"]>>

// CHECK-LABEL: func @columns(
// CHECK-NEXT:    %0 = graph.matmul(%arg0, %arg1) : tensor<m x 9 x f32>
// CHECK-NEXT:    %1 = graph.take(%0, %arg2) {axis=1 : i64} : tensor<m x k x f32>
// CHECK-NEXT:    return %1
func.func @columns(%x: !x, %w: !w, %i: !i) -> !y {
  %0 = "graph.take"(%w, %i) {axis = 1 : i64} : (!w, !i) -> !p
  %1 = "graph.matmul"(%x, %0) : (!x, !p) -> !y
  return %1 : !y
}

// Rows, under a batch of the right side.
// CHECK-LABEL: func @rows(
// CHECK-NEXT:    %0 = graph.matmul(%arg0, %arg1) : tensor<b x 7 x 9 x f32>
// CHECK-NEXT:    %1 = graph.take(%0, %arg2) {axis=1 : i64} : tensor<b x k x 9 x f32>
func.func @rows(%t: tensor<7x4xf32>, %w: tensor<?x4x9xf32, #graph.shape<["b", 4, 9]>>, %i: !i) -> tensor<?x?x9xf32, #graph.shape<["b", "k", 9]>> {
  %0 = "graph.take"(%t, %i) {axis = -2 : i64} : (tensor<7x4xf32>, !i) -> tensor<?x4xf32, #graph.shape<["k", 4]>>
  %1 = "graph.matmul"(%0, %w) : (tensor<?x4xf32, #graph.shape<["k", 4]>>, tensor<?x4x9xf32, #graph.shape<["b", 4, 9]>>) -> tensor<?x?x9xf32, #graph.shape<["b", "k", 9]>>
  return %1 : tensor<?x?x9xf32, #graph.shape<["b", "k", 9]>>
}

// Along the sum, and of a table of matrices: these stay.
// CHECK-LABEL: func @negative_axes(
// CHECK-NEXT:    graph.take
// CHECK-NEXT:    graph.matmul
// CHECK-NEXT:    graph.take
// CHECK-NEXT:    graph.matmul
func.func @negative_axes(%x: !x, %w: !w, %i: tensor<4xi32>, %t: tensor<5x4x9xf32>, %z: tensor<4x3x4xf32>) -> (tensor<?x9xf32, #graph.shape<["m", 9]>>, tensor<4x3x9xf32>) {
  %0 = "graph.take"(%w, %i) {axis = 0 : i64} : (!w, tensor<4xi32>) -> !w
  %1 = "graph.matmul"(%x, %0) : (!x, !w) -> tensor<?x9xf32, #graph.shape<["m", 9]>>
  %2 = "graph.take"(%t, %i) {axis = 0 : i64} : (tensor<5x4x9xf32>, tensor<4xi32>) -> tensor<4x4x9xf32>
  %3 = "graph.matmul"(%z, %2) : (tensor<4x3x4xf32>, tensor<4x4x9xf32>) -> tensor<4x3x9xf32>
  return %1, %3 : tensor<?x9xf32, #graph.shape<["m", 9]>>, tensor<4x3x9xf32>
}
