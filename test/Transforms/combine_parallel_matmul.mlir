// RUN: relax-opt %s --split-input-file --relax-combine-parallel-matmul --pretty | FileCheck %s

!x = tensor<?x8xf32, #graph.shape<["m", 8]>>
!a = tensor<8x3xf32>
!b = tensor<8x?xf32, #graph.shape<[8, "q"]>>
!p = tensor<?x3xf32, #graph.shape<["m", 3]>>
!q = tensor<?x?xf32, #graph.shape<["m", "q"]>>

// One width is dynamic; what is used elsewhere is the product itself.
// CHECK-LABEL: func @plain(
// CHECK-NEXT:    %0 = graph.concat(%arg1, %arg2) {axis=1 : i64} : tensor<8 x q + 3 x f32>
// CHECK-NEXT:    %1 = graph.matmul(%arg0, %0) : tensor<m x q + 3 x f32>
// CHECK-NEXT:    %2, %3 = graph.split(%1) {{.*}} : tensor<m x 3 x f32>, tensor<m x q x f32>
// CHECK-NEXT:    %4 = graph.exp(%2)
// CHECK-NEXT:    return %2, %3, %4
func.func @plain(%x: !x, %a: !a, %b: !b) -> (!p, !q, !p) {
  %0 = "graph.matmul"(%x, %a) : (!x, !a) -> !p
  %1 = "graph.exp"(%0) : (!p) -> !p
  %2 = "graph.matmul"(%x, %b) : (!x, !b) -> !q
  return %0, %2, %1 : !p, !q, !p
}

// Vectors that are added are joined, and so is what follows each sum; weights that are transposed
// behind the first product move in front of it.
// CHECK-LABEL: func @branches(
// CHECK-NEXT:    %0 = graph.permute_dims(%arg2)
// CHECK-NEXT:    %1 = graph.concat(%arg1, %0) {axis=1 : i64} : tensor<8 x q + 3 x f32>
// CHECK-NEXT:    %2 = graph.matmul(%arg0, %1)
// CHECK-NEXT:    %3 = graph.concat(%arg3, %arg4) {axis=0 : i64} : tensor<q + 3 x f32>
// CHECK-NEXT:    %4 = graph.add(%2, %3)
// CHECK-NEXT:    %5 = graph.nn_silu(%4)
// CHECK-NEXT:    %6, %7 = graph.split(%5)
// CHECK-NEXT:    return %6, %7
func.func @branches(%x: !x, %a: !a, %b: tensor<?x8xf32, #graph.shape<["q", 8]>>, %u: tensor<3xf32>, %v: tensor<?xf32, #graph.shape<["q"]>>) -> (!p, !q) {
  %0 = "graph.matmul"(%x, %a) : (!x, !a) -> !p
  %1 = "graph.add"(%0, %u) : (!p, tensor<3xf32>) -> !p
  %2 = "graph.nn_silu"(%1) : (!p) -> !p
  %3 = "graph.permute_dims"(%b) {axes = array<i64: 1, 0>} : (tensor<?x8xf32, #graph.shape<["q", 8]>>) -> !b
  %4 = "graph.matmul"(%x, %3) : (!x, !b) -> !q
  %5 = "graph.add"(%v, %4) : (tensor<?xf32, #graph.shape<["q"]>>, !q) -> !q
  %6 = "graph.nn_silu"(%5) : (!q) -> !q
  return %2, %6 : !p, !q
}

// Another function follows each; a matrix is added to one.
// CHECK-LABEL: func @others(
// CHECK-NEXT:    graph.concat
// CHECK-NEXT:    graph.matmul
// CHECK-NEXT:    %2, %3 = graph.split
// CHECK-NEXT:    graph.nn_relu(%2)
// CHECK-NEXT:    graph.add(%3, %arg3)
func.func @others(%x: !x, %a: !a, %b: !b, %u: !q) -> (!p, !q) {
  %0 = "graph.matmul"(%x, %a) : (!x, !a) -> !p
  %1 = "graph.nn_relu"(%0) : (!p) -> !p
  %2 = "graph.matmul"(%x, %b) : (!x, !b) -> !q
  %3 = "graph.add"(%2, %u) : (!q, !q) -> !q
  return %1, %3 : !p, !q
}

// -----

!x = tensor<?x8xf32, #graph.shape<["m", 8]>>
!a = tensor<8x8xf32>

// The second product's weights are made of the first one; the third may join neither of another
// batch nor one with a length that is not known to be 8.
// CHECK-LABEL: func @negative_dependent(
// CHECK-COUNT-4: graph.matmul
// CHECK-NOT:     graph.split
func.func @negative_dependent(%x: !a, %a: !a, %t: tensor<2x8x8xf32>, %k: tensor<?x8xf32, #graph.shape<["k", 8]>>) -> (!a, !a, tensor<2x8x8xf32>, !a) {
  %0 = "graph.matmul"(%x, %a) : (!a, !a) -> !a
  %1 = "graph.matmul"(%x, %0) : (!a, !a) -> !a
  %2 = "graph.matmul"(%x, %t) : (!a, tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %3 = "graph.matmul"(%x, %k) : (!a, tensor<?x8xf32, #graph.shape<["k", 8]>>) -> !a
  return %0, %1, %2, %3 : !a, !a, tensor<2x8x8xf32>, !a
}

// Nine products are one of eight, and one.
// CHECK-LABEL: func @nine(
// CHECK-NEXT:    graph.concat{{.*}} : tensor<8 x 64 x f32>
// CHECK-NEXT:    graph.matmul{{.*}} : tensor<m x 64 x f32>
// CHECK-NEXT:    graph.split
// CHECK-NEXT:    graph.matmul{{.*}} : tensor<m x 8 x f32>
func.func @nine(%x: !x, %a: !a) -> (!x, !x, !x, !x, !x, !x, !x, !x, !x) {
  %0 = "graph.matmul"(%x, %a) : (!x, !a) -> !x
  %1 = "graph.matmul"(%x, %a) : (!x, !a) -> !x
  %2 = "graph.matmul"(%x, %a) : (!x, !a) -> !x
  %3 = "graph.matmul"(%x, %a) : (!x, !a) -> !x
  %4 = "graph.matmul"(%x, %a) : (!x, !a) -> !x
  %5 = "graph.matmul"(%x, %a) : (!x, !a) -> !x
  %6 = "graph.matmul"(%x, %a) : (!x, !a) -> !x
  %7 = "graph.matmul"(%x, %a) : (!x, !a) -> !x
  %8 = "graph.matmul"(%x, %a) : (!x, !a) -> !x
  return %0, %1, %2, %3, %4, %5, %6, %7, %8 : !x, !x, !x, !x, !x, !x, !x, !x, !x
}

// A batch on the left, and one on both sides.
// CHECK-LABEL: func @batches(
// CHECK-NEXT:    %0 = graph.concat(%arg1, %arg1) {axis=2 : i64} : tensor<b x 8 x 6 x f32>
// CHECK-NEXT:    %1 = graph.matmul(%arg0, %0) : tensor<b x 5 x 6 x f32>
// CHECK-NEXT:    %2, %3 = graph.split(%1) {axis=2 : i64
func.func @batches(%x: tensor<5x8xf32>, %t: tensor<?x8x3xf32, #graph.shape<["b", 8, 3]>>) -> (tensor<?x5x3xf32, #graph.shape<["b", 5, 3]>>, tensor<?x5x3xf32, #graph.shape<["b", 5, 3]>>) {
  %0 = "graph.matmul"(%x, %t) : (tensor<5x8xf32>, tensor<?x8x3xf32, #graph.shape<["b", 8, 3]>>) -> tensor<?x5x3xf32, #graph.shape<["b", 5, 3]>>
  %1 = "graph.matmul"(%x, %t) : (tensor<5x8xf32>, tensor<?x8x3xf32, #graph.shape<["b", 8, 3]>>) -> tensor<?x5x3xf32, #graph.shape<["b", 5, 3]>>
  return %0, %1 : tensor<?x5x3xf32, #graph.shape<["b", 5, 3]>>, tensor<?x5x3xf32, #graph.shape<["b", 5, 3]>>
}
