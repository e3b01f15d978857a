// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(relax-verify)'

func.func @argmax_c1(%x: tensor<4x8xf32>) {
  // expected-error @below {{'graph.argmax' op has axis -3, but rank 2 accepts -2 to 1}}
  %0 = "graph.argmax"(%x) {axis = -3 : i64, keepdims = false} : (tensor<4x8xf32>) -> tensor<4xi64>
  return
}

func.func @argmin_c1(%x: tensor<4x8xf32>) {
  // expected-error @below {{'graph.argmin' op has axis -3, but rank 2 accepts -2 to 1}}
  %0 = "graph.argmin"(%x) {axis = -3 : i64, keepdims = false} : (tensor<4x8xf32>) -> tensor<4xi64>
  return
}

func.func @argmax_c2(%x: tensor<4xi1>) {
  // expected-error @below {{'graph.argmax' op expects a number element type, but got i1}}
  %0 = "graph.argmax"(%x) {axis = 0 : i64, keepdims = false} : (tensor<4xi1>) -> tensor<i64>
  return
}

func.func @argmin_c2(%x: tensor<4xi1>) {
  // expected-error @below {{'graph.argmin' op expects a number element type, but got i1}}
  %0 = "graph.argmin"(%x) {axis = 0 : i64, keepdims = false} : (tensor<4xi1>) -> tensor<i64>
  return
}

func.func @negative_result_element(%x: tensor<4x8xf32>) {
  // expected-error @below {{'graph.argmax' op infers result type 'tensor<4xi64>', but has 'tensor<4xi32>'}}
  %0 = "graph.argmax"(%x) {axis = 1 : i64, keepdims = false} : (tensor<4x8xf32>) -> tensor<4xi32>
  return
}

func.func @searchsorted_c1(%x: tensor<4xf32>, %v: tensor<4xi32>) {
  // expected-error @below {{'graph.searchsorted' op expects one element type, but got f32 and i32}}
  %0 = "graph.searchsorted"(%x, %v) {right = false} : (tensor<4xf32>, tensor<4xi32>) -> tensor<4xi64>
  return
}

func.func @searchsorted_c1_truth(%x: tensor<4xi1>) {
  // expected-error @below {{'graph.searchsorted' op expects a number element type, but got i1}}
  %0 = "graph.searchsorted"(%x, %x) {right = false} : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi64>
  return
}

func.func @searchsorted_c2(%x: tensor<2x4xf32>, %v: tensor<4xf32>) {
  // expected-error @below {{'graph.searchsorted' op searches 'tensor<2 x 4 x f32>' for 'tensor<4 x f32>'}}
  %0 = "graph.searchsorted"(%x, %v) {right = false} : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<4xi64>
  return
}

func.func @searchsorted_c2_rank_0(%x: tensor<f32>, %v: tensor<f32>) {
  // expected-error @below {{'graph.searchsorted' op searches 'tensor<f32>' for 'tensor<f32>'}}
  %0 = "graph.searchsorted"(%x, %v) {right = false} : (tensor<f32>, tensor<f32>) -> tensor<i64>
  return
}

func.func @searchsorted_c3(%x: tensor<2x4xf32>, %v: tensor<3x4xf32>) {
  // expected-error @below {{'graph.searchsorted' op searches lines of dim 2 for values of dim 3}}
  %0 = "graph.searchsorted"(%x, %v) {right = false} : (tensor<2x4xf32>, tensor<3x4xf32>) -> tensor<3x4xi64>
  return
}

func.func @first_nonzero_c1(%x: tensor<4xsi8>) {
  // expected-error @below {{'graph.first_nonzero' op expects numeric elements or i1, but got si8}}
  %0 = "graph.first_nonzero"(%x) {count = #graph.shape<[2]>} : (tensor<4xsi8>) -> tensor<1x2xi64>
  return
}

func.func @first_nonzero_c2(%x: tensor<f32>) {
  // expected-error @below {{'graph.first_nonzero' op expects a tensor of known rank above 0, but got 'tensor<f32>'}}
  %0 = "graph.first_nonzero"(%x) {count = #graph.shape<[2]>} : (tensor<f32>) -> tensor<1x2xi64>
  return
}

func.func @first_nonzero_c3(%x: tensor<4xf32>) {
  // expected-error @below {{'graph.first_nonzero' op expects one known count of indices, but got 2}}
  %0 = "graph.first_nonzero"(%x) {count = #graph.shape<[2, 2]>} : (tensor<4xf32>) -> tensor<1x2xi64>
  return
}
