// RUN: relax-opt %s --split-input-file --relax-expand-matmul-of-sum --pretty | FileCheck %s

!x = tensor<?x64xf32, #graph.shape<["m", 64]>>
!y = tensor<?x96xf32, #graph.shape<["m", 96]>>
!w = tensor<64x96xf32>

// CHECK-LABEL: func @sum(
// CHECK-NEXT:    %0 = graph.matmul(%arg0, %arg1)
// CHECK-NEXT:    %1 = graph.matmul(%arg0, %arg2)
// CHECK-NEXT:    %2 = graph.add(%0, %1)
// CHECK-NEXT:    return %2
func.func @sum(%x: !x, %w: !w, %d: !w) -> !y {
  %0 = "graph.add"(%w, %d) : (!w, !w) -> !w
  %1 = "graph.matmul"(%x, %0) : (!x, !w) -> !y
  return %1 : !y
}

// CHECK-LABEL: func @transposed(
// CHECK-NEXT:    %0 = graph.permute_dims(%arg1)
// CHECK-NEXT:    %1 = graph.permute_dims(%arg2)
// CHECK-NEXT:    %2 = graph.matmul(%arg0, %0)
// CHECK-NEXT:    %3 = graph.matmul(%arg0, %1)
// CHECK-NEXT:    %4 = graph.add(%2, %3)
func.func @transposed(%x: !x, %w: tensor<96x64xf32>, %d: tensor<96x64xf32>) -> !y {
  %0 = "graph.add"(%w, %d) : (tensor<96x64xf32>, tensor<96x64xf32>) -> tensor<96x64xf32>
  %1 = "graph.permute_dims"(%0) {axes = array<i64: 1, 0>} : (tensor<96x64xf32>) -> !w
  %2 = "graph.matmul"(%x, %1) : (!x, !w) -> !y
  return %2 : !y
}

// A part that is repeated is no matrix, and a sum with another use is needed anyway.
// CHECK-LABEL: func @negative_broadcast(
// CHECK-NEXT:    %0 = graph.add(%arg1, %arg2)
// CHECK-NEXT:    %1 = graph.matmul(%arg0, %0)
// CHECK-NEXT:    %2 = graph.add(%arg1, %arg1)
// CHECK-NEXT:    %3 = graph.matmul(%arg0, %2)
func.func @negative_broadcast(%x: !x, %w: !w, %d: tensor<96xf32>) -> (!y, !y, !w) {
  %0 = "graph.add"(%w, %d) : (!w, tensor<96xf32>) -> !w
  %1 = "graph.matmul"(%x, %0) : (!x, !w) -> !y
  %2 = "graph.add"(%w, %w) : (!w, !w) -> !w
  %3 = "graph.matmul"(%x, %2) : (!x, !w) -> !y
  return %1, %3, %2 : !y, !y, !w
}
