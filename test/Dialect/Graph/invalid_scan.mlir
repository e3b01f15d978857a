// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(relax-verify)'

func.func @cumsum_c1(%x: tensor<9x4xi1>) {
  // expected-error @below {{'graph.cumsum' op expects a number element type, but got i1}}
  %0 = "graph.cumsum"(%x) {axis = 0 : i64, exclusive = false, reverse = false} : (tensor<9x4xi1>) -> tensor<9x4xi1>
  return
}

func.func @cumsum_c2(%x: tensor<9x4xf32>) {
  // expected-error @below {{'graph.cumsum' op has axis -3, but rank 2 accepts -2 to 1}}
  %0 = "graph.cumsum"(%x) {axis = -3 : i64, exclusive = false, reverse = false} : (tensor<9x4xf32>) -> tensor<9x4xf32>
  return
}

func.func @cumprod_c1(%x: tensor<9x4xi1>) {
  // expected-error @below {{'graph.cumprod' op expects a number element type, but got i1}}
  %0 = "graph.cumprod"(%x) {axis = 0 : i64, exclusive = false, reverse = false} : (tensor<9x4xi1>) -> tensor<9x4xi1>
  return
}

func.func @cumprod_c2(%x: tensor<9x4xf32>) {
  // expected-error @below {{'graph.cumprod' op has axis -3, but rank 2 accepts -2 to 1}}
  %0 = "graph.cumprod"(%x) {axis = -3 : i64, exclusive = false, reverse = false} : (tensor<9x4xf32>) -> tensor<9x4xf32>
  return
}
