// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(relax-verify)'

func.func @gather_elements_c1(%x: tensor<9x4xf32>, %y: tensor<3x2xf32>) {
  // expected-error @below {{'graph.gather_elements' op expects integer indices, but got f32}}
  %0 = "graph.gather_elements"(%x, %y) {axis = 0 : i64} : (tensor<9x4xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  return
}

func.func @gather_elements_c2(%x: tensor<9x4xf32>, %y: tensor<3xi64>) {
  // expected-error @below {{'graph.gather_elements' op expects indices of the input's rank 2, but got rank 1}}
  %0 = "graph.gather_elements"(%x, %y) {axis = 0 : i64} : (tensor<9x4xf32>, tensor<3xi64>) -> tensor<3xf32>
  return
}

func.func @gather_elements_c2_range(%x: tensor<9x4xf32>, %y: tensor<3x2xi64>) {
  // expected-error @below {{'graph.gather_elements' op has axis 2, but rank 2 accepts -2 to 1}}
  %0 = "graph.gather_elements"(%x, %y) {axis = 2 : i64} : (tensor<9x4xf32>, tensor<3x2xi64>) -> tensor<3x2xf32>
  return
}

func.func @gather_elements_c3(%x: tensor<9x4xf32>, %y: tensor<3x5xi64>) {
  // expected-error @below {{'graph.gather_elements' op has 5 indices along dim 1 of 4}}
  %0 = "graph.gather_elements"(%x, %y) {axis = 0 : i64} : (tensor<9x4xf32>, tensor<3x5xi64>) -> tensor<3x5xf32>
  return
}

func.func @gather_elements_c4(%x: tensor<9x0xf32>, %y: tensor<3x2xi64>) {
  // expected-error @below {{'graph.gather_elements' op picks 6 elements from axis 1, which has none}}
  %0 = "graph.gather_elements"(%x, %y) {axis = 1 : i64} : (tensor<9x0xf32>, tensor<3x2xi64>) -> tensor<3x2xf32>
  return
}

func.func @gather_nd_c1(%x: tensor<9x4xf32>, %y: tensor<3x2xi1>) {
  // expected-error @below {{'graph.gather_nd' op expects integer indices, but got i1}}
  %0 = "graph.gather_nd"(%x, %y) {batch_dims = 0 : i64} : (tensor<9x4xf32>, tensor<3x2xi1>) -> tensor<3xf32>
  return
}

func.func @gather_nd_c2(%x: tensor<9x4xf32>, %y: tensor<3x2xi64>) {
  // expected-error @below {{'graph.gather_nd' op expects 0 or more batch dims, but got -1}}
  %0 = "graph.gather_nd"(%x, %y) {batch_dims = -1 : i64} : (tensor<9x4xf32>, tensor<3x2xi64>) -> tensor<3xf32>
  return
}

func.func @gather_nd_c2_all(%x: tensor<9x4xf32>, %y: tensor<3x2xi64>) {
  // expected-error @below {{'graph.gather_nd' op expects fewer batch dims than rank 2, but got 2}}
  %0 = "graph.gather_nd"(%x, %y) {batch_dims = 2 : i64} : (tensor<9x4xf32>, tensor<3x2xi64>) -> tensor<3xf32>
  return
}

func.func @gather_nd_c3(%x: tensor<9x4xf32>, %y: tensor<3x?xi64>) {
  // expected-error @below {{'graph.gather_nd' op expects indices whose last dim is 2 or less, but got dim ?}}
  %0 = "graph.gather_nd"(%x, %y) {batch_dims = 0 : i64} : (tensor<9x4xf32>, tensor<3x?xi64>) -> tensor<3xf32>
  return
}

func.func @gather_nd_c3_many(%x: tensor<9x4xf32>, %y: tensor<3x3xi64>) {
  // expected-error @below {{'graph.gather_nd' op expects indices whose last dim is 2 or less, but got dim 3}}
  %0 = "graph.gather_nd"(%x, %y) {batch_dims = 0 : i64} : (tensor<9x4xf32>, tensor<3x3xi64>) -> tensor<3xf32>
  return
}

func.func @gather_nd_c3_batch(%x: tensor<9x4xf32>, %y: tensor<9x2xi64>) {
  // expected-error @below {{'graph.gather_nd' op expects indices whose last dim is 1 or less, but got dim 2}}
  %0 = "graph.gather_nd"(%x, %y) {batch_dims = 1 : i64} : (tensor<9x4xf32>, tensor<9x2xi64>) -> tensor<9xf32>
  return
}

func.func @gather_nd_c4(%x: tensor<9x4xf32>, %y: tensor<3x1xi64>) {
  // expected-error @below {{'graph.gather_nd' op has batch dim 3 of indices for one of 9}}
  %0 = "graph.gather_nd"(%x, %y) {batch_dims = 1 : i64} : (tensor<9x4xf32>, tensor<3x1xi64>) -> tensor<3xf32>
  return
}

func.func @gather_nd_c5(%x: tensor<9x0xf32>, %y: tensor<3x2xi64>) {
  // expected-error @below {{'graph.gather_nd' op picks 3 elements from axis 1, which has none}}
  %0 = "graph.gather_nd"(%x, %y) {batch_dims = 0 : i64} : (tensor<9x0xf32>, tensor<3x2xi64>) -> tensor<3xf32>
  return
}

func.func @index_tensor_c1(%x: tensor<9x4xf32>) {
  // expected-error @below {{'graph.index_tensor' op expects a tensor and one of indices for each of 0 axes, but got 1 operands}}
  %0 = "graph.index_tensor"(%x) {axes = array<i64>, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<9x4xf32>) -> tensor<9x4xf32>
  return
}

func.func @index_tensor_c1_many(%x: tensor<9x4xf32>, %y: tensor<3x2xi64>, %z: tensor<3x2xi64>) {
  // expected-error @below {{'graph.index_tensor' op expects a tensor and one of indices for each of 1 axes, but got 3 operands}}
  %0 = "graph.index_tensor"(%x, %y, %z) {axes = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<9x4xf32>, tensor<3x2xi64>, tensor<3x2xi64>) -> tensor<9x4xf32>
  return
}

func.func @index_tensor_c2(%x: tensor<9x4xf32>, %y: tensor<3x2xi64>, %z: tensor<3x2xi64>) {
  // expected-error @below {{'graph.index_tensor' op expects ascending axes, but got (1, 0)}}
  %0 = "graph.index_tensor"(%x, %y, %z) {axes = array<i64: 1, 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<9x4xf32>, tensor<3x2xi64>, tensor<3x2xi64>) -> tensor<3x2xf32>
  return
}

func.func @index_tensor_c2_range(%x: tensor<9x4xf32>, %y: tensor<3x2xi64>) {
  // expected-error @below {{'graph.index_tensor' op has axis 2, but rank 2 accepts -2 to 1}}
  %0 = "graph.index_tensor"(%x, %y) {axes = array<i64: 2>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<9x4xf32>, tensor<3x2xi64>) -> tensor<9x4xf32>
  return
}

func.func @index_tensor_c3(%x: tensor<9x4xf32>, %y: tensor<3xf32>) {
  // expected-error @below {{'graph.index_tensor' op expects integer indices, but got f32}}
  %0 = "graph.index_tensor"(%x, %y) {axes = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<9x4xf32>, tensor<3xf32>) -> tensor<9x4xf32>
  return
}

func.func @index_tensor_c4(%x: tensor<9x4xf32>, %y: tensor<3x2xi64>, %z: tensor<3xi64>) {
  // expected-error @below {{'graph.index_tensor' op has indices with dim 2 beside dim 3}}
  %0 = "graph.index_tensor"(%x, %y, %z) {axes = array<i64: 0, 1>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<9x4xf32>, tensor<3x2xi64>, tensor<3xi64>) -> tensor<3x2xf32>
  return
}

func.func @index_tensor_c5(%x: tensor<0x4xf32>, %y: tensor<3x2xi64>) {
  // expected-error @below {{'graph.index_tensor' op picks 6 elements from axis 0, which has none}}
  %0 = "graph.index_tensor"(%x, %y) {axes = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<0x4xf32>, tensor<3x2xi64>) -> tensor<3x2x4xf32>
  return
}
