// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(relax-verify)'

func.func @sum_c1(%x: tensor<4x8xf32>) {
  // expected-error @below {{'graph.sum' op has axis 2, but rank 2 accepts -2 to 1}}
  %0 = "graph.sum"(%x) {axes = array<i64: 2>, keepdims = false} : (tensor<4x8xf32>) -> tensor<4xf32>
  return
}

func.func @prod_c1(%x: tensor<4x8xf32>) {
  // expected-error @below {{'graph.prod' op has axis 2, but rank 2 accepts -2 to 1}}
  %0 = "graph.prod"(%x) {axes = array<i64: 2>, keepdims = false} : (tensor<4x8xf32>) -> tensor<4xf32>
  return
}

func.func @max_c1(%x: tensor<4x8xf32>) {
  // expected-error @below {{'graph.max' op has axis 2, but rank 2 accepts -2 to 1}}
  %0 = "graph.max"(%x) {axes = array<i64: 2>, keepdims = false} : (tensor<4x8xf32>) -> tensor<4xf32>
  return
}

func.func @min_c1(%x: tensor<4x8xf32>) {
  // expected-error @below {{'graph.min' op has axis 2, but rank 2 accepts -2 to 1}}
  %0 = "graph.min"(%x) {axes = array<i64: 2>, keepdims = false} : (tensor<4x8xf32>) -> tensor<4xf32>
  return
}

func.func @mean_c1(%x: tensor<4x8xf32>) {
  // expected-error @below {{'graph.mean' op has axis 2, but rank 2 accepts -2 to 1}}
  %0 = "graph.mean"(%x) {axes = array<i64: 2>, keepdims = false} : (tensor<4x8xf32>) -> tensor<4xf32>
  return
}

func.func @sum_c1_distinct(%x: tensor<4x8xf32>) {
  // expected-error @below {{'graph.sum' op expects distinct axes, but got (1, -1)}}
  %0 = "graph.sum"(%x) {axes = array<i64: 1, -1>, keepdims = false} : (tensor<4x8xf32>) -> tensor<4xf32>
  return
}

func.func @prod_c1_distinct(%x: tensor<4x8xf32>) {
  // expected-error @below {{'graph.prod' op expects distinct axes, but got (1, -1)}}
  %0 = "graph.prod"(%x) {axes = array<i64: 1, -1>, keepdims = false} : (tensor<4x8xf32>) -> tensor<4xf32>
  return
}

func.func @max_c1_distinct(%x: tensor<4x8xf32>) {
  // expected-error @below {{'graph.max' op expects distinct axes, but got (1, -1)}}
  %0 = "graph.max"(%x) {axes = array<i64: 1, -1>, keepdims = false} : (tensor<4x8xf32>) -> tensor<4xf32>
  return
}

func.func @min_c1_distinct(%x: tensor<4x8xf32>) {
  // expected-error @below {{'graph.min' op expects distinct axes, but got (1, -1)}}
  %0 = "graph.min"(%x) {axes = array<i64: 1, -1>, keepdims = false} : (tensor<4x8xf32>) -> tensor<4xf32>
  return
}

func.func @mean_c1_distinct(%x: tensor<4x8xf32>) {
  // expected-error @below {{'graph.mean' op expects distinct axes, but got (1, -1)}}
  %0 = "graph.mean"(%x) {axes = array<i64: 1, -1>, keepdims = false} : (tensor<4x8xf32>) -> tensor<4xf32>
  return
}

func.func @sum_c2(%x: tensor<4xi1>) {
  // expected-error @below {{'graph.sum' op expects a number element type, but got i1}}
  %0 = "graph.sum"(%x) {axes = array<i64: 0>, keepdims = false} : (tensor<4xi1>) -> tensor<i1>
  return
}

func.func @prod_c2(%x: tensor<4xi1>) {
  // expected-error @below {{'graph.prod' op expects a number element type, but got i1}}
  %0 = "graph.prod"(%x) {axes = array<i64: 0>, keepdims = false} : (tensor<4xi1>) -> tensor<i1>
  return
}

func.func @max_c2(%x: tensor<4xi1>) {
  // expected-error @below {{'graph.max' op expects a number element type, but got i1}}
  %0 = "graph.max"(%x) {axes = array<i64: 0>, keepdims = false} : (tensor<4xi1>) -> tensor<i1>
  return
}

func.func @min_c2(%x: tensor<4xi1>) {
  // expected-error @below {{'graph.min' op expects a number element type, but got i1}}
  %0 = "graph.min"(%x) {axes = array<i64: 0>, keepdims = false} : (tensor<4xi1>) -> tensor<i1>
  return
}

func.func @mean_c2(%x: tensor<4xi32>) {
  // expected-error @below {{'graph.mean' op expects a float element type, but got i32}}
  %0 = "graph.mean"(%x) {axes = array<i64: 0>, keepdims = false} : (tensor<4xi32>) -> tensor<i32>
  return
}

func.func @negative_keepdims(%x: tensor<4x8xf32>) {
  // expected-error @below {{'graph.sum' op infers result type 'tensor<4x1xf32>', but has 'tensor<4xf32>'}}
  %0 = "graph.sum"(%x) {axes = array<i64: 1>, keepdims = true} : (tensor<4x8xf32>) -> tensor<4xf32>
  return
}

func.func @any_c1(%x: tensor<9x4xi1>) {
  // expected-error @below {{'graph.any' op expects distinct axes, but got (0, -2)}}
  %0 = "graph.any"(%x) {axes = array<i64: 0, -2>, keepdims = false} : (tensor<9x4xi1>) -> tensor<9x4xi1>
  return
}

func.func @any_c2(%x: tensor<9x4xf32>) {
  // expected-error @below {{'graph.any' op expects element type i1, but got f32}}
  %0 = "graph.any"(%x) {axes = array<i64: 0>, keepdims = false} : (tensor<9x4xf32>) -> tensor<9x4xf32>
  return
}

func.func @all_c1(%x: tensor<9x4xi1>) {
  // expected-error @below {{'graph.all' op expects distinct axes, but got (0, -2)}}
  %0 = "graph.all"(%x) {axes = array<i64: 0, -2>, keepdims = false} : (tensor<9x4xi1>) -> tensor<9x4xi1>
  return
}

func.func @all_c2(%x: tensor<9x4xf32>) {
  // expected-error @below {{'graph.all' op expects element type i1, but got f32}}
  %0 = "graph.all"(%x) {axes = array<i64: 0>, keepdims = false} : (tensor<9x4xf32>) -> tensor<9x4xf32>
  return
}

func.func @variance_c1(%x: tensor<9x4xf32>) {
  // expected-error @below {{'graph.variance' op expects distinct axes, but got (0, -2)}}
  %0 = "graph.variance"(%x) {axes = array<i64: 0, -2>, correction = 1 : i64, keepdims = false} : (tensor<9x4xf32>) -> tensor<9x4xf32>
  return
}

func.func @variance_c2(%x: tensor<9x4xi32>) {
  // expected-error @below {{'graph.variance' op expects a float element type, but got i32}}
  %0 = "graph.variance"(%x) {axes = array<i64: 0>, correction = 1 : i64, keepdims = false} : (tensor<9x4xi32>) -> tensor<9x4xi32>
  return
}

func.func @std_c1(%x: tensor<9x4xf32>) {
  // expected-error @below {{'graph.std' op expects distinct axes, but got (0, -2)}}
  %0 = "graph.std"(%x) {axes = array<i64: 0, -2>, correction = 1 : i64, keepdims = false} : (tensor<9x4xf32>) -> tensor<9x4xf32>
  return
}

func.func @std_c2(%x: tensor<9x4xi32>) {
  // expected-error @below {{'graph.std' op expects a float element type, but got i32}}
  %0 = "graph.std"(%x) {axes = array<i64: 0>, correction = 1 : i64, keepdims = false} : (tensor<9x4xi32>) -> tensor<9x4xi32>
  return
}

func.func @logsumexp_c1(%x: tensor<9x4xf32>) {
  // expected-error @below {{'graph.logsumexp' op expects distinct axes, but got (0, -2)}}
  %0 = "graph.logsumexp"(%x) {axes = array<i64: 0, -2>, keepdims = false} : (tensor<9x4xf32>) -> tensor<9x4xf32>
  return
}

func.func @logsumexp_c2(%x: tensor<9x4xi32>) {
  // expected-error @below {{'graph.logsumexp' op expects a float element type, but got i32}}
  %0 = "graph.logsumexp"(%x) {axes = array<i64: 0>, keepdims = false} : (tensor<9x4xi32>) -> tensor<9x4xi32>
  return
}
