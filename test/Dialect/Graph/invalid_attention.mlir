// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(relax-verify)'

func.func @nn_rotary_c1(%x: tensor<5x8xf32>, %y: tensor<5x4xf32>, %z: tensor<5x4xf32>) {
  // expected-error @below {{'graph.nn_rotary' op expects an input of rank 3, but got 'tensor<5 x 8 x f32>'}}
  %0 = "graph.nn_rotary"(%x, %y, %z) : (tensor<5x8xf32>, tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x8xf32>
  return
}

func.func @nn_rotary_c1_tables(%x: tensor<5x2x8xf32>, %y: tensor<4xf32>, %z: tensor<5x4xf32>) {
  // expected-error @below {{'graph.nn_rotary' op expects tables of rank 2, but got 'tensor<4 x f32>'}}
  %0 = "graph.nn_rotary"(%x, %y, %z) : (tensor<5x2x8xf32>, tensor<4xf32>, tensor<5x4xf32>) -> tensor<5x2x8xf32>
  return
}

func.func @nn_rotary_c2(%x: tensor<5x2x8xf32>, %y: tensor<5x4xf32>, %z: tensor<5x4xf64>) {
  // expected-error @below {{'graph.nn_rotary' op expects one element type, but got f32 and f64}}
  %0 = "graph.nn_rotary"(%x, %y, %z) : (tensor<5x2x8xf32>, tensor<5x4xf32>, tensor<5x4xf64>) -> tensor<5x2x8xf32>
  return
}

func.func @nn_rotary_c2_integer(%x: tensor<5x2x8xi8>, %y: tensor<5x4xi8>, %z: tensor<5x4xi8>) {
  // expected-error @below {{'graph.nn_rotary' op expects a float element type, but got i8}}
  %0 = "graph.nn_rotary"(%x, %y, %z) : (tensor<5x2x8xi8>, tensor<5x4xi8>, tensor<5x4xi8>) -> tensor<5x2x8xi8>
  return
}

func.func @nn_rotary_c3(%x: tensor<5x2x8xf32>, %y: tensor<5x4xf32>, %z: tensor<6x4xf32>) {
  // expected-error @below {{'graph.nn_rotary' op expects one number of rows, but got 5 and 6}}
  %0 = "graph.nn_rotary"(%x, %y, %z) : (tensor<5x2x8xf32>, tensor<5x4xf32>, tensor<6x4xf32>) -> tensor<5x2x8xf32>
  return
}

func.func @nn_rotary_c4(%x: tensor<5x2x8xf32>, %y: tensor<5x8xf32>, %z: tensor<5x8xf32>) {
  // expected-error @below {{'graph.nn_rotary' op rotates a head dim of 8 with tables of 8 columns}}
  %0 = "graph.nn_rotary"(%x, %y, %z) : (tensor<5x2x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x2x8xf32>
  return
}

func.func @nn_rotary_c4_odd(%x: tensor<?x2x9xf32, #graph.shape<["n", 2, 9]>>, %y: tensor<?x4xf32, #graph.shape<["n", 4]>>, %z: tensor<?x4xf32, #graph.shape<["n", 4]>>) {
  // expected-error @below {{'graph.nn_rotary' op rotates a head dim of 9 with tables of 4 columns}}
  %0 = "graph.nn_rotary"(%x, %y, %z) : (tensor<?x2x9xf32, #graph.shape<["n", 2, 9]>>, tensor<?x4xf32, #graph.shape<["n", 4]>>, tensor<?x4xf32, #graph.shape<["n", 4]>>) -> tensor<?x2x9xf32, #graph.shape<["n", 2, 9]>>
  return
}

func.func @nn_kv_append_c1(%x: tensor<2x16x8xf32>, %y: tensor<2x16x8xf32>, %z: tensor<3x2x8xf32>, %u: tensor<3x2x8xf64>) {
  // expected-error @below {{'graph.nn_kv_append' op expects one element type, but got f32 and f64}}
  %0:2 = "graph.nn_kv_append"(%x, %y, %z, %u) {position = #graph.shape<[0]>} : (tensor<2x16x8xf32>, tensor<2x16x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf64>) -> (tensor<2x16x8xf32>, tensor<2x16x8xf32>)
  return
}

func.func @nn_kv_append_c1_rank(%x: tensor<2x16x8xf32>, %y: tensor<2x16x8xf32>, %z: tensor<3x2x8xf32>, %u: tensor<6x8xf32>) {
  // expected-error @below {{'graph.nn_kv_append' op expects operands of rank 3, but got 'tensor<6 x 8 x f32>'}}
  %0:2 = "graph.nn_kv_append"(%x, %y, %z, %u) {position = #graph.shape<[0]>} : (tensor<2x16x8xf32>, tensor<2x16x8xf32>, tensor<3x2x8xf32>, tensor<6x8xf32>) -> (tensor<2x16x8xf32>, tensor<2x16x8xf32>)
  return
}

func.func @nn_kv_append_c2(%x: tensor<2x16x8xf32>, %y: tensor<2x16x8xf32>, %z: tensor<3x2x8xf32>, %u: tensor<3x4x8xf32>) {
  // expected-error @below {{'graph.nn_kv_append' op expects one number of heads, but got 2 and 4}}
  %0:2 = "graph.nn_kv_append"(%x, %y, %z, %u) {position = #graph.shape<[0]>} : (tensor<2x16x8xf32>, tensor<2x16x8xf32>, tensor<3x2x8xf32>, tensor<3x4x8xf32>) -> (tensor<2x16x8xf32>, tensor<2x16x8xf32>)
  return
}

func.func @nn_kv_append_c2_head_dim(%x: tensor<2x16x8xf32>, %y: tensor<2x16x8xf32>, %z: tensor<3x2x4xf32>, %u: tensor<3x2x8xf32>) {
  // expected-error @below {{'graph.nn_kv_append' op expects one head dim, but got 8 and 4}}
  %0:2 = "graph.nn_kv_append"(%x, %y, %z, %u) {position = #graph.shape<[0]>} : (tensor<2x16x8xf32>, tensor<2x16x8xf32>, tensor<3x2x4xf32>, tensor<3x2x8xf32>) -> (tensor<2x16x8xf32>, tensor<2x16x8xf32>)
  return
}

func.func @nn_kv_append_c3(%x: tensor<2x16x8xf32>, %y: tensor<2x16x8xf32>, %z: tensor<3x2x8xf32>, %u: tensor<3x2x8xf32>) {
  // expected-error @below {{'graph.nn_kv_append' op expects one known position, but got 2}}
  %0:2 = "graph.nn_kv_append"(%x, %y, %z, %u) {position = #graph.shape<[0, 1]>} : (tensor<2x16x8xf32>, tensor<2x16x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>) -> (tensor<2x16x8xf32>, tensor<2x16x8xf32>)
  return
}

func.func @nn_attention_c1(%x: tensor<3x4x8xf32>, %y: tensor<2x16x8xf32>, %z: tensor<2x16x8xf64>) {
  // expected-error @below {{'graph.nn_attention' op expects one element type, but got f32 and f64}}
  %0 = "graph.nn_attention"(%x, %y, %z) {causal = true, position = #graph.shape<[0]>, scale = 1.250000e-01 : f64} : (tensor<3x4x8xf32>, tensor<2x16x8xf32>, tensor<2x16x8xf64>) -> tensor<3x4x8xf32>
  return
}

func.func @nn_attention_c1_rank(%x: tensor<3x4x8xf32>, %y: tensor<2x16x8xf32>, %z: tensor<16x8xf32>) {
  // expected-error @below {{'graph.nn_attention' op expects operands of rank 3, but got 'tensor<16 x 8 x f32>'}}
  %0 = "graph.nn_attention"(%x, %y, %z) {causal = true, position = #graph.shape<[0]>, scale = 1.250000e-01 : f64} : (tensor<3x4x8xf32>, tensor<2x16x8xf32>, tensor<16x8xf32>) -> tensor<3x4x8xf32>
  return
}

func.func @nn_attention_c2(%x: tensor<3x4x8xf32>, %y: tensor<2x16x8xf32>, %z: tensor<2x16x4xf32>) {
  // expected-error @below {{'graph.nn_attention' op expects one head dim, but got 8 and 4}}
  %0 = "graph.nn_attention"(%x, %y, %z) {causal = true, position = #graph.shape<[0]>, scale = 1.250000e-01 : f64} : (tensor<3x4x8xf32>, tensor<2x16x8xf32>, tensor<2x16x4xf32>) -> tensor<3x4x8xf32>
  return
}

func.func @nn_attention_c3(%x: tensor<3x5x8xf32>, %y: tensor<2x16x8xf32>, %z: tensor<2x16x8xf32>) {
  // expected-error @below {{'graph.nn_attention' op expects constant heads, a multiple of kv_heads, but got 5 and 2}}
  %0 = "graph.nn_attention"(%x, %y, %z) {causal = true, position = #graph.shape<[0]>, scale = 1.250000e-01 : f64} : (tensor<3x5x8xf32>, tensor<2x16x8xf32>, tensor<2x16x8xf32>) -> tensor<3x5x8xf32>
  return
}

func.func @nn_attention_c3_symbolic(%x: tensor<3x?x8xf32, #graph.shape<[3, "h", 8]>>, %y: tensor<2x16x8xf32>, %z: tensor<2x16x8xf32>) {
  // expected-error @below {{'graph.nn_attention' op expects constant heads, a multiple of kv_heads, but got h and 2}}
  %0 = "graph.nn_attention"(%x, %y, %z) {causal = true, position = #graph.shape<[0]>, scale = 1.250000e-01 : f64} : (tensor<3x?x8xf32, #graph.shape<[3, "h", 8]>>, tensor<2x16x8xf32>, tensor<2x16x8xf32>) -> tensor<3x?x8xf32, #graph.shape<[3, "h", 8]>>
  return
}

func.func @nn_attention_c4(%x: tensor<3x4x8xf32>, %y: tensor<2x16x8xf32>, %z: tensor<2x16x8xf32>) {
  // expected-error @below {{'graph.nn_attention' op expects one known position, but got 0}}
  %0 = "graph.nn_attention"(%x, %y, %z) {causal = true, position = #graph.shape<[]>, scale = 1.250000e-01 : f64} : (tensor<3x4x8xf32>, tensor<2x16x8xf32>, tensor<2x16x8xf32>) -> tensor<3x4x8xf32>
  return
}

func.func @nn_batched_attention_c1(%x: tensor<3x5x4x8xf32>, %y: tensor<3x7x2x8xf32>, %z: tensor<3x7x2x6xf32>, %u: tensor<1x1x5x7xf64>) {
  // expected-error @below {{'graph.nn_batched_attention' op expects one element type, but got f32 and f64}}
  %0 = "graph.nn_batched_attention"(%x, %y, %z, %u) {causal = false, operandSegmentSizes = array<i32: 1, 1, 1, 1>, scale = 1.250000e-01 : f64} : (tensor<3x5x4x8xf32>, tensor<3x7x2x8xf32>, tensor<3x7x2x6xf32>, tensor<1x1x5x7xf64>) -> tensor<3x5x4x6xf32>
  return
}

func.func @nn_batched_attention_c1_integer(%x: tensor<3x5x4x8xi32>, %y: tensor<3x7x2x8xi32>, %z: tensor<3x7x2x6xi32>) {
  // expected-error @below {{'graph.nn_batched_attention' op expects a float element type, but got i32}}
  %0 = "graph.nn_batched_attention"(%x, %y, %z) {causal = false, operandSegmentSizes = array<i32: 1, 1, 1, 0>, scale = 1.250000e-01 : f64} : (tensor<3x5x4x8xi32>, tensor<3x7x2x8xi32>, tensor<3x7x2x6xi32>) -> tensor<3x5x4x6xi32>
  return
}

func.func @nn_batched_attention_c1_rank(%x: tensor<3x5x4x8xf32>, %y: tensor<3x7x2x8xf32>, %z: tensor<3x7x2x6xf32>, %u: tensor<5x7xf32>) {
  // expected-error @below {{'graph.nn_batched_attention' op expects operands of rank 4, but got 'tensor<5 x 7 x f32>'}}
  %0 = "graph.nn_batched_attention"(%x, %y, %z, %u) {causal = false, operandSegmentSizes = array<i32: 1, 1, 1, 1>, scale = 1.250000e-01 : f64} : (tensor<3x5x4x8xf32>, tensor<3x7x2x8xf32>, tensor<3x7x2x6xf32>, tensor<5x7xf32>) -> tensor<3x5x4x6xf32>
  return
}

func.func @nn_batched_attention_c2(%x: tensor<3x5x4x8xf32>, %y: tensor<2x7x2x8xf32>, %z: tensor<3x7x2x6xf32>) {
  // expected-error @below {{'graph.nn_batched_attention' op expects one batch, but got 3 and 2}}
  %0 = "graph.nn_batched_attention"(%x, %y, %z) {causal = false, operandSegmentSizes = array<i32: 1, 1, 1, 0>, scale = 1.250000e-01 : f64} : (tensor<3x5x4x8xf32>, tensor<2x7x2x8xf32>, tensor<3x7x2x6xf32>) -> tensor<3x5x4x6xf32>
  return
}

func.func @nn_batched_attention_c2_head_dim(%x: tensor<3x5x4x8xf32>, %y: tensor<3x7x2x6xf32>, %z: tensor<3x7x2x6xf32>) {
  // expected-error @below {{'graph.nn_batched_attention' op expects one head dim, but got 8 and 6}}
  %0 = "graph.nn_batched_attention"(%x, %y, %z) {causal = false, operandSegmentSizes = array<i32: 1, 1, 1, 0>, scale = 1.250000e-01 : f64} : (tensor<3x5x4x8xf32>, tensor<3x7x2x6xf32>, tensor<3x7x2x6xf32>) -> tensor<3x5x4x6xf32>
  return
}

func.func @nn_batched_attention_c2_keys(%x: tensor<3x5x4x8xf32>, %y: tensor<3x7x2x8xf32>, %z: tensor<3x9x2x6xf32>) {
  // expected-error @below {{'graph.nn_batched_attention' op expects one number of keys, but got 7 and 9}}
  %0 = "graph.nn_batched_attention"(%x, %y, %z) {causal = false, operandSegmentSizes = array<i32: 1, 1, 1, 0>, scale = 1.250000e-01 : f64} : (tensor<3x5x4x8xf32>, tensor<3x7x2x8xf32>, tensor<3x9x2x6xf32>) -> tensor<3x5x4x6xf32>
  return
}

func.func @nn_batched_attention_c2_heads(%x: tensor<3x5x4x8xf32>, %y: tensor<3x7x2x8xf32>, %z: tensor<3x7x1x6xf32>) {
  // expected-error @below {{'graph.nn_batched_attention' op expects one number of heads, but got 2 and 1}}
  %0 = "graph.nn_batched_attention"(%x, %y, %z) {causal = false, operandSegmentSizes = array<i32: 1, 1, 1, 0>, scale = 1.250000e-01 : f64} : (tensor<3x5x4x8xf32>, tensor<3x7x2x8xf32>, tensor<3x7x1x6xf32>) -> tensor<3x5x4x6xf32>
  return
}

func.func @nn_batched_attention_c3(%x: tensor<3x5x4x8xf32>, %y: tensor<3x7x3x8xf32>, %z: tensor<3x7x3x6xf32>) {
  // expected-error @below {{'graph.nn_batched_attention' op expects constant heads, a multiple of kv_heads, but got 4 and 3}}
  %0 = "graph.nn_batched_attention"(%x, %y, %z) {causal = false, operandSegmentSizes = array<i32: 1, 1, 1, 0>, scale = 1.250000e-01 : f64} : (tensor<3x5x4x8xf32>, tensor<3x7x3x8xf32>, tensor<3x7x3x6xf32>) -> tensor<3x5x4x6xf32>
  return
}

func.func @nn_batched_attention_c4(%x: tensor<3x5x4x8xf32>, %y: tensor<3x7x2x8xf32>, %z: tensor<3x7x2x6xf32>, %u: tensor<1x1x7x7xf32>) {
  // expected-error @below {{'graph.nn_batched_attention' op masks scores of dim 5 with a dim of 7}}
  %0 = "graph.nn_batched_attention"(%x, %y, %z, %u) {causal = false, operandSegmentSizes = array<i32: 1, 1, 1, 1>, scale = 1.250000e-01 : f64} : (tensor<3x5x4x8xf32>, tensor<3x7x2x8xf32>, tensor<3x7x2x6xf32>, tensor<1x1x7x7xf32>) -> tensor<3x5x4x6xf32>
  return
}
