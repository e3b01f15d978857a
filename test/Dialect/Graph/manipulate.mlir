// RUN: relax-opt %s --relax-verify | relax-opt --relax-verify | FileCheck %s

// CHECK-LABEL: func.func @static
func.func @static(%x: tensor<2x3x4xf32>, %y: tensor<f32>, %z: tensor<4xf32>, %u: tensor<1x4x1xf32>, %v: tensor<3x1xf32>, %w: tensor<2x4xf32>, %a: tensor<3x4xf32>, %b: tensor<4x5xf32>) {
  // CHECK: "graph.permute_dims"(%{{.*}}) {axes = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  %0 = "graph.permute_dims"(%x) {axes = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  // CHECK: "graph.permute_dims"(%{{.*}}) {axes = array<i64>} : (tensor<f32>) -> tensor<f32>
  %1 = "graph.permute_dims"(%y) {axes = array<i64>} : (tensor<f32>) -> tensor<f32>
  // CHECK: "graph.reshape"(%{{.*}}) {shape = #graph.shape<[6, 4]>} : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %2 = "graph.reshape"(%x) {shape = #graph.shape<[6, 4]>} : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  // CHECK: "graph.reshape"(%{{.*}}) {shape = #graph.shape<[1, 1]>} : (tensor<f32>) -> tensor<1x1xf32>
  %3 = "graph.reshape"(%y) {shape = #graph.shape<[1, 1]>} : (tensor<f32>) -> tensor<1x1xf32>
  // CHECK: "graph.expand_dims"(%{{.*}}) {axes = array<i64: 0, -1>} : (tensor<4xf32>) -> tensor<1x4x1xf32>
  %4 = "graph.expand_dims"(%z) {axes = array<i64: 0, -1>} : (tensor<4xf32>) -> tensor<1x4x1xf32>
  // CHECK: "graph.squeeze"(%{{.*}}) {axes = array<i64: 0, 2>} : (tensor<1x4x1xf32>) -> tensor<4xf32>
  %5 = "graph.squeeze"(%u) {axes = array<i64: 0, 2>} : (tensor<1x4x1xf32>) -> tensor<4xf32>
  // CHECK: "graph.broadcast_to"(%{{.*}}) {shape = #graph.shape<[2, 3, 5]>} : (tensor<3x1xf32>) -> tensor<2x3x5xf32>
  %6 = "graph.broadcast_to"(%v) {shape = #graph.shape<[2, 3, 5]>} : (tensor<3x1xf32>) -> tensor<2x3x5xf32>
  // CHECK: "graph.concat"(%{{.*}}, %{{.*}}) {axis = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x4xf32>, tensor<3x4xf32>) -> tensor<5x4xf32>
  %7 = "graph.concat"(%w, %a) {axis = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x4xf32>, tensor<3x4xf32>) -> tensor<5x4xf32>
  // CHECK: "graph.split"(%{{.*}}) {axis = -1 : i64, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>, sizes = #graph.shape<[2, 3]>} : (tensor<4x5xf32>) -> (tensor<4x2xf32>, tensor<4x3xf32>)
  %8:2 = "graph.split"(%b) {axis = -1 : i64, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>, sizes = #graph.shape<[2, 3]>} : (tensor<4x5xf32>) -> (tensor<4x2xf32>, tensor<4x3xf32>)
  return
}

// CHECK-LABEL: func.func @symbolic
func.func @symbolic(%x: tensor<?x?xf32, #graph.shape<["n", "m"]>>, %y: tensor<?x4xf32, #graph.shape<["n", 4]>>, %z: tensor<?x1xf32, #graph.shape<["n", 1]>>, %u: tensor<?x4xf32, #graph.shape<["m", 4]>>, %v: tensor<?x4xf32, #graph.shape<["m + n", 4]>>, %s: !graph.shape_value<["b"]>) {
  // CHECK: "graph.permute_dims"(%{{.*}}) {axes = array<i64: 1, 0>} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>) -> tensor<?x?xf32, #graph.shape<["m", "n"]>>
  %0 = "graph.permute_dims"(%x) {axes = array<i64: 1, 0>} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>) -> tensor<?x?xf32, #graph.shape<["m", "n"]>>
  // CHECK: "graph.reshape"(%{{.*}}) {shape = #graph.shape<["m*n"]>} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>) -> tensor<?xf32, #graph.shape<["m*n"]>>
  %1 = "graph.reshape"(%x) {shape = #graph.shape<["n*m"]>} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>) -> tensor<?xf32, #graph.shape<["n*m"]>>
  // CHECK: "graph.reshape"(%{{.*}}) {shape = #graph.shape<["2*n", 2]>} : (tensor<?x4xf32, #graph.shape<["n", 4]>>) -> tensor<?x2xf32, #graph.shape<["2*n", 2]>>
  %2 = "graph.reshape"(%y) {shape = #graph.shape<["2*n", 2]>} : (tensor<?x4xf32, #graph.shape<["n", 4]>>) -> tensor<?x2xf32, #graph.shape<["2*n", 2]>>
  // CHECK: "graph.expand_dims"(%{{.*}}) {axes = array<i64: 1>} : (tensor<?x4xf32, #graph.shape<["n", 4]>>) -> tensor<?x1x4xf32, #graph.shape<["n", 1, 4]>>
  %3 = "graph.expand_dims"(%y) {axes = array<i64: 1>} : (tensor<?x4xf32, #graph.shape<["n", 4]>>) -> tensor<?x1x4xf32, #graph.shape<["n", 1, 4]>>
  // CHECK: "graph.squeeze"(%{{.*}}) {axes = array<i64: 1>} : (tensor<?x1xf32, #graph.shape<["n", 1]>>) -> tensor<?xf32, #graph.shape<["n"]>>
  %4 = "graph.squeeze"(%z) {axes = array<i64: 1>} : (tensor<?x1xf32, #graph.shape<["n", 1]>>) -> tensor<?xf32, #graph.shape<["n"]>>
  // CHECK: "graph.broadcast_to"(%{{.*}}) {shape = #graph.shape<["b", "n", 4]>} : (tensor<?x1xf32, #graph.shape<["n", 1]>>) -> tensor<?x?x4xf32, #graph.shape<["b", "n", 4]>>
  %5 = "graph.broadcast_to"(%z) {shape = #graph.shape<["b", "n", 4]>} : (tensor<?x1xf32, #graph.shape<["n", 1]>>) -> tensor<?x?x4xf32, #graph.shape<["b", "n", 4]>>
  // CHECK: "graph.concat"(%{{.*}}, %{{.*}}) {axis = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<?x4xf32, #graph.shape<["n", 4]>>, tensor<?x4xf32, #graph.shape<["m", 4]>>) -> tensor<?x4xf32, #graph.shape<["m + n", 4]>>
  %6 = "graph.concat"(%y, %u) {axis = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<?x4xf32, #graph.shape<["n", 4]>>, tensor<?x4xf32, #graph.shape<["m", 4]>>) -> tensor<?x4xf32, #graph.shape<["m + n", 4]>>
  // CHECK: "graph.split"(%{{.*}}) {axis = 0 : i64, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>, sizes = #graph.shape<["n", "m"]>} : (tensor<?x4xf32, #graph.shape<["m + n", 4]>>) -> (tensor<?x4xf32, #graph.shape<["n", 4]>>, tensor<?x4xf32, #graph.shape<["m", 4]>>)
  %7:2 = "graph.split"(%v) {axis = 0 : i64, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>, sizes = #graph.shape<["n", "m"]>} : (tensor<?x4xf32, #graph.shape<["m + n", 4]>>) -> (tensor<?x4xf32, #graph.shape<["n", 4]>>, tensor<?x4xf32, #graph.shape<["m", 4]>>)
  return
}

// CHECK-LABEL: func.func @coarse
func.func @coarse(%x: tensor<*xf32>, %y: tensor<?xf32>, %z: tensor<?x3xf32>, %u: tensor<?x4xf32>, %v: tensor<?x4xf32, #graph.shape<["n", 4]>>) {
  // CHECK: "graph.permute_dims"(%{{.*}}) {axes = array<i64: 1, 0>} : (tensor<*xf32>) -> tensor<?x?xf32>
  %0 = "graph.permute_dims"(%x) {axes = array<i64: 1, 0>} : (tensor<*xf32>) -> tensor<?x?xf32>
  // CHECK: "graph.reshape"(%{{.*}}) {shape = #graph.shape<[4, 2]>} : (tensor<*xf32>) -> tensor<4x2xf32>
  %1 = "graph.reshape"(%x) {shape = #graph.shape<[4, 2]>} : (tensor<*xf32>) -> tensor<4x2xf32>
  // CHECK: "graph.reshape"(%{{.*}}) {shape = #graph.shape<[4, 2]>} : (tensor<?xf32>) -> tensor<4x2xf32>
  %2 = "graph.reshape"(%y) {shape = #graph.shape<[4, 2]>} : (tensor<?xf32>) -> tensor<4x2xf32>
  // CHECK: "graph.expand_dims"(%{{.*}}) {axes = array<i64: 0>} : (tensor<*xf32>) -> tensor<*xf32>
  %3 = "graph.expand_dims"(%x) {axes = array<i64: 0>} : (tensor<*xf32>) -> tensor<*xf32>
  // CHECK: "graph.squeeze"(%{{.*}}) {axes = array<i64: 0>} : (tensor<?x3xf32>) -> tensor<3xf32>
  %4 = "graph.squeeze"(%z) {axes = array<i64: 0>} : (tensor<?x3xf32>) -> tensor<3xf32>
  // CHECK: "graph.broadcast_to"(%{{.*}}) {shape = #graph.shape<[2, 3]>} : (tensor<?xf32>) -> tensor<2x3xf32>
  %5 = "graph.broadcast_to"(%y) {shape = #graph.shape<[2, 3]>} : (tensor<?xf32>) -> tensor<2x3xf32>
  // CHECK: "graph.concat"(%{{.*}}, %{{.*}}) {axis = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<?x4xf32>, tensor<?x4xf32, #graph.shape<["n", 4]>>) -> tensor<?x4xf32>
  %6 = "graph.concat"(%u, %v) {axis = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<?x4xf32>, tensor<?x4xf32, #graph.shape<["n", 4]>>) -> tensor<?x4xf32>
  // CHECK: "graph.split"(%{{.*}}) {axis = 0 : i64, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>, sizes = #graph.shape<[1, 2]>} : (tensor<?x3xf32>) -> (tensor<1x3xf32>, tensor<2x3xf32>)
  %7:2 = "graph.split"(%z) {axis = 0 : i64, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>, sizes = #graph.shape<[1, 2]>} : (tensor<?x3xf32>) -> (tensor<1x3xf32>, tensor<2x3xf32>)
  return
}
