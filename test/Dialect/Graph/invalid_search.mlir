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
