// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(relax-place-devices{target=x86-64-v3@cuda:sm_90})'

func.func @another_device(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'graph.to_device' op is placed on 'vulkan', but the target has the device 'cuda:sm_90'; accepted are 'cpu' and 'device'}}
  %0 = "graph.to_device"(%x) {device = "vulkan"} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error @below {{is placed on 'cuda:sm_80', but the target has the device 'cuda:sm_90'}}
func.func @another_argument(%x: tensor<4xf32> {graph.device = "cuda:sm_80"}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

func.func @no_text(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'graph.exp' op expects 'graph.device' to be a text, but got 1 : i64}}
  %0 = "graph.exp"(%x) {graph.device = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @no_operator(%x: tensor<4xf32>) -> f32 {
  %c = arith.constant 0 : index
  // expected-error @below {{'tensor.extract' op cannot be placed; expects an operator or a call of a tensor program, on tensors of known dims}}
  %0 = tensor.extract %x[%c] {graph.device = "cpu"} : tensor<4xf32>
  return %0 : f32
}

// -----

func.func @unknown_dims(%x: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error @below {{'graph.exp' op cannot be placed; expects an operator}}
  %0 = "graph.exp"(%x) {graph.device = "cpu"} : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A function with a device computes there as a whole.
func.func private @whole(%x: tensor<4xf32>) -> tensor<4xf32> attributes {graph.device = "cpu"} {
  %0 = "graph.exp"(%x) {graph.device = "cpu"} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "graph.hint_on_device"(%0) {device = "device"} : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error @below {{'graph.negative' op is placed on 'device', but '@whole' computes on 'cpu' as a whole; `graph.call` calls functions of others}}
  %2 = "graph.negative"(%1) {graph.device = "cuda"} : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
