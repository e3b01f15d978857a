// RUN: relax-opt %s --pass-pipeline="builtin.module(relax-legalize-ops,relax-schedule{target=x86-64-v4})" | FileCheck %s

!x = tensor<?xf32, #graph.shape<["n"]>>
!i = tensor<?xi64, #graph.shape<["n"]>>
!rows = tensor<?x?xf32, #graph.shape<["m", "n"]>>
!first = tensor<?x20xf32, #graph.shape<["m", 20]>>
!places = tensor<?x20xi64, #graph.shape<["m", 20]>>

// Chunks by digits, two rounds of merging for eight of them, and the last round.
// CHECK-LABEL: func.func private @sort(
// CHECK:         scf.parallel
// CHECK:           arith.shrui
// CHECK:         scf.parallel
// CHECK:           scf.while
// CHECK:         scf.parallel
// CHECK:           scf.while
// CHECK:         scf.parallel
// CHECK:           scf.while
func.func @line(%x: !x) -> (!x, !i) {
  %y, %i = "graph.sort"(%x) {axis = 0 : i64, descending = false} : (!x) -> (!x, !i)
  return %y, %i : !x, !i
}

// Short rows by networks of minima and maxima: of keys, where nobody asks for positions.
// CHECK-LABEL: func.func private @sort_1(
// CHECK:         scf.parallel
// CHECK:           arith.minui %{{.*}} : i32
// CHECK:           arith.maxui %{{.*}} : i32
func.func @rows(%x: !rows) -> !rows {
  %y, %i = "graph.sort"(%x) {axis = 1 : i64, descending = true} : (!rows) -> (!rows, tensor<?x?xi64, #graph.shape<["m", "n"]>>)
  return %y : !rows
}

// The first ones are selected: elements that go before the bound are kept, and sorted by digits.
// CHECK-LABEL: func.func private @topk(
// CHECK:         scf.parallel
// CHECK:           arith.cmpf ogt
// CHECK:           scf.if
// CHECK:             arith.shrui
func.func @first(%x: !rows) -> (!first, !places) {
  %y, %i = "graph.topk"(%x) {k = #graph.shape<[20]>, axis = 1 : i64, largest = true} : (!rows) -> (!first, !places)
  return %y, %i : !first, !places
}

// With positions, records of both are 64 bits wide.
// CHECK-LABEL: func.func private @sort_2(
// CHECK:           arith.minui %{{.*}} : i64
// CHECK:           arith.maxui %{{.*}} : i64
func.func @rows_and_positions(%x: !rows) -> (!rows, tensor<?x?xi64, #graph.shape<["m", "n"]>>) {
  %y, %i = "graph.sort"(%x) {axis = 1 : i64, descending = true} : (!rows) -> (!rows, tensor<?x?xi64, #graph.shape<["m", "n"]>>)
  return %y, %i : !rows, tensor<?x?xi64, #graph.shape<["m", "n"]>>
}
