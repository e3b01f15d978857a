// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(relax-verify)'

func.func @permute_dims_c1(%x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.permute_dims' op expects a permutation of 2 dims, but got (0, 0)}}
  %0 = "graph.permute_dims"(%x) {axes = array<i64: 0, 0>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

func.func @permute_dims_c1_count(%x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.permute_dims' op expects a permutation of 2 dims, but got (0,)}}
  %0 = "graph.permute_dims"(%x) {axes = array<i64: 0>} : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}

func.func @reshape_c1(%x: tensor<4xf32>) {
  // expected-error @below {{'graph.reshape' op expects known dims, but got 'tensor<? x f32>'}}
  %0 = "graph.reshape"(%x) {shape = #graph.shape<["?"]>} : (tensor<4xf32>) -> tensor<?xf32>
  return
}

func.func @reshape_c2(%x: tensor<2x3xf32>) {
  // expected-error @below {{'graph.reshape' op has 6 elements, which 'tensor<4 x 2 x f32>' cannot hold}}
  %0 = "graph.reshape"(%x) {shape = #graph.shape<[4, 2]>} : (tensor<2x3xf32>) -> tensor<4x2xf32>
  return
}

func.func @reshape_c2_symbolic(%x: tensor<?x2xf32, #graph.shape<["n", 2]>>) {
  // expected-error @below {{'graph.reshape' op has 2*n elements, which 'tensor<2*n + 1 x f32>' cannot hold}}
  %0 = "graph.reshape"(%x) {shape = #graph.shape<["2*n + 1"]>} : (tensor<?x2xf32, #graph.shape<["n", 2]>>) -> tensor<?xf32, #graph.shape<["2*n + 1"]>>
  return
}

func.func @expand_dims_c1(%x: tensor<4xf32>) {
  // expected-error @below {{'graph.expand_dims' op expects distinct axes, but got (0, -3)}}
  %0 = "graph.expand_dims"(%x) {axes = array<i64: 0, -3>} : (tensor<4xf32>) -> tensor<1x4x1xf32>
  return
}

func.func @expand_dims_c1_range(%x: tensor<4xf32>) {
  // expected-error @below {{'graph.expand_dims' op has axis 2, but rank 2 accepts -2 to 1}}
  %0 = "graph.expand_dims"(%x) {axes = array<i64: 2>} : (tensor<4xf32>) -> tensor<4x1xf32>
  return
}

func.func @squeeze_c1(%x: tensor<1x4xf32>) {
  // expected-error @below {{'graph.squeeze' op expects distinct axes, but got (0, -2)}}
  %0 = "graph.squeeze"(%x) {axes = array<i64: 0, -2>} : (tensor<1x4xf32>) -> tensor<4xf32>
  return
}

func.func @squeeze_c2(%x: tensor<3x4xf32>) {
  // expected-error @below {{'graph.squeeze' op cannot remove dim 0 of extent 3}}
  %0 = "graph.squeeze"(%x) {axes = array<i64: 0>} : (tensor<3x4xf32>) -> tensor<4xf32>
  return
}

func.func @squeeze_c2_symbolic(%x: tensor<?x4xf32, #graph.shape<["n + 2", 4]>>) {
  // expected-error @below {{'graph.squeeze' op cannot remove dim 0 of extent n + 2}}
  %0 = "graph.squeeze"(%x) {axes = array<i64: 0>} : (tensor<?x4xf32, #graph.shape<["n + 2", 4]>>) -> tensor<4xf32>
  return
}

func.func @broadcast_to_c1(%x: tensor<4xf32>) {
  // expected-error @below {{'graph.broadcast_to' op expects known dims, but got 'tensor<? x 4 x f32>'}}
  %0 = "graph.broadcast_to"(%x) {shape = #graph.shape<["?", 4]>} : (tensor<4xf32>) -> tensor<?x4xf32>
  return
}

func.func @broadcast_to_c2(%x: tensor<3xf32>) {
  // expected-error @below {{'graph.broadcast_to' op cannot broadcast 'tensor<3 x f32>' to 'tensor<1 x f32>'}}
  %0 = "graph.broadcast_to"(%x) {shape = #graph.shape<[1]>} : (tensor<3xf32>) -> tensor<1xf32>
  return
}

func.func @broadcast_to_c2_rank(%x: tensor<1x3xf32>) {
  // expected-error @below {{'graph.broadcast_to' op cannot broadcast 'tensor<1 x 3 x f32>' to the lower rank of 'tensor<3 x f32>'}}
  %0 = "graph.broadcast_to"(%x) {shape = #graph.shape<[3]>} : (tensor<1x3xf32>) -> tensor<3xf32>
  return
}

func.func @concat_c1() {
  // expected-error @below {{'graph.concat' op expects at least one operand}}
  %0 = "graph.concat"() {axis = 0 : i64, operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : () -> tensor<0xf32>
  return
}

func.func @concat_c2(%x: tensor<4xf32>, %y: tensor<4xf64>) {
  // expected-error @below {{'graph.concat' op expects one element type, but got f32 and f64}}
  %0 = "graph.concat"(%x, %y) {axis = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf32>, tensor<4xf64>) -> tensor<8xf32>
  return
}

func.func @concat_c3(%x: tensor<4xf32>, %y: tensor<4x1xf32>) {
  // expected-error @below {{'graph.concat' op expects operands of one rank, but got ranks [1, 2]}}
  %0 = "graph.concat"(%x, %y) {axis = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf32>, tensor<4x1xf32>) -> tensor<8xf32>
  return
}

func.func @concat_c3_axis(%x: tensor<4xf32>, %y: tensor<4xf32>) {
  // expected-error @below {{'graph.concat' op has axis 1, but rank 1 accepts -1 to 0}}
  %0 = "graph.concat"(%x, %y) {axis = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  return
}

func.func @concat_c4(%x: tensor<4x2xf32>, %y: tensor<4x3xf32>) {
  // expected-error @below {{'graph.concat' op joins dim 1 of 2 with one of 3}}
  %0 = "graph.concat"(%x, %y) {axis = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4x2xf32>, tensor<4x3xf32>) -> tensor<8x2xf32>
  return
}

func.func @split_c1(%x: tensor<4xf32>) {
  // expected-error @below {{'graph.split' op has axis 1, but rank 1 accepts -1 to 0}}
  %0:2 = "graph.split"(%x) {axis = 1 : i64, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>, sizes = #graph.shape<[2, 2]>} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  return
}

func.func @split_c3(%x: tensor<4xf32>) {
  // expected-error @below {{'graph.split' op expects 1 operand(s), but got 2}}
  %0:2 = "graph.split"(%x, %x) {axis = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>, sizes = #graph.shape<[2, 2]>} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  return
}

func.func @split_c2(%x: tensor<4xf32>) {
  // expected-error @below {{'graph.split' op splits dim 0 of 4 into extents of 5}}
  %0:2 = "graph.split"(%x) {axis = 0 : i64, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>, sizes = #graph.shape<[2, 3]>} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<3xf32>)
  return
}

func.func @split_c2_unknown(%x: tensor<4xf32>) {
  // expected-error @below {{'graph.split' op expects known extents, but got}}
  %0:2 = "graph.split"(%x) {axis = 0 : i64, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>, sizes = #graph.shape<[2, "?"]>} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<?xf32>)
  return
}

func.func @negative_number_of_results(%x: tensor<4xf32>) {
  // expected-error @below {{'graph.split' op infers 1 results, but has 2}}
  %0:2 = "graph.split"(%x) {axis = 0 : i64, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>, sizes = #graph.shape<[4]>} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  return
}
