// RUN: relax-opt %s --relax-verify | relax-opt --relax-verify | FileCheck %s

// CHECK-LABEL: func.func @static
func.func @static(%x: tensor<9x4xf32>, %y: tensor<f32>) {
  // CHECK: "graph.pad"(%{{.*}}, %{{.*}}) {high = #graph.shape<[0, 1]>, interior = array<i64: 0, 0>, low = #graph.shape<[1, 0]>, mode = "constant", operandSegmentSizes = array<i32: 1, 1>} : (tensor<9x4xf32>, tensor<f32>) -> tensor<10x5xf32>
  %0 = "graph.pad"(%x, %y) {high = #graph.shape<[0, 1]>, interior = array<i64: 0, 0>, low = #graph.shape<[1, 0]>, mode = "constant", operandSegmentSizes = array<i32: 1, 1>} : (tensor<9x4xf32>, tensor<f32>) -> tensor<10x5xf32>
  // CHECK: "graph.pad"(%{{.*}}, %{{.*}}) {high = #graph.shape<[0, 1]>, interior = array<i64: 1, 0>, low = #graph.shape<[1, -1]>, mode = "constant", operandSegmentSizes = array<i32: 1, 1>} : (tensor<9x4xf32>, tensor<f32>) -> tensor<18x4xf32>
  %1 = "graph.pad"(%x, %y) {high = #graph.shape<[0, 1]>, interior = array<i64: 1, 0>, low = #graph.shape<[1, -1]>, mode = "constant", operandSegmentSizes = array<i32: 1, 1>} : (tensor<9x4xf32>, tensor<f32>) -> tensor<18x4xf32>
  // CHECK: "graph.pad"(%{{.*}}) {high = #graph.shape<[-2, 1]>, interior = array<i64: 0, 0>, low = #graph.shape<[0, 3]>, mode = "reflect", operandSegmentSizes = array<i32: 1, 0>} : (tensor<9x4xf32>) -> tensor<7x8xf32>
  %2 = "graph.pad"(%x) {high = #graph.shape<[-2, 1]>, interior = array<i64: 0, 0>, low = #graph.shape<[0, 3]>, mode = "reflect", operandSegmentSizes = array<i32: 1, 0>} : (tensor<9x4xf32>) -> tensor<7x8xf32>
  return
}

// CHECK-LABEL: func.func @symbolic
func.func @symbolic(%x: tensor<?x?xf32, #graph.shape<["n", "m"]>>, %y: tensor<f32>, %z: tensor<?xf32, #graph.shape<["p"]>>) {
  // CHECK: "graph.pad"(%{{.*}}, %{{.*}}) {high = #graph.shape<[1, "m"]>, interior = array<i64: 0, 0>, low = #graph.shape<["p", 0]>, mode = "constant", operandSegmentSizes = array<i32: 1, 1>} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>, tensor<f32>) -> tensor<?x?xf32, #graph.shape<["n + p + 1", "2*m"]>>
  %0 = "graph.pad"(%x, %y) {high = #graph.shape<[1, "m"]>, interior = array<i64: 0, 0>, low = #graph.shape<["p", 0]>, mode = "constant", operandSegmentSizes = array<i32: 1, 1>} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>, tensor<f32>) -> tensor<?x?xf32, #graph.shape<["n + p + 1", "2*m"]>>
  // CHECK: "graph.pad"(%{{.*}}) {high = #graph.shape<[0, 0]>, interior = array<i64: 0, 0>, low = #graph.shape<["n", 0]>, mode = "wrap", operandSegmentSizes = array<i32: 1, 0>} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>) -> tensor<?x?xf32, #graph.shape<["2*n", "m"]>>
  %1 = "graph.pad"(%x) {high = #graph.shape<[0, 0]>, interior = array<i64: 0, 0>, low = #graph.shape<["n", 0]>, mode = "wrap", operandSegmentSizes = array<i32: 1, 0>} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>) -> tensor<?x?xf32, #graph.shape<["2*n", "m"]>>
  return
}

// CHECK-LABEL: func.func @coarse
func.func @coarse(%x: tensor<?x4xf32>, %y: tensor<*xf32>, %z: tensor<f32>) {
  // CHECK: "graph.pad"(%{{.*}}, %{{.*}}) {high = #graph.shape<[0, 0]>, interior = array<i64: 0, 0>, low = #graph.shape<[1, 1]>, mode = "constant", operandSegmentSizes = array<i32: 1, 1>} : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x5xf32>
  %0 = "graph.pad"(%x, %z) {high = #graph.shape<[0, 0]>, interior = array<i64: 0, 0>, low = #graph.shape<[1, 1]>, mode = "constant", operandSegmentSizes = array<i32: 1, 1>} : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x5xf32>
  // CHECK: "graph.pad"(%{{.*}}) {high = #graph.shape<[0, 0]>, interior = array<i64: 0, 0>, low = #graph.shape<[1, 1]>, mode = "edge", operandSegmentSizes = array<i32: 1, 0>} : (tensor<*xf32>) -> tensor<?x?xf32>
  %1 = "graph.pad"(%y) {high = #graph.shape<[0, 0]>, interior = array<i64: 0, 0>, low = #graph.shape<[1, 1]>, mode = "edge", operandSegmentSizes = array<i32: 1, 0>} : (tensor<*xf32>) -> tensor<?x?xf32>
  return
}
