// RUN: relax-opt %s --relax-topological-sort='order=depth-first direction=from-outputs' --pretty | FileCheck %s
// RUN: relax-opt %s --relax-topological-sort='order=depth-first direction=from-inputs' --pretty | FileCheck %s --check-prefix=READY
// RUN: relax-opt %s --relax-topological-sort='order=breadth-first direction=from-inputs' --pretty | FileCheck %s --check-prefix=WAITED
// RUN: relax-opt %s --relax-topological-sort='order=breadth-first direction=from-outputs' --pretty | FileCheck %s --check-prefix=LATE

!n = tensor<?xf32, #graph.shape<["n"]>>

// CHECK-LABEL: func @two_branches(
// CHECK-NEXT:    graph.abs
// CHECK-NEXT:    graph.negative
// CHECK-NEXT:    graph.cos
// CHECK-NEXT:    graph.exp
// CHECK-NEXT:    graph.sin
// CHECK-NEXT:    graph.add
// READY-LABEL: func @two_branches(
// READY-NEXT:    graph.exp
// READY-NEXT:    graph.sin
// READY-NEXT:    graph.negative
// READY-NEXT:    graph.cos
// READY-NEXT:    graph.add
// READY-NEXT:    graph.abs
// WAITED-LABEL: func @two_branches(
// WAITED-NEXT:    graph.exp
// WAITED-NEXT:    graph.negative
// WAITED-NEXT:    graph.abs
// WAITED-NEXT:    graph.sin
// WAITED-NEXT:    graph.cos
// WAITED-NEXT:    graph.add
// LATE-LABEL: func @two_branches(
// LATE-NEXT:    graph.exp
// LATE-NEXT:    graph.negative
// LATE-NEXT:    graph.sin
// LATE-NEXT:    graph.cos
// LATE-NEXT:    graph.abs
// LATE-NEXT:    graph.add
func.func @two_branches(%x: !n) -> (!n, !n) {
  %0 = "graph.exp"(%x) : (!n) -> !n
  %1 = "graph.negative"(%x) : (!n) -> !n
  %2 = "graph.abs"(%x) : (!n) -> !n
  %3 = "graph.sin"(%0) : (!n) -> !n
  %4 = "graph.cos"(%1) : (!n) -> !n
  %5 = "graph.add"(%4, %3) : (!n, !n) -> !n
  return %5, %2 : !n, !n
}

// A cast may be refused: what is in front of it stays there, and what a branch uses before it.
// CHECK-LABEL: func @negative_cast(
// CHECK-NEXT:    graph.exp
// CHECK-NEXT:    graph.match_cast
// CHECK-NEXT:    graph.sin
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      graph.negative
// CHECK-NEXT:      graph.add
// CHECK:         graph.cos
func.func @negative_cast(%x: !n, %c: i1) -> (tensor<7xf32>, !n, !n) {
  %0 = "graph.exp"(%x) : (!n) -> !n
  %1 = "graph.match_cast"(%x) : (!n) -> tensor<7xf32>
  %2 = "graph.cos"(%x) : (!n) -> !n
  %3 = "graph.sin"(%0) : (!n) -> !n
  %4 = scf.if %c -> !n {
    %5 = "graph.negative"(%0) : (!n) -> !n
    %6 = "graph.add"(%5, %3) : (!n, !n) -> !n
    scf.yield %6 : !n
  } else {
    scf.yield %3 : !n
  }
  %7 = "graph.abs"(%2) : (!n) -> !n
  return %1, %4, %7 : tensor<7xf32>, !n, !n
}
