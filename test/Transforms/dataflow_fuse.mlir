// RUN: relax-opt %s --relax-dataflow-fuse | FileCheck %s
// RUN: relax-opt %s --relax-dataflow-fuse --relax-lower-dataflow --relax-verify

#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!n = tensor<?xf32, #graph.shape<["n"]>>
!k = tensor<?xf32, #graph.shape<["k"]>>
!q = tensor<?xf32, #graph.shape<["4*n"]>>
func.func private @twice(%x: f32) -> f32 attributes {tir.leaf} {
  %0 = arith.addf %x, %x : f32
  return %0 : f32
}
func.func private @picked(%x: f32, %w: !k) -> f32 attributes {tir.leaf} {
  %i = "tir.node_id"() {level = 0 : i64, dim = 0 : i64} : () -> index
  %0 = tensor.extract %w[%i] : !k
  %1 = arith.mulf %x, %0 : f32
  return %1 : f32
}
func.func private @on_device(%x: f32) -> f32 attributes {tir.leaf, tir.targets = ["vulkan"]} {
  %0 = arith.negf %x : f32
  return %0 : f32
}

// The leaf of a chain; symbols of both are apart.
// CHECK-LABEL: func.func private @picked_picked(
// CHECK-SAME:      %[[X:.*]]: f32, %[[V:.*]]: tensor<?xf32, #graph.shape<["d1_0"]>>, %[[W:.*]]: tensor<?xf32, #graph.shape<["d2_0"]>>) -> f32
// CHECK-SAME:      tir.leaf
// CHECK:         %[[A:.*]] = tensor.extract %[[V]]
// CHECK:         %[[B:.*]] = arith.mulf %[[X]], %[[A]]
// CHECK:         %[[C:.*]] = tensor.extract %[[W]]
// CHECK:         arith.mulf %[[B]], %[[C]]

// Grids that are proved equal: "4*n" is "n*4".
// CHECK-LABEL: func.func @chain
// CHECK:         "graph.node"(%{{.*}}) {callee = @twice_twice_twice,
// CHECK-NOT:     graph.node
func.func @chain(%x: !q) -> !q {
  %0 = "graph.node"(%x) {callee = @twice, grid = #graph.shape<["4*n"]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!q) -> !q
  %1 = "graph.node"(%0) {callee = @twice, grid = #graph.shape<["n*4"]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!q) -> !q
  %2 = "graph.node"(%1) {callee = @twice, grid = #graph.shape<["n*4"]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!q) -> !q
  return %2 : !q
}

// CHECK-LABEL: func.func @two_tables
// CHECK:         "graph.node"(%arg0, %arg1, %arg2) {callee = @picked_picked, edges = ["one_to_one", "all_to_all", "all_to_all"],
func.func @two_tables(%x: !n, %v: !k, %w: !n) -> !n {
  %0 = "graph.node"(%x, %v) {callee = @picked, grid = #graph.shape<["n"]>,
      edges = ["one_to_one", "all_to_all"],
      operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!n, !k) -> !n
  %1 = "graph.node"(%0, %w) {callee = @picked, grid = #graph.shape<["n"]>,
      edges = ["one_to_one", "all_to_all"],
      operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!n, !n) -> !n
  return %1 : !n
}

// Nodes that stay: behind an edge all-to-all, of other targets, and used twice.
// CHECK-LABEL: func.func @barrier
// CHECK-COUNT-2: graph.node
func.func @barrier(%x: !n) -> !n {
  %0 = "graph.node"(%x) {callee = @twice, grid = #graph.shape<["n"]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  %1 = "graph.node"(%0, %0) {callee = @picked, grid = #graph.shape<["n"]>,
      edges = ["one_to_one", "all_to_all"],
      operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!n, !n) -> !n
  return %1 : !n
}
// CHECK-LABEL: func.func @targets
// CHECK-COUNT-2: graph.node
func.func @targets(%x: !n) -> !n {
  %0 = "graph.node"(%x) {callee = @twice, grid = #graph.shape<["n"]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  %1 = "graph.node"(%0) {callee = @on_device, grid = #graph.shape<["n"]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  return %1 : !n
}
// CHECK-LABEL: func.func @returned
// CHECK-COUNT-2: graph.node
func.func @returned(%x: !n) -> (!n, !n) {
  %0 = "graph.node"(%x) {callee = @twice, grid = #graph.shape<["n"]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  %1 = "graph.node"(%0) {callee = @twice, grid = #graph.shape<["n"]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  return %0, %1 : !n, !n
}

// Chains inside of an internal node.
// CHECK-LABEL: func.func private @tile
// CHECK:         callee = @twice_twice
// CHECK-NOT:     graph.node
!n4 = tensor<?x4xf32, #graph.shape<["n", 4]>>
func.func private @tile(%x: tensor<4xf32>) -> tensor<4xf32> attributes {graph.internal_node} {
  %0 = "graph.node"(%x) {callee = @twice, grid = #graph.shape<[4]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "graph.node"(%0) {callee = @twice, grid = #graph.shape<[4]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
// CHECK-LABEL: func.func @hierarchy
func.func @hierarchy(%x: !n4) -> !n4 {
  %0 = "graph.node"(%x) {callee = @tile, grid = #graph.shape<["n"]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n4) -> !n4
  return %0 : !n4
}
