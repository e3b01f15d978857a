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

// An index that is proved to be inside is read as it is, others are clamped.
// CHECK-LABEL: func.func private @reversed_node
// CHECK:         %[[LAST:.*]] = arith.minsi
// CHECK:         %[[AT:.*]] = arith.maxsi %[[LAST]]
// CHECK:         tensor.extract %{{.*}}[%[[AT]]]
// CHECK:         scf.for %[[L:[a-z0-9]*]] =
// CHECK-NEXT:      tensor.extract %{{.*}}[%[[L]]]

// CHECK-NOT: graph.node
// CHECK-NOT: tir.leaf
