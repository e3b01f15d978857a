// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(relax-verify)'

func.func @pad_c1(%x: tensor<9x4xf32>, %y: tensor<f32>) {
  // expected-error @below {{'graph.pad' op expects one of constant, edge, reflect, wrap, but got 'mirror'}}
  %0 = "graph.pad"(%x, %y) {operandSegmentSizes = array<i32: 1, 1>, low = #graph.shape<[1, 0]>, high = #graph.shape<[0, 1]>, interior = array<i64: 0, 0>, mode = "mirror"} : (tensor<9x4xf32>, tensor<f32>) -> tensor<10x5xf32>
  return
}

func.func @pad_c2(%x: tensor<9x4xf32>, %y: tensor<f32>) {
  // expected-error @below {{'graph.pad' op expects known numbers for 2 dims, but got 1, 2 and 2}}
  %0 = "graph.pad"(%x, %y) {operandSegmentSizes = array<i32: 1, 1>, low = #graph.shape<[1]>, high = #graph.shape<[0, 1]>, interior = array<i64: 0, 0>, mode = "constant"} : (tensor<9x4xf32>, tensor<f32>) -> tensor<10x5xf32>
  return
}

func.func @pad_c2_unknown(%x: tensor<9x4xf32>, %y: tensor<f32>) {
  // expected-error @below {{'graph.pad' op expects known numbers for 2 dims, but got 2, 2 and 2}}
  %0 = "graph.pad"(%x, %y) {operandSegmentSizes = array<i32: 1, 1>, low = #graph.shape<[1, "?"]>, high = #graph.shape<[0, 1]>, interior = array<i64: 0, 0>, mode = "constant"} : (tensor<9x4xf32>, tensor<f32>) -> tensor<10x5xf32>
  return
}

func.func @pad_c3(%x: tensor<9x4xf32>, %y: tensor<i32>) {
  // expected-error @below {{'graph.pad' op expects one element type, but got f32 and i32}}
  %0 = "graph.pad"(%x, %y) {operandSegmentSizes = array<i32: 1, 1>, low = #graph.shape<[1, 0]>, high = #graph.shape<[0, 1]>, interior = array<i64: 0, 0>, mode = "constant"} : (tensor<9x4xf32>, tensor<i32>) -> tensor<10x5xf32>
  return
}

func.func @pad_c3_rank(%x: tensor<9x4xf32>, %y: tensor<1xf32>) {
  // expected-error @below {{'graph.pad' op expects a value of rank 0, but got 'tensor<1 x f32>'}}
  %0 = "graph.pad"(%x, %y) {operandSegmentSizes = array<i32: 1, 1>, low = #graph.shape<[1, 0]>, high = #graph.shape<[0, 1]>, interior = array<i64: 0, 0>, mode = "constant"} : (tensor<9x4xf32>, tensor<1xf32>) -> tensor<10x5xf32>
  return
}

func.func @pad_c3_none(%x: tensor<9x4xf32>) {
  // expected-error @below {{'graph.pad' op has no value in mode constant}}
  %0 = "graph.pad"(%x) {operandSegmentSizes = array<i32: 1, 0>, low = #graph.shape<[1, 0]>, high = #graph.shape<[0, 1]>, interior = array<i64: 0, 0>, mode = "constant"} : (tensor<9x4xf32>) -> tensor<10x5xf32>
  return
}

func.func @pad_c3_edge(%x: tensor<9x4xf32>, %y: tensor<f32>) {
  // expected-error @below {{'graph.pad' op has a value in mode edge}}
  %0 = "graph.pad"(%x, %y) {operandSegmentSizes = array<i32: 1, 1>, low = #graph.shape<[1, 0]>, high = #graph.shape<[0, 1]>, interior = array<i64: 0, 0>, mode = "edge"} : (tensor<9x4xf32>, tensor<f32>) -> tensor<10x5xf32>
  return
}

func.func @pad_c4(%x: tensor<9x4xf32>, %y: tensor<f32>) {
  // expected-error @below {{'graph.pad' op has interior numbers (0, -1) in mode constant}}
  %0 = "graph.pad"(%x, %y) {operandSegmentSizes = array<i32: 1, 1>, low = #graph.shape<[1, 0]>, high = #graph.shape<[0, 1]>, interior = array<i64: 0, -1>, mode = "constant"} : (tensor<9x4xf32>, tensor<f32>) -> tensor<10x5xf32>
  return
}

func.func @pad_c4_edge(%x: tensor<9x4xf32>) {
  // expected-error @below {{'graph.pad' op has interior numbers (1, 0) in mode edge}}
  %0 = "graph.pad"(%x) {operandSegmentSizes = array<i32: 1, 0>, low = #graph.shape<[1, 0]>, high = #graph.shape<[0, 1]>, interior = array<i64: 1, 0>, mode = "edge"} : (tensor<9x4xf32>) -> tensor<10x5xf32>
  return
}

func.func @pad_c5(%x: tensor<9x4xf32>, %y: tensor<f32>) {
  // expected-error @below {{'graph.pad' op removes more from dim 0 of 9 than it has}}
  %0 = "graph.pad"(%x, %y) {operandSegmentSizes = array<i32: 1, 1>, low = #graph.shape<[-10, 0]>, high = #graph.shape<[0, 1]>, interior = array<i64: 0, 0>, mode = "constant"} : (tensor<9x4xf32>, tensor<f32>) -> tensor<10x5xf32>
  return
}

func.func @pad_c6(%x: tensor<0x4xf32>) {
  // expected-error @below {{'graph.pad' op picks 1 elements from axis 0, which has none}}
  %0 = "graph.pad"(%x) {operandSegmentSizes = array<i32: 1, 0>, low = #graph.shape<[1, 0]>, high = #graph.shape<[0, 0]>, interior = array<i64: 0, 0>, mode = "edge"} : (tensor<0x4xf32>) -> tensor<1x4xf32>
  return
}

func.func @pad_c6_reflect(%x: tensor<9x4xf32>) {
  // expected-error @below {{'graph.pad' op adds 4 elements to dim 1 of 4 in mode reflect}}
  %0 = "graph.pad"(%x) {operandSegmentSizes = array<i32: 1, 0>, low = #graph.shape<[0, 4]>, high = #graph.shape<[0, 0]>, interior = array<i64: 0, 0>, mode = "reflect"} : (tensor<9x4xf32>) -> tensor<9x8xf32>
  return
}

func.func @pad_c6_wrap(%x: tensor<9x4xf32>) {
  // expected-error @below {{'graph.pad' op adds 10 elements to dim 0 of 9 in mode wrap}}
  %0 = "graph.pad"(%x) {operandSegmentSizes = array<i32: 1, 0>, low = #graph.shape<[0, 0]>, high = #graph.shape<[10, 0]>, interior = array<i64: 0, 0>, mode = "wrap"} : (tensor<9x4xf32>) -> tensor<19x4xf32>
  return
}
