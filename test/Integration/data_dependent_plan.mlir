// RUN: relax-opt %s --pass-pipeline='relax-name-dims,relax-expand-data-dependent,relax-canonicalize-bindings,relax-state-assumptions,relax-legalize-ops,relax-lower-calls,relax-plan-memory{static=true}' --pretty | FileCheck %s

// There are at most as many indices as elements, so that what is bounded for the elements is for what
// is found among them: one storage of the same size in each call.

!x = tensor<?xf32, #graph.shape<["n"]>>
!m = tensor<?xf32, #graph.shape<["m"]>>

// CHECK-LABEL: func @main(
// CHECK:         %[[STORAGE:.*]] = graph.alloc_storage() {size=#graph.shape<[24576]>}
// CHECK-NOT:     graph.alloc_storage
// CHECK:         graph.require nonzero <= n  by graph.nonzero
// CHECK:         graph.alloc_tensor(%[[STORAGE]]) {{.*}} : tensor<1 x nonzero x i64>
// CHECK:         graph.alloc_tensor(%[[STORAGE]]) {{.*}} : tensor<nonzero x f32>
func.func @main(%x: !x) -> tensor<f32> attributes {graph.facts = ["n <= 2048"]} {
  %0 = "graph.nonzero"(%x) : (!x) -> tensor<1x?xi64>
  %1 = "graph.squeeze"(%0) {axes = array<i64: 0>} : (tensor<1x?xi64>) -> tensor<?xi64>
  %2 = "graph.take"(%x, %1) {axis = 0 : i64} : (!x, tensor<?xi64>) -> tensor<?xf32>
  %3 = "graph.match_cast"(%2) : (tensor<?xf32>) -> !m
  %4 = "graph.exp"(%3) : (!m) -> !m
  %5 = "graph.sum"(%4) {axes = array<i64: 0>, keepdims = false} : (!m) -> tensor<f32>
  return %5 : tensor<f32>
}
