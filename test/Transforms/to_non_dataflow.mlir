// RUN: relax-opt %s --relax-to-non-dataflow --pretty | FileCheck %s

!n = tensor<?xf32, #graph.shape<["n"]>>

// CHECK-LABEL: func @nested(
// CHECK-NEXT:    %0 = graph.exp(%arg0)
// CHECK-NEXT:    %1 = graph.sin(%0)
// CHECK-NEXT:    %2 = graph.add(%1, %arg0)
// CHECK-NEXT:    return %2, %0
func.func @nested(%x: !n) -> (!n, !n) {
  %0, %1 = scf.execute_region -> (!n, !n) no_inline {
    %2 = "graph.exp"(%x) : (!n) -> !n
    %3 = scf.execute_region -> !n no_inline {
      %4 = "graph.sin"(%2) : (!n) -> !n
      scf.yield %4 : !n
    } {graph.dataflow}
    scf.yield %2, %3 : !n, !n
  } {graph.dataflow}
  %5 = "graph.add"(%1, %x) : (!n, !n) -> !n
  return %5, %0 : !n, !n
}

// What is no dataflow block stays.
// CHECK-LABEL: func @negative_region(
// CHECK-NEXT:    scf.execute_region
func.func @negative_region(%x: !n) -> !n {
  %0 = scf.execute_region -> !n no_inline {
    %1 = "graph.exp"(%x) : (!n) -> !n
    scf.yield %1 : !n
  }
  return %0 : !n
}

