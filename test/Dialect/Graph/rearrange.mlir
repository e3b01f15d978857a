// RUN: relax-opt %s --relax-verify | relax-opt --relax-verify | FileCheck %s

// CHECK-LABEL: func.func @static
func.func @static(%x: tensor<9x4xf32>) {
  // CHECK: "graph.flip"(%{{.*}}) {axes = array<i64: 0, -1>} : (tensor<9x4xf32>) -> tensor<9x4xf32>
  %0 = "graph.flip"(%x) {axes = array<i64: 0, -1>} : (tensor<9x4xf32>) -> tensor<9x4xf32>
  // CHECK: "graph.roll"(%{{.*}}) {axes = array<i64: 1>, shifts = array<i64: -9>} : (tensor<9x4xf32>) -> tensor<9x4xf32>
  %1 = "graph.roll"(%x) {axes = array<i64: 1>, shifts = array<i64: -9>} : (tensor<9x4xf32>) -> tensor<9x4xf32>
  // CHECK: "graph.tile"(%{{.*}}) {repeats = #graph.shape<[3, 1, 2]>} : (tensor<9x4xf32>) -> tensor<3x9x8xf32>
  %2 = "graph.tile"(%x) {repeats = #graph.shape<[3, 1, 2]>} : (tensor<9x4xf32>) -> tensor<3x9x8xf32>
  // CHECK: "graph.repeat"(%{{.*}}) {axis = -1 : i64, repeats = #graph.shape<[3]>} : (tensor<9x4xf32>) -> tensor<9x12xf32>
  %3 = "graph.repeat"(%x) {axis = -1 : i64, repeats = #graph.shape<[3]>} : (tensor<9x4xf32>) -> tensor<9x12xf32>
  // CHECK: "graph.stack"(%{{.*}}, %{{.*}}) {axis = -1 : i64, operandSegmentSizes = array<i32: {{.*}}>, resultSegmentSizes = array<i32: {{.*}}>} : (tensor<9x4xf32>, tensor<9x4xf32>) -> tensor<9x4x2xf32>
  %4 = "graph.stack"(%x, %x) {axis = -1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<9x4xf32>, tensor<9x4xf32>) -> tensor<9x4x2xf32>
  return
}

// CHECK-LABEL: func.func @symbolic
func.func @symbolic(%x: tensor<?x?xf32, #graph.shape<["n", "m"]>>) {
  // CHECK: "graph.flip"(%{{.*}}) {axes = array<i64: 0>} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>) -> tensor<?x?xf32, #graph.shape<["n", "m"]>>
  %0 = "graph.flip"(%x) {axes = array<i64: 0>} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>) -> tensor<?x?xf32, #graph.shape<["n", "m"]>>
  // CHECK: "graph.tile"(%{{.*}}) {repeats = #graph.shape<["m", 2]>} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>) -> tensor<?x?xf32, #graph.shape<["m*n", "2*m"]>>
  %1 = "graph.tile"(%x) {repeats = #graph.shape<["m", 2]>} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>) -> tensor<?x?xf32, #graph.shape<["m*n", "2*m"]>>
  // CHECK: "graph.repeat"(%{{.*}}) {axis = 0 : i64, repeats = #graph.shape<["n + 1"]>} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>) -> tensor<?x?xf32, #graph.shape<["n*n + n", "m"]>>
  %2 = "graph.repeat"(%x) {axis = 0 : i64, repeats = #graph.shape<["n + 1"]>} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>) -> tensor<?x?xf32, #graph.shape<["n*n + n", "m"]>>
  // CHECK: "graph.stack"(%{{.*}}) {axis = 0 : i64, operandSegmentSizes = array<i32: {{.*}}>, resultSegmentSizes = array<i32: {{.*}}>} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>) -> tensor<1x?x?xf32, #graph.shape<[1, "n", "m"]>>
  %3 = "graph.stack"(%x) {axis = 0 : i64, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>) -> tensor<1x?x?xf32, #graph.shape<[1, "n", "m"]>>
  return
}

// CHECK-LABEL: func.func @coarse
func.func @coarse(%x: tensor<?x4xf32>, %y: tensor<*xf32>) {
  // CHECK: "graph.roll"(%{{.*}}) {axes = array<i64: 1>, shifts = array<i64: 2>} : (tensor<*xf32>) -> tensor<*xf32>
  %0 = "graph.roll"(%y) {axes = array<i64: 1>, shifts = array<i64: 2>} : (tensor<*xf32>) -> tensor<*xf32>
  // CHECK: "graph.tile"(%{{.*}}) {repeats = #graph.shape<[1, 2]>} : (tensor<?x4xf32>) -> tensor<?x8xf32>
  %1 = "graph.tile"(%x) {repeats = #graph.shape<[1, 2]>} : (tensor<?x4xf32>) -> tensor<?x8xf32>
  // CHECK: "graph.tile"(%{{.*}}) {repeats = #graph.shape<[1, 2]>} : (tensor<*xf32>) -> tensor<?x?xf32>
  %2 = "graph.tile"(%y) {repeats = #graph.shape<[1, 2]>} : (tensor<*xf32>) -> tensor<?x?xf32>
  // CHECK: "graph.repeat"(%{{.*}}) {axis = 0 : i64, repeats = #graph.shape<[2]>} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %3 = "graph.repeat"(%x) {axis = 0 : i64, repeats = #graph.shape<[2]>} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  // CHECK: "graph.stack"(%{{.*}}, %{{.*}}) {axis = 0 : i64, operandSegmentSizes = array<i32: {{.*}}>, resultSegmentSizes = array<i32: {{.*}}>} : (tensor<?x4xf32>, tensor<*xf32>) -> tensor<*xf32>
  %4 = "graph.stack"(%x, %y) {axis = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<?x4xf32>, tensor<*xf32>) -> tensor<*xf32>
  return
}
