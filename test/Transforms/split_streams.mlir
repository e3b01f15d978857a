// RUN: relax-opt %s --relax-split-streams --relax-verify | FileCheck %s
// RUN: relax-opt %s --relax-split-streams --relax-split-streams | FileCheck %s
// RUN: relax-opt %s --relax-dataflow-fuse | FileCheck %s --check-prefix=FUSED

#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!n = tensor<?xf32, #graph.shape<["n"]>>
!m = tensor<?xf32, #graph.shape<["m"]>>
func.func private @next(%x: f32) -> f32 attributes {tir.leaf} {
  %one = arith.constant 1.0 : f32
  %0 = arith.addf %x, %one : f32
  return %0 : f32
}
func.func private @sum(%x: f32, %y: f32) -> f32 attributes {tir.leaf} {
  %0 = arith.addf %x, %y : f32
  return %0 : f32
}

// %0 and %1 are one stage, whatever they are used for. The argument passes the first stages, as the
// last one needs it. Facts are those of symbols that a stage has.
// CHECK-LABEL: func.func @main_stage_0(
// CHECK-SAME:      %[[X:.*]]: tensor<{{.*}}> {graph.name = "x"}, %[[Y:.*]]: tensor<{{.*}}> {graph.name = "arg1"}) ->
// CHECK-SAME:      graph.facts = ["n <= 9", "m <= 9"]
// CHECK:         %[[A:.*]] = "graph.node"(%[[X]])
// CHECK:         %[[B:.*]] = "graph.exp"(%[[A]])
// CHECK:         return %[[X]], %[[A]], %[[B]]
// CHECK-LABEL: func.func @main_stage_1(
// CHECK-SAME:      %[[X:.*]]: tensor<{{.*}}>, %[[A:.*]]: tensor<{{.*}}>, %[[B:.*]]: tensor<{{.*}}>) ->
// CHECK-SAME:      graph.facts = ["n <= 9"]
// CHECK:         %[[C:.*]] = "graph.node"(%[[B]])
// CHECK:         %[[D:.*]] = "graph.node"(%[[A]], %[[C]])
// CHECK:         return %[[X]], %[[D]]
// CHECK-LABEL: func.func @main_stage_2(
// CHECK-SAME:      %[[X:.*]]: tensor<{{.*}}>, %[[D:.*]]: tensor<{{.*}}>) ->
// CHECK:         %[[E:.*]] = "graph.node"(%[[X]], %[[D]])
// CHECK:         return %[[D]], %[[E]]
// CHECK-LABEL: func.func @main(
// CHECK-COUNT-4: graph.node
// CHECK-NOT:   graph.streams
// FUSED-LABEL: func.func @main(
// FUSED:         "graph.node"(%{{.*}}) {callee = @next,
// FUSED:         "graph.node"(%{{.*}}, %{{.*}}) {callee = @next_sum, {{.*}}graph.streams = array<i1: true, false>
// FUSED:         "graph.node"(%{{.*}}, %{{.*}}) {callee = @sum, {{.*}}graph.streams = array<i1: false, true>
func.func @main(%x: !n {graph.name = "x"}, %y: !m) -> (!n, !n)
    attributes {graph.facts = ["n <= 9", "m <= 9"]} {
  %0 = "graph.node"(%x) {callee = @next, grid = #graph.shape<["n"]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  %1 = "graph.exp"(%0) : (!n) -> !n
  %2 = "graph.node"(%1) {callee = @next, grid = #graph.shape<["n"]>, edges = ["one_to_one"],
      graph.streams = array<i1: true>, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  %3 = "graph.node"(%0, %2) {callee = @sum, grid = #graph.shape<["n"]>,
      edges = ["one_to_one", "one_to_one"], operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!n, !n) -> !n
  %4 = "graph.node"(%x, %3) {callee = @sum, grid = #graph.shape<["n"]>,
      edges = ["one_to_one", "one_to_one"], graph.streams = array<i1: false, true>,
      operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!n, !n) -> !n
  return %3, %4 : !n, !n
}
