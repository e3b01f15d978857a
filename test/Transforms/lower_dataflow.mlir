// RUN: relax-opt %s --relax-lower-dataflow | FileCheck %s
// RUN: relax-opt %s --relax-lower-dataflow --relax-annotate-pattern --relax-fuse-ops --relax-fuse-tir | FileCheck %s --check-prefix=FUSED

#in0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!n = tensor<?xf32, #graph.shape<["n"]>>
!m = tensor<?xf32, #graph.shape<["m"]>>
!k = tensor<?xf32, #graph.shape<["k"]>>
!nm = tensor<?x?xf32, #graph.shape<["n", "m"]>>

// A chain of edges one-to-one, over equal grids: "4*n" is "n*4".
// CHECK-LABEL: func.func @chain
// CHECK:         %[[Y:.*]] = "graph.call_tir"(%{{.*}}) {callee = @twice_node,
// CHECK:         "graph.call_tir"(%[[Y]]) {callee = @twice_node,
// FUSED-LABEL: func.func @chain
// FUSED:         graph.call_tir
// FUSED-NOT:     graph.call_tir
!q = tensor<?xf32, #graph.shape<["4*n"]>>
func.func private @twice(%x: f32) -> f32 attributes {tir.leaf} {
  %0 = arith.addf %x, %x : f32
  return %0 : f32
}
func.func @chain(%x: !q) -> !q {
  %0 = "graph.node"(%x) {callee = @twice, grid = #graph.shape<["4*n"]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!q) -> !q
  %1 = "graph.node"(%0) {callee = @twice, grid = #graph.shape<["n*4"]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!q) -> !q
  return %1 : !q
}

// The second node reads all of the first: two kernels.
// CHECK-LABEL: func.func @barrier
// CHECK-COUNT-2: graph.call_tir
// FUSED-LABEL: func.func @barrier
// FUSED-COUNT-2: graph.call_tir
func.func private @reversed(%x: !k) -> f32 attributes {tir.leaf} {
  %i = "tir.node_id"() {level = 0 : i64, dim = 0 : i64} : () -> index
  %n = "tir.grid_size"() {level = 0 : i64, dim = 0 : i64} : () -> index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %last = arith.subi %n, %one : index
  %j = arith.subi %last, %i : index
  %0 = tensor.extract %x[%j] : !k
  %1 = scf.for %l = %zero to %n step %one iter_args(%sum = %0) -> f32 {
    %2 = tensor.extract %x[%l] : !k
    %3 = arith.addf %sum, %2 : f32
    scf.yield %3 : f32
  }
  return %1 : f32
}
func.func @barrier(%x: !n) -> !n {
  %0 = "graph.node"(%x) {callee = @twice, grid = #graph.shape<["n"]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  %1 = "graph.node"(%0) {callee = @reversed, grid = #graph.shape<["n"]>, edges = ["all_to_all"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  return %1 : !n
}

// An internal node is a longer grid.
// CHECK-LABEL: func.func @hierarchy
// CHECK:         "graph.call_tir"(%{{.*}}) {{.*}} : (tensor<?x4xf32, #graph.shape<["n", 4]>>) -> tensor<?x4xf32, #graph.shape<["n", 4]>>
!n4 = tensor<?x4xf32, #graph.shape<["n", 4]>>
func.func private @tile(%x: tensor<4xf32>) -> tensor<4xf32> attributes {graph.internal_node} {
  %0 = "graph.node"(%x) {callee = @twice, grid = #graph.shape<[4]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @hierarchy(%x: !n4) -> !n4 {
  %0 = "graph.node"(%x) {callee = @tile, grid = #graph.shape<["n"]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n4) -> !n4
  return %0 : !n4
}

// An index that is not proved to be inside is clamped; terms of a loop are added to its start.
// CHECK-LABEL: func.func private @reversed_node
// CHECK:         %[[SUMS:.*]] = linalg.generic {{{.*}}iterator_types = ["parallel", "reduction"]}
// CHECK:         linalg.generic {{{.*}}iterator_types = ["parallel"]} ins(%[[SUMS]]
// CHECK:         ^bb0(%[[SUM:[a-z0-9_]*]]: f32
// CHECK:         %[[LAST:.*]] = arith.minsi
// CHECK:         %[[AT:.*]] = arith.maxsi %[[LAST]]
// CHECK:         %[[START:.*]] = tensor.extract %{{.*}}[%[[AT]]]
// CHECK:         arith.addf %[[START]], %[[SUM]]

// A loop that sums is a reduction over one more axis, of elements that need no index.
// CHECK-LABEL: func.func private @element_node
// CHECK:         %[[ZERO:.*]] = linalg.fill
// CHECK:         linalg.generic {{{.*}}iterator_types = ["parallel", "parallel", "reduction"]}
// CHECK-SAME:      ins(%{{.*}}, %{{.*}} : tensor<?x?xf32>, tensor<?x?xf32>) outs(%[[ZERO]]
// CHECK-NOT:     tensor.extract
// CHECK-NOT:     scf.for
// CHECK:         return
!mk = tensor<?x?xf32, #graph.shape<["m", "k"]>>
!kn = tensor<?x?xf32, #graph.shape<["k", "n"]>>
!mn = tensor<?x?xf32, #graph.shape<["m", "n"]>>
func.func private @element(%a: !mk, %b: !kn) -> f32 attributes {tir.leaf} {
  %i = "tir.node_id"() {level = 0 : i64, dim = 0 : i64} : () -> index
  %j = "tir.node_id"() {level = 0 : i64, dim = 1 : i64} : () -> index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %start = arith.constant 0.0 : f32
  %k = tensor.dim %a, %one : !mk
  %0 = scf.for %p = %zero to %k step %one iter_args(%sum = %start) -> f32 {
    %1 = tensor.extract %a[%i, %p] : !mk
    %2 = tensor.extract %b[%p, %j] : !kn
    %3 = arith.mulf %1, %2 : f32
    %4 = arith.addf %sum, %3 : f32
    scf.yield %4 : f32
  }
  return %0 : f32
}
func.func @product(%a: !mk, %b: !kn) -> !mn {
  %0 = "graph.node"(%a, %b) {callee = @element, grid = #graph.shape<["m", "n"]>,
      edges = ["all_to_all", "all_to_all"], operandSegmentSizes = #in2,
      resultSegmentSizes = #out1} : (!mk, !kn) -> !mn
  return %0 : !mn
}

// Bounds of a loop that are clamped once prove that all its indices are inside, so nothing is
// clamped in it; rows are loops of different lengths, each an iteration of its own.
// CHECK-LABEL: func.func private @row_node
// CHECK:         scf.forall
// CHECK:           arith.maxsi
// CHECK:           arith.minsi
// CHECK:           scf.for
// CHECK-NOT:         arith.maxsi
// CHECK:             tensor.extract
// CHECK:             arith.addf
// CHECK-NOT:     graph.node
// CHECK-NOT:     tir.leaf
!s = tensor<?xi32, #graph.shape<["n + 1"]>>
!z = tensor<?xf32, #graph.shape<["z"]>>
func.func private @row(%starts: !s, %values: !z) -> f32 attributes {tir.leaf} {
  %i = "tir.node_id"() {level = 0 : i64, dim = 0 : i64} : () -> index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %start = arith.constant 0.0 : f32
  %next = arith.addi %i, %one : index
  %a = tensor.extract %starts[%i] : !s
  %b = tensor.extract %starts[%next] : !s
  %c = arith.index_cast %a : i32 to index
  %d = arith.index_cast %b : i32 to index
  %size = tensor.dim %values, %zero : !z
  %first = arith.maxsi %c, %zero : index
  %end = arith.minsi %d, %size : index
  %0 = scf.for %p = %first to %end step %one iter_args(%sum = %start) -> f32 {
    %1 = tensor.extract %values[%p] : !z
    %2 = arith.addf %sum, %1 : f32
    scf.yield %2 : f32
  }
  return %0 : f32
}
func.func @rows(%starts: !s, %values: !z) -> !n {
  %0 = "graph.node"(%starts, %values) {callee = @row, grid = #graph.shape<["n"]>,
      edges = ["all_to_all", "all_to_all"], operandSegmentSizes = #in2,
      resultSegmentSizes = #out1} : (!s, !z) -> !n
  return %0 : !n
}

// What MLIR leaves undefined is defined: a shift beyond the width, and a float out of range.
// CHECK-LABEL: func.func private @bits_node
// CHECK:         %[[BEYOND:.*]] = arith.cmpi ugt, %[[COUNT:.*]], %{{.*}} : i32
// CHECK:         %[[INSIDE:.*]] = arith.select %[[BEYOND]], %{{.*}}, %[[COUNT]] : i32
// CHECK:         arith.shli %{{.*}}, %[[INSIDE]] : i32
// CHECK:         arith.cmpf uno
// CHECK:         arith.fptosi
!i = tensor<?xi32, #graph.shape<["n"]>>
func.func private @bits(%x: f32, %count: i32) -> i32 attributes {tir.leaf} {
  %one = arith.constant 1 : i32
  %0 = arith.shli %one, %count : i32
  %1 = arith.fptosi %x : f32 to i32
  %2 = arith.ori %0, %1 : i32
  return %2 : i32
}
func.func @all_bits(%x: !n, %counts: !i) -> !i {
  %0 = "graph.node"(%x, %counts) {callee = @bits, grid = #graph.shape<["n"]>,
      edges = ["one_to_one", "one_to_one"], operandSegmentSizes = #in2,
      resultSegmentSizes = #out1} : (!n, !i) -> !i
  return %0 : !i
}
