// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-lower-calls,relax-plan-memory' | FileCheck %s

// Four temporaries take two blocks in turn; what is returned stays a fresh allocation (paper Figure 10).
// CHECK-LABEL: func.func @ping_pong
func.func @ping_pong(%x: tensor<?x16xf32, #graph.shape<["n", 16]>>) -> tensor<?x16xf32, #graph.shape<["n", 16]>> {
  // CHECK: %[[ARENA:.*]] = "graph.alloc_storage"() {size = #graph.shape<["128*n"]>}
  // CHECK: "graph.alloc_tensor"(%[[ARENA]]) {offset = #graph.shape<[0]>
  // CHECK: "graph.alloc_tensor"(%[[ARENA]]) {offset = #graph.shape<["64*n"]>
  // CHECK: "graph.alloc_tensor"(%[[ARENA]]) {offset = #graph.shape<[0]>
  // CHECK: "graph.alloc_tensor"(%[[ARENA]]) {offset = #graph.shape<["64*n"]>
  // CHECK: "graph.alloc_tensor"() {
  %0 = "graph.exp"(%x) : (tensor<?x16xf32, #graph.shape<["n", 16]>>) -> tensor<?x16xf32, #graph.shape<["n", 16]>>
  %1 = "graph.cos"(%0) : (tensor<?x16xf32, #graph.shape<["n", 16]>>) -> tensor<?x16xf32, #graph.shape<["n", 16]>>
  %2 = "graph.exp"(%1) : (tensor<?x16xf32, #graph.shape<["n", 16]>>) -> tensor<?x16xf32, #graph.shape<["n", 16]>>
  %3 = "graph.cos"(%2) : (tensor<?x16xf32, #graph.shape<["n", 16]>>) -> tensor<?x16xf32, #graph.shape<["n", 16]>>
  %4 = "graph.exp"(%3) : (tensor<?x16xf32, #graph.shape<["n", 16]>>) -> tensor<?x16xf32, #graph.shape<["n", 16]>>
  return %4 : tensor<?x16xf32, #graph.shape<["n", 16]>>
}

// Neither size is proved to hold the other, so nothing is shared.
// CHECK-LABEL: func.func @negative_unrelated_symbols
func.func @negative_unrelated_symbols(%x: tensor<?x16xf32, #graph.shape<["n", 16]>>, %y: tensor<?x16xf32, #graph.shape<["m", 16]>>) -> (tensor<16xf32>, tensor<16xf32>) {
  // CHECK: size = #graph.shape<["64*m + 64*n"]>
  %0 = "graph.exp"(%x) : (tensor<?x16xf32, #graph.shape<["n", 16]>>) -> tensor<?x16xf32, #graph.shape<["n", 16]>>
  %1 = "graph.sum"(%0) {axes = array<i64: 0>, keepdims = false} : (tensor<?x16xf32, #graph.shape<["n", 16]>>) -> tensor<16xf32>
  %2 = "graph.exp"(%y) : (tensor<?x16xf32, #graph.shape<["m", 16]>>) -> tensor<?x16xf32, #graph.shape<["m", 16]>>
  %3 = "graph.sum"(%2) {axes = array<i64: 0>, keepdims = false} : (tensor<?x16xf32, #graph.shape<["m", 16]>>) -> tensor<16xf32>
  return %1, %3 : tensor<16xf32>, tensor<16xf32>
}

// A fact orders the sizes: the second tensor fits where the first one was.
// CHECK-LABEL: func.func @fact_allows_reuse
func.func @fact_allows_reuse(%x: tensor<?x16xf32, #graph.shape<["n", 16]>>, %y: tensor<?x16xf32, #graph.shape<["m", 16]>>) -> (tensor<16xf32>, tensor<16xf32>)
    attributes {graph.facts = ["m <= n"]} {
  // CHECK: size = #graph.shape<["64*n"]>
  %0 = "graph.exp"(%x) : (tensor<?x16xf32, #graph.shape<["n", 16]>>) -> tensor<?x16xf32, #graph.shape<["n", 16]>>
  %1 = "graph.sum"(%0) {axes = array<i64: 0>, keepdims = false} : (tensor<?x16xf32, #graph.shape<["n", 16]>>) -> tensor<16xf32>
  %2 = "graph.exp"(%y) : (tensor<?x16xf32, #graph.shape<["m", 16]>>) -> tensor<?x16xf32, #graph.shape<["m", 16]>>
  %3 = "graph.sum"(%2) {axes = array<i64: 0>, keepdims = false} : (tensor<?x16xf32, #graph.shape<["m", 16]>>) -> tensor<16xf32>
  return %1, %3 : tensor<16xf32>, tensor<16xf32>
}

// A block that is proved too small grows, since nobody uses it any more.
// CHECK-LABEL: func.func @grows
func.func @grows(%x: tensor<16xf32>, %y: tensor<64xf32>) -> (tensor<f32>, tensor<f32>) {
  // CHECK: size = #graph.shape<[256]>
  %0 = "graph.exp"(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %1 = "graph.sum"(%0) {axes = array<i64>, keepdims = false} : (tensor<16xf32>) -> tensor<f32>
  %2 = "graph.exp"(%y) : (tensor<64xf32>) -> tensor<64xf32>
  %3 = "graph.sum"(%2) {axes = array<i64>, keepdims = false} : (tensor<64xf32>) -> tensor<f32>
  return %1, %3 : tensor<f32>, tensor<f32>
}

// A view keeps its memory alive, so its block is not free at the second allocation.
// CHECK-LABEL: func.func @negative_view_keeps_alive
func.func @negative_view_keeps_alive(%x: tensor<16xf32>) -> tensor<4x4xf32> {
  // CHECK: size = #graph.shape<[128]>
  %0 = "graph.exp"(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %1 = "graph.reshape"(%0) {shape = #graph.shape<[4, 4]>} : (tensor<16xf32>) -> tensor<4x4xf32>
  %2 = "graph.cos"(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %3 = "graph.reshape"(%2) {shape = #graph.shape<[4, 4]>} : (tensor<16xf32>) -> tensor<4x4xf32>
  %4 = "graph.matmul"(%1, %3) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %4 : tensor<4x4xf32>
}
