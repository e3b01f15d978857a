// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-lower-calls' --pretty | FileCheck %s --check-prefix=BEFORE
// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-lower-calls,relax-plan-memory,relax-check-memory-plan' --pretty | FileCheck %s
// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-lower-calls,relax-plan-memory{static=true},relax-check-memory-plan' --pretty | FileCheck %s --check-prefix=BOUNDED

// Four temporaries, (2, n), (n, 2), (n, 2) and (2, n), need two blocks, since their sizes are proved
// to be equal (paper Figure 10, Algorithm 3). An upper bound of n makes the plan one for all calls.

!wide = tensor<2x?xf32, #graph.shape<[2, "n"]>>
!tall = tensor<?x2xf32, #graph.shape<["n", 2]>>

// BEFORE-LABEL:  func @main(
// BEFORE-COUNT-5:  graph.alloc_tensor()
// BEFORE-NOT:      graph.alloc

// CHECK-LABEL: func @main(
// CHECK-NEXT:    %[[S:.*]] = graph.alloc_storage() {size=#graph.shape<["128*((n + 7) floordiv 8)"]>}
// CHECK:         graph.alloc_tensor(%[[S]]) {offset=#graph.shape<[0]>} : tensor<2 x n x f32>
// CHECK:         graph.alloc_tensor(%[[S]]) {offset=#graph.shape<["64*((n + 7) floordiv 8)"]>} : tensor<n x 2 x f32>
// CHECK:         graph.alloc_tensor(%[[S]]) {offset=#graph.shape<[0]>} : tensor<n x 2 x f32>
// CHECK:         graph.alloc_tensor(%[[S]]) {offset=#graph.shape<["64*((n + 7) floordiv 8)"]>} : tensor<2 x n x f32>
// CHECK:         %[[OUT:.*]] = graph.alloc_tensor() {{.*}} : tensor<2 x n x f32>
// CHECK:         return %[[OUT]]

// BOUNDED-LABEL: func @main(
// BOUNDED-NEXT:    %[[S:.*]] = graph.alloc_storage() {size=#graph.shape<[8192]>}
// BOUNDED:         graph.alloc_tensor(%[[S]]) {offset=#graph.shape<[0]>}
// BOUNDED:         graph.alloc_tensor(%[[S]]) {offset=#graph.shape<[4096]>}
func.func @main(%x: !wide) -> !wide attributes {graph.facts = ["n <= 512"]} {
  %0 = "graph.exp"(%x) : (!wide) -> !wide
  %1 = "graph.permute_dims"(%0) {axes = array<i64: 1, 0>} : (!wide) -> !tall
  %2 = "graph.nn_relu"(%1) : (!tall) -> !tall
  %3 = "graph.permute_dims"(%2) {axes = array<i64: 1, 0>} : (!tall) -> !wide
  %4 = "graph.log"(%3) : (!wide) -> !wide
  return %4 : !wide
}
