// RUN: relax-opt %s --relax-inline-nodes | FileCheck %s
// RUN: relax-opt %s --relax-inline-nodes --relax-lower-dataflow --relax-verify | FileCheck %s --check-prefix=LOWERED
// RUN: relax-opt %s --relax-inline-nodes=nodes=open | FileCheck %s --check-prefix=NONE
// RUN: exits 2 relax-opt %s --relax-inline-nodes=nodes=sum 2>&1 | FileCheck %s --check-prefix=LEAF
// LEAF: relax-opt: relax-inline-nodes has nodes=sum, which is no internal node
// NONE: func.func private @tile({{.*}} attributes {graph.internal_node}

#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!n = tensor<?xf32, #graph.shape<["n"]>>
!n4 = tensor<?x4xf32, #graph.shape<["n", 4]>>
!s = tensor<?xf32, #graph.shape<["s"]>>
func.func private @flipped(%x: tensor<4xf32>) -> f32 attributes {tir.leaf} {
  %i = "tir.node_id"() {level = 0 : i64, dim = 0 : i64} : () -> index
  %n = "tir.grid_size"() {level = 0 : i64, dim = 0 : i64} : () -> index
  %t = "tir.node_id"() {level = 1 : i64, dim = 0 : i64} : () -> index
  %0 = arith.subi %n, %i : index
  %1 = arith.addi %0, %t : index
  %2 = tensor.extract %x[%1] : tensor<4xf32>
  return %2 : f32
}
func.func private @sum(%x: tensor<4xf32>) -> f32 attributes {tir.leaf} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  %z = arith.constant 0.0 : f32
  %0 = scf.for %i = %zero to %four step %one iter_args(%s = %z) -> f32 {
    %1 = tensor.extract %x[%i] : tensor<4xf32>
    %2 = arith.addf %s, %1 : f32
    scf.yield %2 : f32
  }
  return %0 : f32
}
func.func private @negated(%x: f32) -> f32 attributes {tir.leaf} {
  %0 = arith.negf %x : f32
  return %0 : f32
}

// The edge between the nodes is a tensor of the leaf; a level is one further in.
// CHECK-LABEL: func.func private @tile(
// CHECK-SAME:      %[[X:.*]]: tensor<4xf32>) -> tensor<f32> attributes {tir.leaf}
// CHECK:         %[[E:.*]] = tensor.empty() : tensor<4xf32>
// CHECK:         %[[S:.*]] = scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[A:.*]] = %[[E]]) -> (tensor<4xf32>)
// CHECK:           "tir.node_id"() {dim = 0 : i64, level = 0 : i64}
// CHECK:           tensor.insert %{{.*}} into %[[A]][%[[I]]]
// CHECK:         scf.for
// CHECK:           tensor.extract %[[S]]
// LOWERED-LABEL: func.func @main(
// LOWERED-COUNT-1: graph.call_tir
// LOWERED-NOT:   graph.call_tir
// LOWERED:       return
func.func private @tile(%x: tensor<4xf32>) -> tensor<f32> attributes {graph.internal_node} {
  %0 = "graph.node"(%x) {callee = @flipped, grid = #graph.shape<[4]>, edges = ["all_to_all"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "graph.node"(%0) {callee = @sum, grid = #graph.shape<[]>, edges = ["all_to_all"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @main(%x: !n4) -> !n {
  %0 = "graph.node"(%x) {callee = @tile, grid = #graph.shape<["n"]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n4) -> !n
  return %0 : !n
}

// A grid that is not static stays a node; a leaf that is run elsewhere stays too.
// CHECK-LABEL: func.func private @open({{.*}} attributes {graph.internal_node}
// CHECK:         callee = @negated
func.func private @open(%x: !s) -> !s attributes {graph.internal_node} {
  %0 = "graph.node"(%x) {callee = @negated, grid = #graph.shape<["s"]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!s) -> !s
  return %0 : !s
}
func.func @opened(%x: !n) -> !n {
  %0 = "graph.node"(%x) {callee = @open, grid = #graph.shape<[]>, edges = ["all_to_all"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  return %0 : !n
}
// CHECK-NOT:   @flipped
