// RUN: relax-opt %s --relax-verify | relax-opt --relax-verify | FileCheck %s

// CHECK-LABEL: func.func @static
func.func @static(%x: tensor<2x4x8x9xf32>, %w: tensor<6x2x3x3xf32>, %i: tensor<1x1x5x5xi8>) {
  // CHECK: "graph.nn_conv2d"(%{{.*}}, %{{.*}}) {dilation = array<i64: 1, 2>, groups = 2 : i64, padding = array<i64: 1, 2, 1, 2>, strides = array<i64: 2, 1>} : (tensor<2x4x8x9xf32>, tensor<6x2x3x3xf32>) -> tensor<2x6x4x9xf32>
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 2, 1>, padding = array<i64: 1, 2, 1, 2>, dilation = array<i64: 1, 2>, groups = 2 : i64} : (tensor<2x4x8x9xf32>, tensor<6x2x3x3xf32>) -> tensor<2x6x4x9xf32>
  // CHECK: "graph.nn_max_pool2d"(%{{.*}}) {dilation = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 2, 2>, window = array<i64: 3, 2>} : (tensor<1x1x5x5xi8>) -> tensor<1x1x2x2xi8>
  %1 = "graph.nn_max_pool2d"(%i) {window = array<i64: 3, 2>, strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>} : (tensor<1x1x5x5xi8>) -> tensor<1x1x2x2xi8>
  // CHECK: "graph.nn_sum_pool2d"(%{{.*}}) {dilation = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 2, 2>, window = array<i64: 3, 2>} : (tensor<1x1x5x5xi8>) -> tensor<1x1x2x2xi8>
  %2 = "graph.nn_sum_pool2d"(%i) {window = array<i64: 3, 2>, strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>} : (tensor<1x1x5x5xi8>) -> tensor<1x1x2x2xi8>
  return
}

!x = tensor<?x3x?x?xf32, #graph.shape<["n", 3, "h", "w"]>>
!y = tensor<?x8x?x?xf32, #graph.shape<["n", 8, "(h + 1) floordiv 2", "w"]>>
!z = tensor<?x8x?x?xf32, #graph.shape<["n", 8, "(h + 1) floordiv 2 - 2", "w - 1"]>>

// CHECK-LABEL: func.func @symbolic
func.func @symbolic(%x: !x, %w: tensor<8x3x3x1xf32>) {
  // CHECK: "graph.nn_conv2d"{{.*}} -> tensor<?x8x?x?xf32, #graph.shape<["n", 8, "(h + 1) floordiv 2", "w"]>>
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 2, 1>, padding = array<i64: 1, 0, 1, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (!x, tensor<8x3x3x1xf32>) -> !y
  // CHECK: "graph.nn_max_pool2d"{{.*}} -> tensor<?x8x?x?xf32, #graph.shape<["n", 8, "(h + 1) floordiv 2 - 2", "w - 1"]>>
  %1 = "graph.nn_max_pool2d"(%0) {window = array<i64: 2, 2>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 2, 1>} : (!y) -> !z
  return
}

// CHECK-LABEL: func.func @coarse
func.func @coarse(%x: tensor<*xf32>, %w: tensor<8x?x3x3xf32>, %y: tensor<1x3x?x4xf32>) {
  // CHECK: "graph.nn_conv2d"{{.*}} -> tensor<*xf32>
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<*xf32>, tensor<8x?x3x3xf32>) -> tensor<*xf32>
  // CHECK: "graph.nn_conv2d"{{.*}} -> tensor<1x8x?x4xf32>
  %1 = "graph.nn_conv2d"(%y, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x3x?x4xf32>, tensor<8x?x3x3xf32>) -> tensor<1x8x?x4xf32>
  return
}
