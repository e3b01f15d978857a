// RUN: relax-opt %s --relax-verify | relax-opt --relax-verify | FileCheck %s

// CHECK-LABEL: func.func @static
func.func @static(%x: tensor<2x3x4xf32>, %y: tensor<4xi8>) {
  // CHECK: "graph.sum"(%{{.*}}) {axes = array<i64: 1>, keepdims = false} : (tensor<2x3x4xf32>) -> tensor<2x4xf32>
  %0 = "graph.sum"(%x) {axes = array<i64: 1>, keepdims = false} : (tensor<2x3x4xf32>) -> tensor<2x4xf32>
  // CHECK: "graph.prod"(%{{.*}}) {axes = array<i64: 1>, keepdims = false} : (tensor<2x3x4xf32>) -> tensor<2x4xf32>
  %1 = "graph.prod"(%x) {axes = array<i64: 1>, keepdims = false} : (tensor<2x3x4xf32>) -> tensor<2x4xf32>
  // CHECK: "graph.max"(%{{.*}}) {axes = array<i64: 1>, keepdims = false} : (tensor<2x3x4xf32>) -> tensor<2x4xf32>
  %2 = "graph.max"(%x) {axes = array<i64: 1>, keepdims = false} : (tensor<2x3x4xf32>) -> tensor<2x4xf32>
  // CHECK: "graph.min"(%{{.*}}) {axes = array<i64: 1>, keepdims = false} : (tensor<2x3x4xf32>) -> tensor<2x4xf32>
  %3 = "graph.min"(%x) {axes = array<i64: 1>, keepdims = false} : (tensor<2x3x4xf32>) -> tensor<2x4xf32>
  // CHECK: "graph.mean"(%{{.*}}) {axes = array<i64: 1>, keepdims = false} : (tensor<2x3x4xf32>) -> tensor<2x4xf32>
  %4 = "graph.mean"(%x) {axes = array<i64: 1>, keepdims = false} : (tensor<2x3x4xf32>) -> tensor<2x4xf32>
  // CHECK: "graph.sum"(%{{.*}}) {axes = array<i64>, keepdims = false} : (tensor<2x3x4xf32>) -> tensor<f32>
  %5 = "graph.sum"(%x) {axes = array<i64>, keepdims = false} : (tensor<2x3x4xf32>) -> tensor<f32>
  // CHECK: "graph.sum"(%{{.*}}) {axes = array<i64>, keepdims = true} : (tensor<2x3x4xf32>) -> tensor<1x1x1xf32>
  %6 = "graph.sum"(%x) {axes = array<i64>, keepdims = true} : (tensor<2x3x4xf32>) -> tensor<1x1x1xf32>
  // CHECK: "graph.max"(%{{.*}}) {axes = array<i64: -1, 0>, keepdims = true} : (tensor<2x3x4xf32>) -> tensor<1x3x1xf32>
  %7 = "graph.max"(%x) {axes = array<i64: -1, 0>, keepdims = true} : (tensor<2x3x4xf32>) -> tensor<1x3x1xf32>
  // CHECK: "graph.sum"(%{{.*}}) {axes = array<i64: 0>, keepdims = false} : (tensor<4xi8>) -> tensor<i8>
  %8 = "graph.sum"(%y) {axes = array<i64: 0>, keepdims = false} : (tensor<4xi8>) -> tensor<i8>
  return
}

// CHECK-LABEL: func.func @symbolic
func.func @symbolic(%x: tensor<?x?xf32, #graph.shape<["n", "m"]>>) {
  // CHECK: "graph.sum"(%{{.*}}) {axes = array<i64: 1>, keepdims = false} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>) -> tensor<?xf32, #graph.shape<["n"]>>
  %0 = "graph.sum"(%x) {axes = array<i64: 1>, keepdims = false} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>) -> tensor<?xf32, #graph.shape<["n"]>>
  // CHECK: "graph.mean"(%{{.*}}) {axes = array<i64: -1>, keepdims = true} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>) -> tensor<?x1xf32, #graph.shape<["n", 1]>>
  %1 = "graph.mean"(%x) {axes = array<i64: -1>, keepdims = true} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>) -> tensor<?x1xf32, #graph.shape<["n", 1]>>
  return
}

// CHECK-LABEL: func.func @coarse
func.func @coarse(%x: tensor<?x4xf32>, %y: tensor<*xf32>) {
  // CHECK: "graph.sum"(%{{.*}}) {axes = array<i64: 1>, keepdims = false} : (tensor<?x4xf32>) -> tensor<?xf32>
  %0 = "graph.sum"(%x) {axes = array<i64: 1>, keepdims = false} : (tensor<?x4xf32>) -> tensor<?xf32>
  // CHECK: "graph.sum"(%{{.*}}) {axes = array<i64: 3>, keepdims = false} : (tensor<*xf32>) -> tensor<*xf32>
  %1 = "graph.sum"(%y) {axes = array<i64: 3>, keepdims = false} : (tensor<*xf32>) -> tensor<*xf32>
  return
}

// CHECK-LABEL: func.func @truth
func.func @truth(%x: tensor<9x4xi1>, %y: tensor<?x?xi1, #graph.shape<["n", "m"]>>, %z: tensor<*xi1>) {
  // CHECK: "graph.any"(%{{.*}}) {axes = array<i64: 1>, keepdims = true} : (tensor<9x4xi1>) -> tensor<9x1xi1>
  %0 = "graph.any"(%x) {axes = array<i64: 1>, keepdims = true} : (tensor<9x4xi1>) -> tensor<9x1xi1>
  // CHECK: "graph.all"(%{{.*}}) {axes = array<i64: 0>, keepdims = false} : (tensor<?x?xi1, #graph.shape<["n", "m"]>>) -> tensor<?xi1, #graph.shape<["m"]>>
  %1 = "graph.all"(%y) {axes = array<i64: 0>, keepdims = false} : (tensor<?x?xi1, #graph.shape<["n", "m"]>>) -> tensor<?xi1, #graph.shape<["m"]>>
  // CHECK: "graph.any"(%{{.*}}) {axes = array<i64>, keepdims = false} : (tensor<*xi1>) -> tensor<*xi1>
  %2 = "graph.any"(%z) {axes = array<i64>, keepdims = false} : (tensor<*xi1>) -> tensor<*xi1>
  return
}

// CHECK-LABEL: func.func @in_two_passes
func.func @in_two_passes(%x: tensor<9x4xf32>, %y: tensor<?x?xf32, #graph.shape<["n", "m"]>>, %z: tensor<*xf32>) {
  // CHECK: "graph.variance"(%{{.*}}) {axes = array<i64: 1>, correction = 1 : i64, keepdims = true} : (tensor<9x4xf32>) -> tensor<9x1xf32>
  %0 = "graph.variance"(%x) {axes = array<i64: 1>, correction = 1 : i64, keepdims = true} : (tensor<9x4xf32>) -> tensor<9x1xf32>
  // CHECK: "graph.std"(%{{.*}}) {axes = array<i64: 0>, correction = 0 : i64, keepdims = false} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>) -> tensor<?xf32, #graph.shape<["m"]>>
  %1 = "graph.std"(%y) {axes = array<i64: 0>, correction = 0 : i64, keepdims = false} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>) -> tensor<?xf32, #graph.shape<["m"]>>
  // CHECK: "graph.logsumexp"(%{{.*}}) {axes = array<i64>, keepdims = false} : (tensor<*xf32>) -> tensor<*xf32>
  %2 = "graph.logsumexp"(%z) {axes = array<i64>, keepdims = false} : (tensor<*xf32>) -> tensor<*xf32>
  return
}
