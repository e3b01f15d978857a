// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(relax-verify)'

func.func @nn_relu_c1(%x: tensor<4xi1>) {
  // expected-error @below {{'graph.nn_relu' op expects a number element type, but got i1}}
  %0 = "graph.nn_relu"(%x) : (tensor<4xi1>) -> tensor<4xi1>
  return
}

func.func @nn_silu_c1(%x: tensor<4xi32>) {
  // expected-error @below {{'graph.nn_silu' op expects a float element type, but got i32}}
  %0 = "graph.nn_silu"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

func.func @nn_gelu_c1(%x: tensor<4xi32>) {
  // expected-error @below {{'graph.nn_gelu' op expects a float element type, but got i32}}
  %0 = "graph.nn_gelu"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

func.func @nn_gelu_tanh_c1(%x: tensor<4xi32>) {
  // expected-error @below {{'graph.nn_gelu_tanh' op expects a float element type, but got i32}}
  %0 = "graph.nn_gelu_tanh"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

func.func @nn_softmax_c1(%x: tensor<4x8xf32>) {
  // expected-error @below {{'graph.nn_softmax' op has axis 2, but rank 2 accepts -2 to 1}}
  %0 = "graph.nn_softmax"(%x) {axis = 2 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

func.func @nn_softmax_c2(%x: tensor<4xi32>) {
  // expected-error @below {{'graph.nn_softmax' op expects a float element type, but got i32}}
  %0 = "graph.nn_softmax"(%x) {axis = 0 : i64} : (tensor<4xi32>) -> tensor<4xi32>
  return
}

func.func @nn_rms_norm_c1(%x: tensor<4x8xf32>, %y: tensor<8xf64>) {
  // expected-error @below {{'graph.nn_rms_norm' op expects one element type, but got f32 and f64}}
  %0 = "graph.nn_rms_norm"(%x, %y) {epsilon = 1.000000e-05 : f64} : (tensor<4x8xf32>, tensor<8xf64>) -> tensor<4x8xf32>
  return
}

func.func @nn_rms_norm_c1_integer(%x: tensor<4x8xi8>, %y: tensor<8xi8>) {
  // expected-error @below {{'graph.nn_rms_norm' op expects a float element type, but got i8}}
  %0 = "graph.nn_rms_norm"(%x, %y) {epsilon = 1.000000e-05 : f64} : (tensor<4x8xi8>, tensor<8xi8>) -> tensor<4x8xi8>
  return
}

func.func @nn_rms_norm_c2(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) {
  // expected-error @below {{'graph.nn_rms_norm' op expects parameters of rank 1, but got 'tensor<4 x 8 x f32>'}}
  %0 = "graph.nn_rms_norm"(%x, %y) {epsilon = 1.000000e-05 : f64} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

func.func @nn_rms_norm_c3(%x: tensor<4x8xf32>, %y: tensor<4xf32>) {
  // expected-error @below {{'graph.nn_rms_norm' op normalises dim 8 with a parameter of dim 4}}
  %0 = "graph.nn_rms_norm"(%x, %y) {epsilon = 1.000000e-05 : f64} : (tensor<4x8xf32>, tensor<4xf32>) -> tensor<4x8xf32>
  return
}

func.func @nn_layer_norm_c1(%x: tensor<4x8xf32>, %y: tensor<8xf32>, %z: tensor<8xf64>) {
  // expected-error @below {{'graph.nn_layer_norm' op expects one element type, but got f32 and f64}}
  %0 = "graph.nn_layer_norm"(%x, %y, %z) {epsilon = 1.000000e-05 : f64} : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf64>) -> tensor<4x8xf32>
  return
}

func.func @nn_layer_norm_c2(%x: tensor<4x8xf32>, %y: tensor<8xf32>, %z: tensor<f32>) {
  // expected-error @below {{'graph.nn_layer_norm' op expects parameters of rank 1, but got 'tensor<f32>'}}
  %0 = "graph.nn_layer_norm"(%x, %y, %z) {epsilon = 1.000000e-05 : f64} : (tensor<4x8xf32>, tensor<8xf32>, tensor<f32>) -> tensor<4x8xf32>
  return
}

func.func @nn_layer_norm_c3(%x: tensor<?x8xf32, #graph.shape<["n", 8]>>, %y: tensor<8xf32>, %z: tensor<?xf32, #graph.shape<["n + 9"]>>) {
  // expected-error @below {{'graph.nn_layer_norm' op normalises dim 8 with a parameter of dim n + 9}}
  %0 = "graph.nn_layer_norm"(%x, %y, %z) {epsilon = 1.000000e-05 : f64} : (tensor<?x8xf32, #graph.shape<["n", 8]>>, tensor<8xf32>, tensor<?xf32, #graph.shape<["n + 9"]>>) -> tensor<?x8xf32, #graph.shape<["n", 8]>>
  return
}

func.func @nn_rms_norm_c4(%x: tensor<f32>, %y: tensor<1xf32>) {
  // expected-error @below {{'graph.nn_rms_norm' op expects an input of rank 1 or more, but got 'tensor<f32>'}}
  %0 = "graph.nn_rms_norm"(%x, %y) {epsilon = 1.000000e-05 : f64} : (tensor<f32>, tensor<1xf32>) -> tensor<f32>
  return
}

func.func @nn_layer_norm_c4(%x: tensor<f32>, %y: tensor<1xf32>, %z: tensor<1xf32>) {
  // expected-error @below {{'graph.nn_layer_norm' op expects an input of rank 1 or more, but got 'tensor<f32>'}}
  %0 = "graph.nn_layer_norm"(%x, %y, %z) {epsilon = 1.000000e-05 : f64} : (tensor<f32>, tensor<1xf32>, tensor<1xf32>) -> tensor<f32>
  return
}

func.func @nn_log_softmax_c1(%x: tensor<9x4xf32>) {
  // expected-error @below {{'graph.nn_log_softmax' op has axis 2, but rank 2 accepts -2 to 1}}
  %0 = "graph.nn_log_softmax"(%x) {axis = 2 : i64} : (tensor<9x4xf32>) -> tensor<9x4xf32>
  return
}

func.func @nn_log_softmax_c2(%x: tensor<9x4xi32>) {
  // expected-error @below {{'graph.nn_log_softmax' op expects a float element type, but got i32}}
  %0 = "graph.nn_log_softmax"(%x) {axis = 0 : i64} : (tensor<9x4xi32>) -> tensor<9x4xi32>
  return
}
