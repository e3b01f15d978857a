// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-train-step

// expected-error @below {{'func.func' op has no parameters to train; name them with wrt, or mark them with 'graph.num_inputs'}}
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}

// -----

// expected-error @below {{'func.func' op updates its parameter 'arg0' in place already}}
func.func @main(%x: tensor<f32> {graph.inout = 0 : i64}) -> tensor<f32> attributes {graph.num_inputs = 0 : i64} {
  return %x : tensor<f32>
}

// -----

// expected-error @below {{'func.func' op has an argument 'rate', as the step needs one}}
func.func @main(%x: tensor<f32> {graph.name = "rate"}) -> tensor<f32> attributes {graph.num_inputs = 0 : i64} {
  return %x : tensor<f32>
}
