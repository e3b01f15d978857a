// RUN: relax-opt %s --relax-verify | relax-opt --relax-verify | FileCheck %s

// CHECK-LABEL: func.func @static
func.func @static(%x: tensor<9x4xf32>, %y: tensor<3xi64>, %z: tensor<i32>, %u: tensor<2x3xi32>) {
  // CHECK: "graph.take"(%{{.*}}, %{{.*}}) {axis = 0 : i64} : (tensor<9x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
  %0 = "graph.take"(%x, %y) {axis = 0 : i64} : (tensor<9x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
  // CHECK: "graph.take"(%{{.*}}, %{{.*}}) {axis = -1 : i64} : (tensor<9x4xf32>, tensor<i32>) -> tensor<9xf32>
  %1 = "graph.take"(%x, %z) {axis = -1 : i64} : (tensor<9x4xf32>, tensor<i32>) -> tensor<9xf32>
  // CHECK: "graph.take"(%{{.*}}, %{{.*}}) {axis = 1 : i64} : (tensor<9x4xf32>, tensor<2x3xi32>) -> tensor<9x2x3xf32>
  %2 = "graph.take"(%x, %u) {axis = 1 : i64} : (tensor<9x4xf32>, tensor<2x3xi32>) -> tensor<9x2x3xf32>
  // CHECK: "graph.strided_slice"(%{{.*}}) {axes = array<i64: 0>, begin = #graph.shape<[1]>, end = #graph.shape<[8]>, strides = array<i64: 3>} : (tensor<9x4xf32>) -> tensor<3x4xf32>
  %3 = "graph.strided_slice"(%x) {axes = array<i64: 0>, begin = #graph.shape<[1]>, end = #graph.shape<[8]>, strides = array<i64: 3>} : (tensor<9x4xf32>) -> tensor<3x4xf32>
  // CHECK: "graph.strided_slice"(%{{.*}}) {axes = array<i64>, begin = #graph.shape<[]>, end = #graph.shape<[]>, strides = array<i64>} : (tensor<9x4xf32>) -> tensor<9x4xf32>
  %4 = "graph.strided_slice"(%x) {axes = array<i64>, begin = #graph.shape<[]>, end = #graph.shape<[]>, strides = array<i64>} : (tensor<9x4xf32>) -> tensor<9x4xf32>
  // CHECK: "graph.strided_slice"(%{{.*}}) {axes = array<i64: -1, 0>, begin = #graph.shape<[0, 9]>, end = #graph.shape<[2, 9]>, strides = array<i64: 1, 1>} : (tensor<9x4xf32>) -> tensor<0x2xf32>
  %5 = "graph.strided_slice"(%x) {axes = array<i64: -1, 0>, begin = #graph.shape<[0, 9]>, end = #graph.shape<[2, 9]>, strides = array<i64: 1, 1>} : (tensor<9x4xf32>) -> tensor<0x2xf32>
  return
}

// CHECK-LABEL: func.func @symbolic
func.func @symbolic(%x: tensor<?x64xf32, #graph.shape<["v", 64]>>, %y: tensor<?xi64, #graph.shape<["n"]>>, %z: tensor<?x64xf32, #graph.shape<["n", 64]>>) {
  // CHECK: "graph.take"(%{{.*}}, %{{.*}}) {axis = 0 : i64} : (tensor<?x64xf32, #graph.shape<["v", 64]>>, tensor<?xi64, #graph.shape<["n"]>>) -> tensor<?x64xf32, #graph.shape<["n", 64]>>
  %0 = "graph.take"(%x, %y) {axis = 0 : i64} : (tensor<?x64xf32, #graph.shape<["v", 64]>>, tensor<?xi64, #graph.shape<["n"]>>) -> tensor<?x64xf32, #graph.shape<["n", 64]>>
  // CHECK: "graph.strided_slice"(%{{.*}}) {axes = array<i64: 0>, begin = #graph.shape<["n - 1"]>, end = #graph.shape<["n"]>, strides = array<i64: 1>} : (tensor<?x64xf32, #graph.shape<["n", 64]>>) -> tensor<1x64xf32>
  %1 = "graph.strided_slice"(%z) {axes = array<i64: 0>, begin = #graph.shape<["n - 1"]>, end = #graph.shape<["n"]>, strides = array<i64: 1>} : (tensor<?x64xf32, #graph.shape<["n", 64]>>) -> tensor<1x64xf32>
  // CHECK: "graph.strided_slice"(%{{.*}}) {axes = array<i64: 0, 1>, begin = #graph.shape<[0, 0]>, end = #graph.shape<["n", 32]>, strides = array<i64: 1, 1>} : (tensor<?x64xf32, #graph.shape<["n", 64]>>) -> tensor<?x32xf32, #graph.shape<["n", 32]>>
  %2 = "graph.strided_slice"(%z) {axes = array<i64: 0, 1>, begin = #graph.shape<[0, 0]>, end = #graph.shape<["n", 32]>, strides = array<i64: 1, 1>} : (tensor<?x64xf32, #graph.shape<["n", 64]>>) -> tensor<?x32xf32, #graph.shape<["n", 32]>>
  return
}

// CHECK-LABEL: func.func @coarse
func.func @coarse(%x: tensor<?x4xf32>, %y: tensor<?xi64>, %z: tensor<*xf32>, %u: tensor<3xi64>) {
  // CHECK: "graph.take"(%{{.*}}, %{{.*}}) {axis = 0 : i64} : (tensor<?x4xf32>, tensor<?xi64>) -> tensor<?x4xf32>
  %0 = "graph.take"(%x, %y) {axis = 0 : i64} : (tensor<?x4xf32>, tensor<?xi64>) -> tensor<?x4xf32>
  // CHECK: "graph.take"(%{{.*}}, %{{.*}}) {axis = 0 : i64} : (tensor<*xf32>, tensor<3xi64>) -> tensor<*xf32>
  %1 = "graph.take"(%z, %u) {axis = 0 : i64} : (tensor<*xf32>, tensor<3xi64>) -> tensor<*xf32>
  // CHECK: "graph.strided_slice"(%{{.*}}) {axes = array<i64: 0>, begin = #graph.shape<[0]>, end = #graph.shape<[2]>, strides = array<i64: 1>} : (tensor<*xf32>) -> tensor<*xf32>
  %2 = "graph.strided_slice"(%z) {axes = array<i64: 0>, begin = #graph.shape<[0]>, end = #graph.shape<[2]>, strides = array<i64: 1>} : (tensor<*xf32>) -> tensor<*xf32>
  // CHECK: "graph.strided_slice"(%{{.*}}) {axes = array<i64: 0>, begin = #graph.shape<[0]>, end = #graph.shape<[2]>, strides = array<i64: 1>} : (tensor<?x4xf32>) -> tensor<2x4xf32>
  %3 = "graph.strided_slice"(%x) {axes = array<i64: 0>, begin = #graph.shape<[0]>, end = #graph.shape<[2]>, strides = array<i64: 1>} : (tensor<?x4xf32>) -> tensor<2x4xf32>
  return
}

// CHECK-LABEL: func.func @computed_begins
func.func @computed_begins(%x: tensor<9x4xf32>, %y: tensor<2xi64>, %z: tensor<?x?xf32, #graph.shape<["n", "m"]>>, %u: tensor<*xf32>) {
  // CHECK: "graph.dynamic_slice"(%{{.*}}, %{{.*}}) {sizes = #graph.shape<[3, 4]>} : (tensor<9x4xf32>, tensor<2xi64>) -> tensor<3x4xf32>
  %0 = "graph.dynamic_slice"(%x, %y) {sizes = #graph.shape<[3, 4]>} : (tensor<9x4xf32>, tensor<2xi64>) -> tensor<3x4xf32>
  // CHECK: "graph.dynamic_slice"(%{{.*}}, %{{.*}}) {sizes = #graph.shape<[1, "m"]>} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>, tensor<2xi64>) -> tensor<1x?xf32, #graph.shape<[1, "m"]>>
  %1 = "graph.dynamic_slice"(%z, %y) {sizes = #graph.shape<[1, "m"]>} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>, tensor<2xi64>) -> tensor<1x?xf32, #graph.shape<[1, "m"]>>
  // CHECK: "graph.dynamic_slice"(%{{.*}}, %{{.*}}) {sizes = #graph.shape<[1, 2]>} : (tensor<*xf32>, tensor<2xi64>) -> tensor<1x2xf32>
  %2 = "graph.dynamic_slice"(%u, %y) {sizes = #graph.shape<[1, 2]>} : (tensor<*xf32>, tensor<2xi64>) -> tensor<1x2xf32>
  return
}
