// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-split-streams

#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!x = tensor<4xf32>
func.func private @next(%x: f32) -> f32 attributes {tir.leaf} {
  return %x : f32
}
func.func @main_stage_0(%x: !x) -> !x {
  return %x : !x
}
// expected-error @below {{'func.func' op has stages, but '@main_stage_0' is there already}}
func.func @main(%x: !x) -> !x {
  %0 = "graph.node"(%x) {callee = @next, grid = #graph.shape<[4]>, edges = ["one_to_one"],
      graph.streams = array<i1: true>, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!x) -> !x
  return %0 : !x
}

// -----

#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!x = tensor<4xf32>
func.func private @next(%x: f32) -> f32 attributes {tir.leaf} {
  return %x : f32
}
// expected-error @below {{'func.func' op has 'graph.inout', which no stage could update}}
func.func @main(%x: !x {graph.inout = 0 : i64}) -> !x {
  %0 = "graph.node"(%x) {callee = @next, grid = #graph.shape<[4]>, edges = ["one_to_one"],
      graph.streams = array<i1: true>, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!x) -> !x
  return %0 : !x
}
