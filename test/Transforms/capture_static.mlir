// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-capture-static' --pretty | FileCheck %s
// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-capture-static{symbols=n}' --pretty | FileCheck %s --check-prefix=KEYED
// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-capture-static{symbols=n max-size=2}' --pretty | FileCheck %s --check-prefix=SHORT
// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-capture-static{symbols=n,m},relax-lower-calls,relax-plan-memory' --check-equivalent-after-each | FileCheck %s --check-prefix=PLANNED
// RUN: exits 2 relax-opt %s --pass-pipeline='relax-capture-static{min-size=3 max-size=2}' 2>&1 | FileCheck %s --check-prefix=SIZES
// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-capture-static{symbols=n,m},relax-lower-calls,relax-plan-memory{static=true}' | FileCheck %s --check-prefix=BOUNDED
// SIZES: expects 1 <= min-size <= max-size, but got 3 and 2
// PLANNED: graph.captured

!x = tensor<?x4xf32, #graph.shape<["n", 4]>>
!w = tensor<4x4xf32>

// Two equal layers are one function, after what depends on n.
// CHECK-LABEL: func @static(
// CHECK-NEXT:    %0 = graph.call_tir @exp(%arg0)
// CHECK-NEXT:    %1 = graph.call @captured(%arg1)
// CHECK-NEXT:    %2 = graph.match_cast(%1)
// CHECK-NEXT:    %3 = graph.call @captured(%2)
// CHECK-NEXT:    return %0, %3

// With n, the call that depends on it is part of the first run, which returns two results.
// KEYED-LABEL: func @static(
// KEYED-NEXT:    %0, %1 = graph.call @captured(%arg0, %arg1)
// KEYED-NEXT:    %2 = graph.match_cast(%1)
// KEYED-NEXT:    %3 = graph.call @captured_1(%2)
// KEYED-NEXT:    return %0, %3

// SHORT-LABEL: func @static(
// SHORT-NEXT:    %0, %1 = graph.call @captured(%arg0, %arg1)
// SHORT-NEXT:    %2 = graph.call_tir @relu(%1)
// SHORT-NEXT:    %3 = graph.match_cast(%2)
// SHORT-NEXT:    %4 = graph.call @captured_1(%3)
// SHORT-NEXT:    return %0, %4
func.func @static(%x: !x, %w: !w) -> (!x, !w) {
  %0 = "graph.exp"(%x) : (!x) -> !x
  %1 = "graph.matmul"(%w, %w) : (!w, !w) -> !w
  %2 = "graph.nn_relu"(%1) : (!w) -> !w
  %c = "graph.match_cast"(%2) : (!w) -> !w
  %3 = "graph.matmul"(%c, %c) : (!w, !w) -> !w
  %4 = "graph.nn_relu"(%3) : (!w) -> !w
  return %0, %4 : !x, !w
}

// A symbol that no operand binds is passed; regions are looked into; m was not asked for.
// KEYED-LABEL: func @regions(
// KEYED:         scf.if
// KEYED:           graph.call @captured_2(%arg0, %{{[0-9]+}}) : tensor<n x 4 x f32>
// KEYED:         } {
// KEYED:           graph.call_tir @neg
// KEYED:           graph.call_tir @exp
func.func @regions(%x: tensor<4xf32>, %y: !x, %z: tensor<?xf32, #graph.shape<["m"]>>, %c: i1) -> (!x, tensor<?xf32, #graph.shape<["m"]>>) {
  %r:2 = scf.if %c -> (!x, tensor<?xf32, #graph.shape<["m"]>>) {
    %0 = "graph.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = "graph.broadcast_to"(%0) {shape = #graph.shape<["n", 4]>} : (tensor<4xf32>) -> !x
    scf.yield %1, %z : !x, tensor<?xf32, #graph.shape<["m"]>>
  } else {
    %0 = "graph.negative"(%z) : (tensor<?xf32, #graph.shape<["m"]>>) -> tensor<?xf32, #graph.shape<["m"]>>
    %1 = "graph.exp"(%0) : (tensor<?xf32, #graph.shape<["m"]>>) -> tensor<?xf32, #graph.shape<["m"]>>
    scf.yield %y, %1 : !x, tensor<?xf32, #graph.shape<["m"]>>
  }
  return %r#0, %r#1 : !x, tensor<?xf32, #graph.shape<["m"]>>
}

// CHECK: func private @captured({{.*}} {graph.captured=[], graph.noinline}
// KEYED: func private @captured({{.*}} {graph.captured=["n"], graph.noinline}

// What bounds the caller's sizes bounds those of the run, whose storage is of a constant size.
// BOUNDED-LABEL: func.func private @captured_4
// BOUNDED-SAME:    graph.facts = ["n <= 8"]
// BOUNDED-NEXT:    "graph.alloc_storage"() {size = #graph.shape<[256]>}
func.func @bounded(%x: !x) -> !x attributes {graph.facts = ["n <= 8"]} {
  %0 = "graph.exp"(%x) : (!x) -> !x
  %1 = "graph.nn_softmax"(%0) {axis = 0 : i64} : (!x) -> !x
  %2 = "graph.exp"(%1) : (!x) -> !x
  return %2 : !x
}
