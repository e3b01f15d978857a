// RUN: relax-opt %s --relax-verify | relax-opt --relax-verify | FileCheck %s

// CHECK-LABEL: func.func @static
func.func @static(%x: tensor<f32>, %y: tensor<i1>, %z: tensor<2x4x4xf32>, %u: tensor<4x3xi1>) {
  // CHECK: "graph.full"(%{{.*}}) {shape = #graph.shape<[2, 3]>} : (tensor<f32>) -> tensor<2x3xf32>
  %0 = "graph.full"(%x) {shape = #graph.shape<[2, 3]>} : (tensor<f32>) -> tensor<2x3xf32>
  // CHECK: "graph.full"(%{{.*}}) {shape = #graph.shape<[]>} : (tensor<i1>) -> tensor<i1>
  %1 = "graph.full"(%y) {shape = #graph.shape<[]>} : (tensor<i1>) -> tensor<i1>
  // CHECK: "graph.arange"() {bounds = #graph.shape<[0, 5, 1]>, dtype = i64} : () -> tensor<5xi64>
  %2 = "graph.arange"() {bounds = #graph.shape<[0, 5, 1]>, dtype = i64} : () -> tensor<5xi64>
  // CHECK: "graph.arange"() {bounds = #graph.shape<[-5, 6, 2]>, dtype = f32} : () -> tensor<6xf32>
  %3 = "graph.arange"() {bounds = #graph.shape<[-5, 6, 2]>, dtype = f32} : () -> tensor<6xf32>
  // CHECK: "graph.arange"() {bounds = #graph.shape<[4, 2, 1]>, dtype = f32} : () -> tensor<0xf32>
  %4 = "graph.arange"() {bounds = #graph.shape<[4, 2, 1]>, dtype = f32} : () -> tensor<0xf32>
  // CHECK: "graph.tril"(%{{.*}}) {k = -1 : i64} : (tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  %5 = "graph.tril"(%z) {k = -1 : i64} : (tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  // CHECK: "graph.triu"(%{{.*}}) {k = 0 : i64} : (tensor<4x3xi1>) -> tensor<4x3xi1>
  %6 = "graph.triu"(%u) {k = 0 : i64} : (tensor<4x3xi1>) -> tensor<4x3xi1>
  return
}

// CHECK-LABEL: func.func @symbolic
func.func @symbolic(%x: tensor<f32>, %y: tensor<?x?x?xf32, #graph.shape<["b", "n", "n"]>>, %s: !graph.shape_value<["n", "m"]>) {
  // CHECK: "graph.full"(%{{.*}}) {shape = #graph.shape<["n", "2*m"]>} : (tensor<f32>) -> tensor<?x?xf32, #graph.shape<["n", "2*m"]>>
  %0 = "graph.full"(%x) {shape = #graph.shape<["n", "2*m"]>} : (tensor<f32>) -> tensor<?x?xf32, #graph.shape<["n", "2*m"]>>
  // CHECK: "graph.arange"() {bounds = #graph.shape<[0, "n", 1]>, dtype = i32} : () -> tensor<?xi32, #graph.shape<["n"]>>
  %1 = "graph.arange"() {bounds = #graph.shape<[0, "n", 1]>, dtype = i32} : () -> tensor<?xi32, #graph.shape<["n"]>>
  // CHECK: "graph.arange"() {bounds = #graph.shape<["m", "m + n", 1]>, dtype = i32} : () -> tensor<?xi32, #graph.shape<["n"]>>
  %2 = "graph.arange"() {bounds = #graph.shape<["m", "m + n", 1]>, dtype = i32} : () -> tensor<?xi32, #graph.shape<["n"]>>
  // CHECK: "graph.arange"() {bounds = #graph.shape<[0, "n", 4]>, dtype = i32} : () -> tensor<?xi32, #graph.shape<["(n + 3) floordiv 4"]>>
  %3 = "graph.arange"() {bounds = #graph.shape<[0, "n", 4]>, dtype = i32} : () -> tensor<?xi32, #graph.shape<["(n + 3) floordiv 4"]>>
  // CHECK: "graph.tril"(%{{.*}}) {k = 0 : i64} : (tensor<?x?x?xf32, #graph.shape<["b", "n", "n"]>>) -> tensor<?x?x?xf32, #graph.shape<["b", "n", "n"]>>
  %4 = "graph.tril"(%y) {k = 0 : i64} : (tensor<?x?x?xf32, #graph.shape<["b", "n", "n"]>>) -> tensor<?x?x?xf32, #graph.shape<["b", "n", "n"]>>
  return
}

// CHECK-LABEL: func.func @coarse
func.func @coarse(%x: tensor<?x?xf32>, %y: tensor<*xf32>, %z: tensor<f32>, %s: !graph.shape_value<["n"]>) {
  // CHECK: "graph.tril"(%{{.*}}) {k = 0 : i64} : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %0 = "graph.tril"(%x) {k = 0 : i64} : (tensor<?x?xf32>) -> tensor<?x?xf32>
  // CHECK: "graph.triu"(%{{.*}}) {k = 2 : i64} : (tensor<*xf32>) -> tensor<*xf32>
  %1 = "graph.triu"(%y) {k = 2 : i64} : (tensor<*xf32>) -> tensor<*xf32>
  // CHECK: "graph.full"(%{{.*}}) {shape = #graph.shape<["n", 4]>} : (tensor<f32>) -> tensor<?x4xf32>
  %2 = "graph.full"(%z) {shape = #graph.shape<["n", 4]>} : (tensor<f32>) -> tensor<?x4xf32>
  return
}

// CHECK-LABEL: func.func @one_hot_and_eye
func.func @one_hot_and_eye(%x: tensor<3xi64>, %y: tensor<f32>, %z: tensor<?xi32, #graph.shape<["n"]>>, %u: tensor<*xi64>) {
  // CHECK: "graph.one_hot"(%{{.*}}, %{{.*}}, %{{.*}}) {axis = 0 : i64, depth = #graph.shape<[5]>} : (tensor<3xi64>, tensor<f32>, tensor<f32>) -> tensor<5x3xf32>
  %0 = "graph.one_hot"(%x, %y, %y) {axis = 0 : i64, depth = #graph.shape<[5]>} : (tensor<3xi64>, tensor<f32>, tensor<f32>) -> tensor<5x3xf32>
  // CHECK: "graph.one_hot"(%{{.*}}, %{{.*}}, %{{.*}}) {axis = -1 : i64, depth = #graph.shape<["n + 1"]>} : (tensor<?xi32, #graph.shape<["n"]>>, tensor<f32>, tensor<f32>) -> tensor<?x?xf32, #graph.shape<["n", "n + 1"]>>
  %1 = "graph.one_hot"(%z, %y, %y) {axis = -1 : i64, depth = #graph.shape<["n + 1"]>} : (tensor<?xi32, #graph.shape<["n"]>>, tensor<f32>, tensor<f32>) -> tensor<?x?xf32, #graph.shape<["n", "n + 1"]>>
  // CHECK: "graph.one_hot"(%{{.*}}, %{{.*}}, %{{.*}}) {axis = 0 : i64, depth = #graph.shape<[5]>} : (tensor<*xi64>, tensor<f32>, tensor<f32>) -> tensor<*xf32>
  %2 = "graph.one_hot"(%u, %y, %y) {axis = 0 : i64, depth = #graph.shape<[5]>} : (tensor<*xi64>, tensor<f32>, tensor<f32>) -> tensor<*xf32>
  // CHECK: "graph.eye"() {dtype = i1, k = -1 : i64, shape = #graph.shape<["n", 4]>} : () -> tensor<?x4xi1, #graph.shape<["n", 4]>>
  %3 = "graph.eye"() {dtype = i1, k = -1 : i64, shape = #graph.shape<["n", 4]>} : () -> tensor<?x4xi1, #graph.shape<["n", 4]>>
  return
}
