// RUN: relax-opt %s --relax-fold-batch-norm --pretty | FileCheck %s

!x = tensor<?x3x?x5xf32, #graph.shape<["n", 3, "h", 5]>>
!w = tensor<4x3x1x1xf32>
!y = tensor<?x4x?x5xf32, #graph.shape<["n", 4, "h", 5]>>
!c = tensor<4x1x1xf32>
!d = tensor<1x4x1x1xf32>

// CHECK-LABEL: func @normalized(
// CHECK-NEXT:    %0 = graph.reshape(%arg3) {{.*}} : tensor<4 x 1 x 1 x 1 x f32>
// CHECK-NEXT:    %1 = graph.multiply(%arg1, %0) : tensor<4 x 3 x 1 x 1 x f32>
// CHECK-NEXT:    %2 = graph.nn_conv2d(%arg0, %1)
// CHECK-NEXT:    %3 = graph.multiply(%arg2, %arg3)
// CHECK-NEXT:    %4 = graph.subtract(%2, %3)
// CHECK-NEXT:    %5 = graph.add(%4, %arg4)
// CHECK-NEXT:    return %5
func.func @normalized(%x: !x, %w: !w, %mean: !c, %scale: !d, %shift: !c) -> !y attributes {graph.num_inputs = 1 : i64} {
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (!x, !w) -> !y
  %1 = "graph.subtract"(%0, %mean) : (!y, !c) -> !y
  %2 = "graph.multiply"(%1, %scale) : (!y, !d) -> !y
  %3 = "graph.add"(%2, %shift) : (!y, !c) -> !y
  return %3 : !y
}

// Two scales: by a square root that is made of a parameter, and by one number.
// CHECK-LABEL: func @divided(
// CHECK-NEXT:    %0 = constant
// CHECK-NEXT:    graph.sqrt(%arg2)
// CHECK-NEXT:    graph.reshape
// CHECK-NEXT:    graph.divide(%arg1,
// CHECK-NEXT:    graph.reshape(%0)
// CHECK-NEXT:    graph.multiply
// CHECK-NEXT:    graph.nn_conv2d
// CHECK-NEXT:    return
func.func @divided(%x: !x, %w: !w, %variance: !c) -> !y attributes {graph.num_inputs = 1 : i64} {
  %half = arith.constant dense<0.5> : tensor<f32>
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (!x, !w) -> !y
  %1 = "graph.sqrt"(%variance) : (!c) -> !c
  %2 = "graph.divide"(%0, %1) : (!y, !c) -> !y
  %3 = "graph.multiply"(%half, %2) : (tensor<f32>, !y) -> !y
  return %3 : !y
}

// A scale that is an input, one along the width, and one that is divided by the convolution.
// CHECK-LABEL: func @negative_scales(
// CHECK-NEXT:    graph.nn_conv2d(%arg0, %arg2)
// CHECK-NEXT:    graph.multiply
// CHECK-NEXT:    graph.nn_conv2d(%arg0, %arg2)
// CHECK-NEXT:    graph.multiply
// CHECK-NEXT:    graph.nn_conv2d(%arg0, %arg2)
// CHECK-NEXT:    graph.divide
func.func @negative_scales(%x: !x, %s: !c, %w: !w, %t: tensor<5xf32>, %u: !c) -> (!y, !y, !y) attributes {graph.num_inputs = 2 : i64} {
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (!x, !w) -> !y
  %1 = "graph.multiply"(%0, %s) : (!y, !c) -> !y
  %2 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (!x, !w) -> !y
  %3 = "graph.multiply"(%2, %t) : (!y, tensor<5xf32>) -> !y
  %4 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (!x, !w) -> !y
  %5 = "graph.divide"(%u, %4) : (!c, !y) -> !y
  return %1, %3, %5 : !y, !y, !y
}
