// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(relax-verify)'

func.func @take_c1(%x: tensor<9x4xf32>, %y: tensor<3xi64>) {
  // expected-error @below {{'graph.take' op has axis 2, but rank 2 accepts -2 to 1}}
  %0 = "graph.take"(%x, %y) {axis = 2 : i64} : (tensor<9x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
  return
}

func.func @take_c1_negative(%x: tensor<9x4xf32>, %y: tensor<3xi64>) {
  // expected-error @below {{'graph.take' op has axis -3, but rank 2 accepts -2 to 1}}
  %0 = "graph.take"(%x, %y) {axis = -3 : i64} : (tensor<9x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
  return
}

func.func @take_c2(%x: tensor<9x4xf32>, %y: tensor<3xf32>) {
  // expected-error @below {{'graph.take' op expects integer indices, but got f32}}
  %0 = "graph.take"(%x, %y) {axis = 0 : i64} : (tensor<9x4xf32>, tensor<3xf32>) -> tensor<3x4xf32>
  return
}

func.func @take_c3(%x: tensor<4x0xf32>, %y: tensor<3x2xi64>) {
  // expected-error @below {{'graph.take' op picks 6 elements from axis 1, which has none}}
  %0 = "graph.take"(%x, %y) {axis = 1 : i64} : (tensor<4x0xf32>, tensor<3x2xi64>) -> tensor<4x3x2xf32>
  return
}

func.func @strided_slice_c1(%x: tensor<9x4xf32>) {
  // expected-error @below {{'graph.strided_slice' op expects distinct axes, but got (0, -2)}}
  %0 = "graph.strided_slice"(%x) {axes = array<i64: 0, -2>, begin = #graph.shape<[0, 0]>, end = #graph.shape<[1, 1]>, strides = array<i64: 1, 1>} : (tensor<9x4xf32>) -> tensor<1x4xf32>
  return
}

func.func @strided_slice_c1_range(%x: tensor<9x4xf32>) {
  // expected-error @below {{'graph.strided_slice' op has axis 2, but rank 2 accepts -2 to 1}}
  %0 = "graph.strided_slice"(%x) {axes = array<i64: 2>, begin = #graph.shape<[0]>, end = #graph.shape<[1]>, strides = array<i64: 1>} : (tensor<9x4xf32>) -> tensor<1x4xf32>
  return
}

func.func @strided_slice_c2(%x: tensor<9x4xf32>) {
  // expected-error @below {{'graph.strided_slice' op expects bounds for 1 axes, but got 1, 2 and 1}}
  %0 = "graph.strided_slice"(%x) {axes = array<i64: 0>, begin = #graph.shape<[0]>, end = #graph.shape<[1, 1]>, strides = array<i64: 1>} : (tensor<9x4xf32>) -> tensor<1x4xf32>
  return
}

func.func @strided_slice_c3(%x: tensor<9x4xf32>) {
  // expected-error @below {{'graph.strided_slice' op expects known bounds and positive strides}}
  %0 = "graph.strided_slice"(%x) {axes = array<i64: 0>, begin = #graph.shape<[0]>, end = #graph.shape<["?"]>, strides = array<i64: 1>} : (tensor<9x4xf32>) -> tensor<?x4xf32>
  return
}

func.func @strided_slice_c3_stride(%x: tensor<9x4xf32>) {
  // expected-error @below {{'graph.strided_slice' op expects known bounds and positive strides}}
  %0 = "graph.strided_slice"(%x) {axes = array<i64: 0>, begin = #graph.shape<[0]>, end = #graph.shape<[1]>, strides = array<i64: 0>} : (tensor<9x4xf32>) -> tensor<1x4xf32>
  return
}

func.func @dynamic_slice_c1(%x: tensor<9x4xf32>, %y: tensor<2xf32>) {
  // expected-error @below {{'graph.dynamic_slice' op expects integer indices, but got f32}}
  %0 = "graph.dynamic_slice"(%x, %y) {sizes = #graph.shape<[2, 2]>} : (tensor<9x4xf32>, tensor<2xf32>) -> tensor<2x2xf32>
  return
}

func.func @dynamic_slice_c1_count(%x: tensor<9x4xf32>, %y: tensor<3xi64>) {
  // expected-error @below {{'graph.dynamic_slice' op expects 2 starts in a tensor of rank 1, but got 'tensor<3 x i64>'}}
  %0 = "graph.dynamic_slice"(%x, %y) {sizes = #graph.shape<[2, 2]>} : (tensor<9x4xf32>, tensor<3xi64>) -> tensor<2x2xf32>
  return
}

func.func @dynamic_slice_c2(%x: tensor<9x4xf32>, %y: tensor<2xi64>) {
  // expected-error @below {{'graph.dynamic_slice' op expects known extents}}
  %0 = "graph.dynamic_slice"(%x, %y) {sizes = #graph.shape<[2, "?"]>} : (tensor<9x4xf32>, tensor<2xi64>) -> tensor<2x2xf32>
  return
}

func.func @dynamic_slice_c2_count(%x: tensor<9x4xf32>, %y: tensor<2xi64>) {
  // expected-error @below {{'graph.dynamic_slice' op expects 2 extents, but got 1}}
  %0 = "graph.dynamic_slice"(%x, %y) {sizes = #graph.shape<[2]>} : (tensor<9x4xf32>, tensor<2xi64>) -> tensor<2x2xf32>
  return
}

func.func @dynamic_slice_c3(%x: tensor<9x4xf32>, %y: tensor<2xi64>) {
  // expected-error @below {{'graph.dynamic_slice' op has a part with dim 1 of 5 in one of 4}}
  %0 = "graph.dynamic_slice"(%x, %y) {sizes = #graph.shape<[2, 5]>} : (tensor<9x4xf32>, tensor<2xi64>) -> tensor<2x2xf32>
  return
}
