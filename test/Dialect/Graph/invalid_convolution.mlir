// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(relax-verify)'

!x = tensor<1x4x8x8xf32>
!w = tensor<6x4x3x3xf32>
!y = tensor<1x6x6x6xf32>

func.func @nn_conv2d_c1(%x: tensor<4x8x8xf32>, %w: !w) {
  // expected-error @below {{'graph.nn_conv2d' op expects operands of rank 4, but got 'tensor<4 x 8 x 8 x f32>'}}
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<4x8x8xf32>, !w) -> !y
  return
}

func.func @nn_conv2d_c1_weight(%x: !x, %w: tensor<6x36xf32>) {
  // expected-error @below {{'graph.nn_conv2d' op expects operands of rank 4, but got 'tensor<6 x 36 x f32>'}}
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (!x, tensor<6x36xf32>) -> !y
  return
}

func.func @nn_conv2d_c2(%x: !x, %w: tensor<6x4x3x3xf16>) {
  // expected-error @below {{'graph.nn_conv2d' op expects one element type, but got f32 and f16}}
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (!x, tensor<6x4x3x3xf16>) -> !y
  return
}

func.func @nn_conv2d_c2_integers(%x: tensor<1x4x8x8xi8>, %w: tensor<6x4x3x3xi8>) {
  // expected-error @below {{'graph.nn_conv2d' op expects a float element type, but got i8}}
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x4x8x8xi8>, tensor<6x4x3x3xi8>) -> tensor<1x6x6x6xi8>
  return
}

func.func @nn_conv2d_c3(%x: !x, %w: !w) {
  // expected-error @below {{'graph.nn_conv2d' op expects 'strides' to be two positive numbers, but got [1, 0]}}
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 0>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (!x, !w) -> !y
  return
}

func.func @nn_conv2d_c3_dilation(%x: !x, %w: !w) {
  // expected-error @below {{'graph.nn_conv2d' op expects 'dilation' to be two positive numbers, but got [1]}}
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1>, groups = 1 : i64} : (!x, !w) -> !y
  return
}

func.func @nn_conv2d_c3_padding(%x: !x, %w: !w) {
  // expected-error @below {{'graph.nn_conv2d' op expects 'padding' to be four numbers that are not negative, but got [0, 0, -1, 0]}}
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, -1, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (!x, !w) -> !y
  return
}

func.func @nn_conv2d_c4_symbolic(%x: !x, %w: tensor<6x4x3x?xf32, #graph.shape<[6, 4, 3, "k"]>>) {
  // expected-error @below {{'graph.nn_conv2d' op expects a filter of constant height and width, but got k}}
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (!x, tensor<6x4x3x?xf32, #graph.shape<[6, 4, 3, "k"]>>) -> !y
  return
}

func.func @nn_conv2d_c5(%x: !x, %w: !w) {
  // expected-error @below {{'graph.nn_conv2d' op expects 8 channels, 4 for each of 2 groups, but got 4}}
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, groups = 2 : i64} : (!x, !w) -> !y
  return
}

func.func @nn_conv2d_c5_symbolic(%x: tensor<1x?x8x8xf32, #graph.shape<[1, "c", 8, 8]>>, %w: tensor<6x?x3x3xf32, #graph.shape<[6, "c + 1", 3, 3]>>) {
  // expected-error @below {{'graph.nn_conv2d' op expects c + 1 channels, c + 1 for each of 1 groups, but got c}}
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x?x8x8xf32, #graph.shape<[1, "c", 8, 8]>>, tensor<6x?x3x3xf32, #graph.shape<[6, "c + 1", 3, 3]>>) -> !y
  return
}

func.func @nn_conv2d_c6(%x: !x, %w: tensor<6x1x3x3xf32>) {
  // expected-error @below {{'graph.nn_conv2d' op expects groups to divide the filters, but got 4 and 6}}
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, groups = 4 : i64} : (!x, tensor<6x1x3x3xf32>) -> !y
  return
}

func.func @nn_conv2d_c6_none(%x: !x, %w: !w) {
  // expected-error @below {{'graph.nn_conv2d' op expects one group or more, but got 0}}
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, groups = 0 : i64} : (!x, !w) -> !y
  return
}

func.func @nn_conv2d_c6_symbolic(%x: !x, %w: tensor<?x2x3x3xf32, #graph.shape<["o", 2, 3, 3]>>) {
  // expected-error @below {{'graph.nn_conv2d' op expects a constant number of filters, but got o}}
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, groups = 2 : i64} : (!x, tensor<?x2x3x3xf32, #graph.shape<["o", 2, 3, 3]>>) -> !y
  return
}

func.func @nn_conv2d_c7(%x: !x, %w: tensor<6x4x3x11xf32>) {
  // expected-error @below {{'graph.nn_conv2d' op slides a window of 11 over 9 elements}}
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 1, 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (!x, tensor<6x4x3x11xf32>) -> !y
  return
}

func.func @nn_max_pool2d_c1(%x: tensor<4x8x8xf32>) {
  // expected-error @below {{'graph.nn_max_pool2d' op expects operands of rank 4, but got 'tensor<4 x 8 x 8 x f32>'}}
  %0 = "graph.nn_max_pool2d"(%x) {window = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>} : (tensor<4x8x8xf32>) -> !x
  return
}

func.func @nn_max_pool2d_c2(%x: tensor<1x4x8x8xi1>) {
  // expected-error @below {{'graph.nn_max_pool2d' op expects a number element type, but got i1}}
  %0 = "graph.nn_max_pool2d"(%x) {window = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>} : (tensor<1x4x8x8xi1>) -> tensor<1x4x4x4xi1>
  return
}

func.func @nn_max_pool2d_c3(%x: !x) {
  // expected-error @below {{'graph.nn_max_pool2d' op expects 'window' to be two positive numbers, but got [2]}}
  %0 = "graph.nn_max_pool2d"(%x) {window = array<i64: 2>, strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>} : (!x) -> !x
  return
}

func.func @nn_max_pool2d_c4(%x: !x) {
  // expected-error @below {{'graph.nn_max_pool2d' op slides a window of 12 over 8 elements}}
  %0 = "graph.nn_max_pool2d"(%x) {window = array<i64: 12, 2>, strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>} : (!x) -> !x
  return
}

func.func @nn_sum_pool2d_c1(%x: tensor<4x8x8xf32>) {
  // expected-error @below {{'graph.nn_sum_pool2d' op expects operands of rank 4, but got 'tensor<4 x 8 x 8 x f32>'}}
  %0 = "graph.nn_sum_pool2d"(%x) {window = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>} : (tensor<4x8x8xf32>) -> !x
  return
}

func.func @nn_sum_pool2d_c2(%x: tensor<1x4x8x8xi1>) {
  // expected-error @below {{'graph.nn_sum_pool2d' op expects a number element type, but got i1}}
  %0 = "graph.nn_sum_pool2d"(%x) {window = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>} : (tensor<1x4x8x8xi1>) -> tensor<1x4x4x4xi1>
  return
}

func.func @nn_sum_pool2d_c3(%x: !x) {
  // expected-error @below {{'graph.nn_sum_pool2d' op expects 'window' to be two positive numbers, but got [2]}}
  %0 = "graph.nn_sum_pool2d"(%x) {window = array<i64: 2>, strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>} : (!x) -> !x
  return
}

func.func @nn_sum_pool2d_c4(%x: !x) {
  // expected-error @below {{'graph.nn_sum_pool2d' op slides a window of 12 over 8 elements}}
  %0 = "graph.nn_sum_pool2d"(%x) {window = array<i64: 12, 2>, strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>} : (!x) -> !x
  return
}
