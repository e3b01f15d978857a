// RUN: relax-opt %s --relax-convert-to-dataflow | FileCheck %s
// RUN: relax-opt %s --relax-convert-to-dataflow='min-size=3' | FileCheck %s --check-prefix=THREE

!n = tensor<?xf32, #graph.shape<["n"]>>

// What is used behind a block is yielded; a cast ends one, and its own has a single op.
// CHECK-LABEL: func.func @main
// CHECK:         %[[ONE:.*]] = arith.constant
// CHECK-NEXT:    %[[OUT:.*]]:2 = scf.execute_region
// CHECK-NEXT:      %[[A:.*]] = "graph.exp"(%arg0)
// CHECK-NEXT:      %[[B:.*]] = "graph.add"(%[[A]], %[[ONE]])
// CHECK-NEXT:      %[[C:.*]] = "graph.sin"(%[[A]])
// CHECK-NEXT:      scf.yield %[[B]], %[[C]]
// CHECK-NEXT:    } {graph.dataflow}
// CHECK-NEXT:    %[[D:.*]] = "graph.match_cast"(%[[OUT]]#0)
// CHECK-NEXT:    %[[E:.*]] = "graph.abs"(%[[D]])
// CHECK-NEXT:    return %[[E]], %[[OUT]]#1
// THREE-LABEL: func.func @main
// THREE-COUNT-1: execute_region
func.func @main(%x: !n) -> (tensor<7xf32>, !n) {
  %0 = "graph.exp"(%x) : (!n) -> !n
  %one = arith.constant dense<1.0> : tensor<f32>
  %1 = "graph.add"(%0, %one) : (!n, tensor<f32>) -> !n
  %2 = "graph.sin"(%0) : (!n) -> !n
  %3 = "graph.match_cast"(%1) : (!n) -> tensor<7xf32>
  %4 = "graph.abs"(%3) : (tensor<7xf32>) -> tensor<7xf32>
  return %4, %2 : tensor<7xf32>, !n
}

// Branches are blocks of their own. What is a dataflow block stays one.
// CHECK-LABEL: func.func @branches
// CHECK:         scf.if
// CHECK-NEXT:      scf.execute_region
// CHECK-NEXT:        "graph.exp"
// CHECK-NEXT:        "graph.sin"
// CHECK:         } else {
// CHECK-NEXT:      scf.execute_region
// CHECK-NEXT:        "graph.cos"
// CHECK-NEXT:        "graph.abs"
// CHECK-NEXT:        scf.yield
// CHECK-NEXT:      } {graph.dataflow}
// THREE-LABEL: func.func @branches
// THREE-COUNT-1: execute_region
// THREE-NOT:     execute_region
func.func @branches(%x: !n, %c: i1) -> !n {
  %0 = scf.if %c -> !n {
    %1 = "graph.exp"(%x) : (!n) -> !n
    %2 = "graph.sin"(%1) : (!n) -> !n
    scf.yield %2 : !n
  } else {
    %1 = scf.execute_region -> !n no_inline {
      %2 = "graph.cos"(%x) : (!n) -> !n
      %3 = "graph.abs"(%2) : (!n) -> !n
      scf.yield %3 : !n
    } {graph.dataflow}
    scf.yield %1 : !n
  }
  return %0 : !n
}
