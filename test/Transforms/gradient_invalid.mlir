// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-gradient

// expected-error @below {{'func.func' op expects result 0 to be a float of rank 0, but got 'tensor<4xf32>'}}
func.func @main(%x: tensor<4xf32> {graph.name = "x"}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// expected-error @below {{'func.func' op expects result 0 to be a float of rank 0, but got none}}
func.func @main() {
  return
}

// -----

// expected-error @below {{'builtin.module' op has no graph function '@main'; there is @other}}
module {
  func.func @other(%x: tensor<f32>) -> tensor<f32> {
    return %x : tensor<f32>
  }
}

// -----

func.func @main(%x: tensor<4x64xf32>) -> tensor<f32> {
  // expected-error @below {{'graph.quantize_blocks' op has no gradient; define a function of it and an Adjoint in the module of its class, or mark it with 'graph.no_grad'}}
  %0:2 = "graph.quantize_blocks"(%x) {symmetric = true} : (tensor<4x64xf32>) -> (tensor<4x64xi8>, tensor<4x2xf32>)
  %1 = "graph.sum"(%0#1) {axes = array<i64>, keepdims = false} : (tensor<4x2xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

func.func @main(%x: tensor<?xf32>) -> tensor<f32> {
  // expected-error @below {{'graph.sum' op has no gradient here: expects known dims, but got 'tensor<? x f32>'}}
  %0 = "graph.sum"(%x) {axes = array<i64>, keepdims = false} : (tensor<?xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
