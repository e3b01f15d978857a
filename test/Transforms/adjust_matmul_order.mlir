// RUN: relax-opt %s --split-input-file --relax-adjust-matmul-order --pretty | FileCheck %s

!x = tensor<?x64xf32, #graph.shape<["m", 64]>>
!y = tensor<?x96xf32, #graph.shape<["m", 96]>>
!a = tensor<64x4xf32>
!b = tensor<4x96xf32>
!w = tensor<64x96xf32>

// Fewer for any m: 4*m*64 + 4*m*96 against 4*64*96 + m*64*96.
// CHECK-LABEL: func @low_rank(
// CHECK-NEXT:    %0 = graph.matmul(%arg0, %arg1) : tensor<m x 4 x f32>
// CHECK-NEXT:    %1 = graph.matmul(%0, %arg2) : tensor<m x 96 x f32>
// CHECK-NEXT:    return %1
func.func @low_rank(%x: !x, %a: !a, %b: !b) -> !y {
  %0 = "graph.matmul"(%a, %b) : (!a, !b) -> !w
  %1 = "graph.matmul"(%x, %0) : (!x, !w) -> !y
  return %1 : !y
}

// Through a transposition, and with a batch in front.
// CHECK-LABEL: func @transposed(
// CHECK-NEXT:    %0 = graph.permute_dims(%arg1) {axes=array<i64: 1, 0>} : tensor<64 x 4 x f32>
// CHECK-NEXT:    %1 = graph.matmul(%arg0, %0) : tensor<b x m x 4 x f32>
// CHECK-NEXT:    %2 = graph.permute_dims(%arg2) {axes=array<i64: 1, 0>} : tensor<4 x 96 x f32>
// CHECK-NEXT:    %3 = graph.matmul(%1, %2) : tensor<b x m x 96 x f32>
func.func @transposed(%x: tensor<?x?x64xf32, #graph.shape<["b", "m", 64]>>, %a: tensor<4x64xf32>, %b: tensor<96x4xf32>) -> tensor<?x?x96xf32, #graph.shape<["b", "m", 96]>> {
  %0 = "graph.matmul"(%b, %a) : (tensor<96x4xf32>, tensor<4x64xf32>) -> tensor<96x64xf32>
  %1 = "graph.permute_dims"(%0) {axes = array<i64: 1, 0>} : (tensor<96x64xf32>) -> !w
  %2 = "graph.matmul"(%x, %1) : (tensor<?x?x64xf32, #graph.shape<["b", "m", 64]>>, !w) -> tensor<?x?x96xf32, #graph.shape<["b", "m", 96]>>
  return %2 : tensor<?x?x96xf32, #graph.shape<["b", "m", 96]>>
}

// The other way: one column behind a product.
// CHECK-LABEL: func @column(
// CHECK-NEXT:    %0 = graph.matmul(%arg1, %arg2) : tensor<64 x 1 x f32>
// CHECK-NEXT:    %1 = graph.matmul(%arg0, %0) : tensor<m x 1 x f32>
func.func @column(%x: !x, %w: !w, %c: tensor<96x1xf32>) -> tensor<?x1xf32, #graph.shape<["m", 1]>> attributes {graph.facts = ["m >= 64"]} {
  %0 = "graph.matmul"(%x, %w) : (!x, !w) -> !y
  %1 = "graph.matmul"(%0, %c) : (!y, tensor<96x1xf32>) -> tensor<?x1xf32, #graph.shape<["m", 1]>>
  return %1 : tensor<?x1xf32, #graph.shape<["m", 1]>>
}

// -----

!x = tensor<?x64xf32, #graph.shape<["m", 64]>>
!y = tensor<?x96xf32, #graph.shape<["m", 96]>>
!a = tensor<64x?xf32, #graph.shape<[64, "r"]>>
!b = tensor<?x96xf32, #graph.shape<["r", 96]>>
!w = tensor<64x96xf32>

// Nothing is known of r.
// CHECK-LABEL: func @negative_unknown(
// CHECK-NEXT:    %0 = graph.matmul(%arg1, %arg2)
// CHECK-NEXT:    %1 = graph.matmul(%arg0, %0)
func.func @negative_unknown(%x: !x, %a: !a, %b: !b) -> !y {
  %0 = "graph.matmul"(%a, %b) : (!a, !b) -> !w
  %1 = "graph.matmul"(%x, %0) : (!x, !w) -> !y
  return %1 : !y
}

// A fact says enough.
// CHECK-LABEL: func @fact(
// CHECK-NEXT:    %0 = graph.matmul(%arg0, %arg1)
// CHECK-NEXT:    %1 = graph.matmul(%0, %arg2)
func.func @fact(%x: !x, %a: !a, %b: !b) -> !y attributes {graph.facts = ["r <= 16"]} {
  %0 = "graph.matmul"(%a, %b) : (!a, !b) -> !w
  %1 = "graph.matmul"(%x, %0) : (!x, !w) -> !y
  return %1 : !y
}

// What else uses the inner product needs it anyway.
// CHECK-LABEL: func @negative_used(
// CHECK-NEXT:    %0 = graph.matmul(%arg1, %arg2)
// CHECK-NEXT:    %1 = graph.matmul(%arg0, %0)
func.func @negative_used(%x: !x, %a: !a, %b: !b) -> (!y, !w) attributes {graph.facts = ["r <= 16"]} {
  %0 = "graph.matmul"(%a, %b) : (!a, !b) -> !w
  %1 = "graph.matmul"(%x, %0) : (!x, !w) -> !y
  return %1, %0 : !y, !w
}
