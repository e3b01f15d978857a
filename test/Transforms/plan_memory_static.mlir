// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-lower-calls,relax-plan-memory{static=true}' | FileCheck %s

!n  = tensor<2x?xf32, #graph.shape<[2, "n"]>>
!twice = tensor<?xf32, #graph.shape<["2*n"]>>
!mn = tensor<?x?xf32, #graph.shape<["m", "n"]>>

// An upper bound in the facts makes the plan one for all calls (paper Algorithm 3).
// CHECK-LABEL: func.func @bounded
func.func @bounded(%x: !n) -> !twice attributes {graph.facts = ["n <= 40"]} {
  // CHECK-NEXT: %[[STORAGE:.*]] = "graph.alloc_storage"() {size = #graph.shape<[640]>}
  // CHECK-NEXT: "graph.alloc_tensor"(%[[STORAGE]]) {offset = #graph.shape<[0]>
  // CHECK:      "graph.alloc_tensor"(%[[STORAGE]]) {offset = #graph.shape<[320]>
  // CHECK:      "graph.alloc_tensor"(%[[STORAGE]]) {offset = #graph.shape<[0]>
  // CHECK:      "graph.alloc_tensor"()
  %0 = "graph.exp"(%x) : (!n) -> !n
  %1 = "graph.reshape"(%0) {shape = #graph.shape<["2*n"]>} : (!n) -> !twice
  %2 = "graph.nn_relu"(%1) : (!twice) -> !twice
  %3 = "graph.exp"(%2) : (!twice) -> !twice
  %4 = "graph.log"(%3) : (!twice) -> !twice
  return %4 : !twice
}

// A size that is not bounded stays an expression.
// CHECK-LABEL: func.func @negative_partly_bounded
func.func @negative_partly_bounded(%x: !mn) -> !mn attributes {graph.facts = ["n <= 40"]} {
  // CHECK-NEXT: "graph.alloc_storage"() {size = #graph.shape<["64*((m*n + 15) floordiv 16)"]>}
  %0 = "graph.exp"(%x) : (!mn) -> !mn
  %1 = "graph.log"(%0) : (!mn) -> !mn
  return %1 : !mn
}

// A bound of a symbol that a cast binds holds behind the cast, where the tensor is: the storage is
// as large in any case.
// CHECK-LABEL: func.func @bounded_inside
func.func @bounded_inside(%x: tensor<?xf32>) -> tensor<16xf32> attributes {graph.facts = ["k <= 100"]} {
  // CHECK-NEXT: "graph.alloc_storage"() {size = #graph.shape<[448]>}
  // CHECK-NEXT: "graph.match_cast"
  %0 = "graph.match_cast"(%x) : (tensor<?xf32>) -> tensor<?xf32, #graph.shape<["k"]>>
  %1 = "graph.exp"(%0) : (tensor<?xf32, #graph.shape<["k"]>>) -> tensor<?xf32, #graph.shape<["k"]>>
  %2 = "graph.strided_slice"(%1) {axes = array<i64: 0>, begin = #graph.shape<[0]>, end = #graph.shape<[16]>, strides = array<i64: 1>} : (tensor<?xf32, #graph.shape<["k"]>>) -> tensor<16xf32>
  return %2 : tensor<16xf32>
}
