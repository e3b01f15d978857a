// RUN: relax-opt %s --relax-verify | relax-opt --relax-verify | FileCheck %s

// CHECK-LABEL: func.func @static
func.func @static(%x: tensor<9x4xf32>, %y: tensor<7x3xi64>, %z: tensor<5x2xi32>, %u: tensor<3x1xi64>, %v: tensor<2xi32>) {
  // CHECK: "graph.gather_elements"(%{{.*}}, %{{.*}}) {axis = -2 : i64} : (tensor<9x4xf32>, tensor<7x3xi64>) -> tensor<7x3xf32>
  %0 = "graph.gather_elements"(%x, %y) {axis = -2 : i64} : (tensor<9x4xf32>, tensor<7x3xi64>) -> tensor<7x3xf32>
  // CHECK: "graph.gather_nd"(%{{.*}}, %{{.*}}) {batch_dims = 0 : i64} : (tensor<9x4xf32>, tensor<5x2xi32>) -> tensor<5xf32>
  %1 = "graph.gather_nd"(%x, %z) {batch_dims = 0 : i64} : (tensor<9x4xf32>, tensor<5x2xi32>) -> tensor<5xf32>
  // CHECK: "graph.gather_nd"(%{{.*}}, %{{.*}}) {batch_dims = 0 : i64} : (tensor<9x4xf32>, tensor<3x1xi64>) -> tensor<3x4xf32>
  %2 = "graph.gather_nd"(%x, %u) {batch_dims = 0 : i64} : (tensor<9x4xf32>, tensor<3x1xi64>) -> tensor<3x4xf32>
  // CHECK: "graph.index_tensor"(%{{.*}}, %{{.*}}, %{{.*}}) {axes = array<i64: 0, 1>, {{.*}}} : (tensor<9x4xf32>, tensor<3x1xi64>, tensor<2xi32>) -> tensor<3x2xf32>
  %3 = "graph.index_tensor"(%x, %u, %v) {axes = array<i64: 0, 1>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<9x4xf32>, tensor<3x1xi64>, tensor<2xi32>) -> tensor<3x2xf32>
  return
}

// CHECK-LABEL: func.func @symbolic
func.func @symbolic(%x: tensor<?x?x8xf32, #graph.shape<["b", "n", 8]>>, %y: tensor<?x?x2xi64, #graph.shape<["b", "m", 2]>>, %z: tensor<?xi64, #graph.shape<["m"]>>) {
  // CHECK: "graph.gather_nd"(%{{.*}}, %{{.*}}) {batch_dims = 1 : i64} : (tensor<?x?x8xf32, #graph.shape<["b", "n", 8]>>, tensor<?x?x2xi64, #graph.shape<["b", "m", 2]>>) -> tensor<?x?xf32, #graph.shape<["b", "m"]>>
  %0 = "graph.gather_nd"(%x, %y) {batch_dims = 1 : i64} : (tensor<?x?x8xf32, #graph.shape<["b", "n", 8]>>, tensor<?x?x2xi64, #graph.shape<["b", "m", 2]>>) -> tensor<?x?xf32, #graph.shape<["b", "m"]>>
  // CHECK: "graph.gather_elements"(%{{.*}}, %{{.*}}) {axis = 1 : i64} : (tensor<?x?x8xf32, #graph.shape<["b", "n", 8]>>, tensor<?x?x2xi64, #graph.shape<["b", "m", 2]>>) -> tensor<?x?x2xf32, #graph.shape<["b", "m", 2]>>
  %1 = "graph.gather_elements"(%x, %y) {axis = 1 : i64} : (tensor<?x?x8xf32, #graph.shape<["b", "n", 8]>>, tensor<?x?x2xi64, #graph.shape<["b", "m", 2]>>) -> tensor<?x?x2xf32, #graph.shape<["b", "m", 2]>>
  // CHECK: "graph.index_tensor"(%{{.*}}, %{{.*}}) {axes = array<i64: 1>, {{.*}}} : (tensor<?x?x8xf32, #graph.shape<["b", "n", 8]>>, tensor<?xi64, #graph.shape<["m"]>>) -> tensor<?x?x8xf32, #graph.shape<["b", "m", 8]>>
  %2 = "graph.index_tensor"(%x, %z) {axes = array<i64: 1>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<?x?x8xf32, #graph.shape<["b", "n", 8]>>, tensor<?xi64, #graph.shape<["m"]>>) -> tensor<?x?x8xf32, #graph.shape<["b", "m", 8]>>
  // CHECK: "graph.index_tensor"(%{{.*}}, %{{.*}}, %{{.*}}) {axes = array<i64: 0, -1>, {{.*}}} : (tensor<?x?x8xf32, #graph.shape<["b", "n", 8]>>, tensor<?xi64, #graph.shape<["m"]>>, tensor<?xi64, #graph.shape<["m"]>>) -> tensor<?x?xf32, #graph.shape<["m", "n"]>>
  %3 = "graph.index_tensor"(%x, %z, %z) {axes = array<i64: 0, -1>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<?x?x8xf32, #graph.shape<["b", "n", 8]>>, tensor<?xi64, #graph.shape<["m"]>>, tensor<?xi64, #graph.shape<["m"]>>) -> tensor<?x?xf32, #graph.shape<["m", "n"]>>
  return
}

// CHECK-LABEL: func.func @coarse
func.func @coarse(%x: tensor<*xf32>, %y: tensor<?x4xf32>, %z: tensor<?x1xi64>, %u: tensor<*xi64>) {
  // CHECK: "graph.gather_elements"(%{{.*}}, %{{.*}}) {axis = 0 : i64} : (tensor<*xf32>, tensor<?x1xi64>) -> tensor<?x1xf32>
  %0 = "graph.gather_elements"(%x, %z) {axis = 0 : i64} : (tensor<*xf32>, tensor<?x1xi64>) -> tensor<?x1xf32>
  // CHECK: "graph.gather_nd"(%{{.*}}, %{{.*}}) {batch_dims = 0 : i64} : (tensor<?x4xf32>, tensor<*xi64>) -> tensor<*xf32>
  %1 = "graph.gather_nd"(%y, %u) {batch_dims = 0 : i64} : (tensor<?x4xf32>, tensor<*xi64>) -> tensor<*xf32>
  // CHECK: "graph.gather_nd"(%{{.*}}, %{{.*}}) {batch_dims = 0 : i64} : (tensor<?x4xf32>, tensor<?x1xi64>) -> tensor<?x4xf32>
  %2 = "graph.gather_nd"(%y, %z) {batch_dims = 0 : i64} : (tensor<?x4xf32>, tensor<?x1xi64>) -> tensor<?x4xf32>
  // CHECK: "graph.index_tensor"(%{{.*}}, %{{.*}}) {axes = array<i64: 0>, {{.*}}} : (tensor<*xf32>, tensor<?x1xi64>) -> tensor<*xf32>
  %3 = "graph.index_tensor"(%x, %z) {axes = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<*xf32>, tensor<?x1xi64>) -> tensor<*xf32>
  return
}
