// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(relax-verify)'

func.func @flip_c1(%x: tensor<9x4xf32>) {
  // expected-error @below {{'graph.flip' op expects distinct axes, but got (0, -2)}}
  %0 = "graph.flip"(%x) {axes = array<i64: 0, -2>} : (tensor<9x4xf32>) -> tensor<9x4xf32>
  return
}

func.func @flip_c1_range(%x: tensor<9x4xf32>) {
  // expected-error @below {{'graph.flip' op has axis 2, but rank 2 accepts -2 to 1}}
  %0 = "graph.flip"(%x) {axes = array<i64: 2>} : (tensor<9x4xf32>) -> tensor<9x4xf32>
  return
}

func.func @roll_c1(%x: tensor<9x4xf32>) {
  // expected-error @below {{'graph.roll' op expects distinct axes, but got (1, 1)}}
  %0 = "graph.roll"(%x) {axes = array<i64: 1, 1>, shifts = array<i64: 1, 2>} : (tensor<9x4xf32>) -> tensor<9x4xf32>
  return
}

func.func @roll_c2(%x: tensor<9x4xf32>) {
  // expected-error @below {{'graph.roll' op expects 1 shifts, but got 2}}
  %0 = "graph.roll"(%x) {axes = array<i64: 1>, shifts = array<i64: 1, 2>} : (tensor<9x4xf32>) -> tensor<9x4xf32>
  return
}

func.func @tile_c1(%x: tensor<9x4xf32>) {
  // expected-error @below {{'graph.tile' op expects known numbers of repetitions}}
  %0 = "graph.tile"(%x) {repeats = #graph.shape<[1, "?"]>} : (tensor<9x4xf32>) -> tensor<9x?xf32>
  return
}

func.func @tile_c2(%x: tensor<9x4xf32>) {
  // expected-error @below {{'graph.tile' op expects repetitions of 2 dims, but got 1}}
  %0 = "graph.tile"(%x) {repeats = #graph.shape<[2]>} : (tensor<9x4xf32>) -> tensor<9x4xf32>
  return
}

func.func @repeat_c1(%x: tensor<9x4xf32>) {
  // expected-error @below {{'graph.repeat' op has axis 2, but rank 2 accepts -2 to 1}}
  %0 = "graph.repeat"(%x) {axis = 2 : i64, repeats = #graph.shape<[2]>} : (tensor<9x4xf32>) -> tensor<9x4xf32>
  return
}

func.func @repeat_c2(%x: tensor<9x4xf32>) {
  // expected-error @below {{'graph.repeat' op expects one number of repetitions, but got 2}}
  %0 = "graph.repeat"(%x) {axis = 0 : i64, repeats = #graph.shape<[2, 1]>} : (tensor<9x4xf32>) -> tensor<9x4xf32>
  return
}

func.func @stack_c1() {
  // expected-error @below {{'graph.stack' op expects at least one operand}}
  %0 = "graph.stack"() {axis = 0 : i64, operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : () -> tensor<9x4xf32>
  return
}

func.func @stack_c2(%x: tensor<9x4xf32>, %y: tensor<9x4xi32>) {
  // expected-error @below {{'graph.stack' op expects one element type, but got f32 and i32}}
  %0 = "graph.stack"(%x, %y) {axis = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<9x4xf32>, tensor<9x4xi32>) -> tensor<2x9x4xf32>
  return
}

func.func @stack_c3(%x: tensor<9x4xf32>, %y: tensor<9xf32>) {
  // expected-error @below {{'graph.stack' op expects operands of one rank, but got ranks [1, 2]}}
  %0 = "graph.stack"(%x, %y) {axis = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<9x4xf32>, tensor<9xf32>) -> tensor<2x9x4xf32>
  return
}

func.func @stack_c3_range(%x: tensor<9x4xf32>, %y: tensor<9x4xf32>) {
  // expected-error @below {{'graph.stack' op has axis 3, but rank 3 accepts -3 to 2}}
  %0 = "graph.stack"(%x, %y) {axis = 3 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<9x4xf32>, tensor<9x4xf32>) -> tensor<2x9x4xf32>
  return
}

func.func @stack_c4(%x: tensor<9x4xf32>, %y: tensor<9x5xf32>) {
  // expected-error @below {{'graph.stack' op joins dim 1 of 4 with one of 5}}
  %0 = "graph.stack"(%x, %y) {axis = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<9x4xf32>, tensor<9x5xf32>) -> tensor<2x9x4xf32>
  return
}
