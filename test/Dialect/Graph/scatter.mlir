// RUN: relax-opt %s --relax-verify | relax-opt --relax-verify | FileCheck %s

// CHECK-LABEL: func.func @static
func.func @static(%x: tensor<9x4xf32>, %y: tensor<3x2xi64>, %z: tensor<3x2xf32>, %u: tensor<3xf32>, %v: tensor<3x4xf32>, %w: tensor<3xi32>, %a: tensor<4xf32>) {
  // CHECK: "graph.scatter_elements"(%{{.*}}, %{{.*}}, %{{.*}}) {axis = -1 : i64, reduction = "none"} : (tensor<9x4xf32>, tensor<3x2xi64>, tensor<3x2xf32>) -> tensor<9x4xf32>
  %0 = "graph.scatter_elements"(%x, %y, %z) {axis = -1 : i64, reduction = "none"} : (tensor<9x4xf32>, tensor<3x2xi64>, tensor<3x2xf32>) -> tensor<9x4xf32>
  // CHECK: "graph.scatter_nd"(%{{.*}}, %{{.*}}, %{{.*}}) {reduction = "max"} : (tensor<9x4xf32>, tensor<3x2xi64>, tensor<3xf32>) -> tensor<9x4xf32>
  %1 = "graph.scatter_nd"(%x, %y, %u) {reduction = "max"} : (tensor<9x4xf32>, tensor<3x2xi64>, tensor<3xf32>) -> tensor<9x4xf32>
  // CHECK: "graph.index_put"(%{{.*}}, %{{.*}}, %{{.*}}) {axes = array<i64: 0>, operandSegmentSizes = array<i32: {{.*}}>, reduction = "add", resultSegmentSizes = array<i32: {{.*}}>} : (tensor<9x4xf32>, tensor<3x4xf32>, tensor<3xi32>) -> tensor<9x4xf32>
  %2 = "graph.index_put"(%x, %v, %w) {axes = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, reduction = "add"} : (tensor<9x4xf32>, tensor<3x4xf32>, tensor<3xi32>) -> tensor<9x4xf32>
  // CHECK: "graph.index_put"(%{{.*}}, %{{.*}}, %{{.*}}) {axes = array<i64: 0>, operandSegmentSizes = array<i32: {{.*}}>, reduction = "none", resultSegmentSizes = array<i32: {{.*}}>} : (tensor<9x4xf32>, tensor<4xf32>, tensor<3xi32>) -> tensor<9x4xf32>
  %3 = "graph.index_put"(%x, %a, %w) {axes = array<i64: 0>, reduction = "none", operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<9x4xf32>, tensor<4xf32>, tensor<3xi32>) -> tensor<9x4xf32>
  // CHECK: "graph.slice_scatter"(%{{.*}}, %{{.*}}) {axes = array<i64: 0>, begin = #graph.shape<[1]>, end = #graph.shape<[8]>, strides = array<i64: 3>} : (tensor<9x4xf32>, tensor<3x4xf32>) -> tensor<9x4xf32>
  %4 = "graph.slice_scatter"(%x, %v) {axes = array<i64: 0>, begin = #graph.shape<[1]>, end = #graph.shape<[8]>, strides = array<i64: 3>} : (tensor<9x4xf32>, tensor<3x4xf32>) -> tensor<9x4xf32>
  return
}

// CHECK-LABEL: func.func @symbolic
func.func @symbolic(%x: tensor<?x?xf32, #graph.shape<["n", "m"]>>, %y: tensor<?x1xi64, #graph.shape<["k", 1]>>, %z: tensor<?x?xf32, #graph.shape<["k", "m"]>>, %u: tensor<?x?xi64, #graph.shape<["n", "k"]>>, %v: tensor<?x?xf32, #graph.shape<["n", "k"]>>, %w: tensor<1x?xf32, #graph.shape<[1, "m"]>>) {
  // CHECK: "graph.scatter_nd"(%{{.*}}, %{{.*}}, %{{.*}}) {reduction = "add"} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>, tensor<?x1xi64, #graph.shape<["k", 1]>>, tensor<?x?xf32, #graph.shape<["k", "m"]>>) -> tensor<?x?xf32, #graph.shape<["n", "m"]>>
  %0 = "graph.scatter_nd"(%x, %y, %z) {reduction = "add"} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>, tensor<?x1xi64, #graph.shape<["k", 1]>>, tensor<?x?xf32, #graph.shape<["k", "m"]>>) -> tensor<?x?xf32, #graph.shape<["n", "m"]>>
  // CHECK: "graph.scatter_elements"(%{{.*}}, %{{.*}}, %{{.*}}) {axis = 1 : i64, reduction = "mul"} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>, tensor<?x?xi64, #graph.shape<["n", "k"]>>, tensor<?x?xf32, #graph.shape<["n", "k"]>>) -> tensor<?x?xf32, #graph.shape<["n", "m"]>>
  %1 = "graph.scatter_elements"(%x, %u, %v) {axis = 1 : i64, reduction = "mul"} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>, tensor<?x?xi64, #graph.shape<["n", "k"]>>, tensor<?x?xf32, #graph.shape<["n", "k"]>>) -> tensor<?x?xf32, #graph.shape<["n", "m"]>>
  // CHECK: "graph.slice_scatter"(%{{.*}}, %{{.*}}) {axes = array<i64: 0>, begin = #graph.shape<["n - 1"]>, end = #graph.shape<["n"]>, strides = array<i64: 1>} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>, tensor<1x?xf32, #graph.shape<[1, "m"]>>) -> tensor<?x?xf32, #graph.shape<["n", "m"]>>
  %2 = "graph.slice_scatter"(%x, %w) {axes = array<i64: 0>, begin = #graph.shape<["n - 1"]>, end = #graph.shape<["n"]>, strides = array<i64: 1>} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>, tensor<1x?xf32, #graph.shape<[1, "m"]>>) -> tensor<?x?xf32, #graph.shape<["n", "m"]>>
  return
}

// CHECK-LABEL: func.func @coarse
func.func @coarse(%x: tensor<*xf32>, %y: tensor<?x1xi64>, %z: tensor<*xi64>, %u: tensor<?x4xf32>, %v: tensor<?x1xf32>) {
  // CHECK: "graph.scatter_nd"(%{{.*}}, %{{.*}}, %{{.*}}) {reduction = "add"} : (tensor<?x4xf32>, tensor<*xi64>, tensor<*xf32>) -> tensor<?x4xf32>
  %0 = "graph.scatter_nd"(%u, %z, %x) {reduction = "add"} : (tensor<?x4xf32>, tensor<*xi64>, tensor<*xf32>) -> tensor<?x4xf32>
  // CHECK: "graph.scatter_elements"(%{{.*}}, %{{.*}}, %{{.*}}) {axis = 0 : i64, reduction = "none"} : (tensor<*xf32>, tensor<?x1xi64>, tensor<?x1xf32>) -> tensor<*xf32>
  %1 = "graph.scatter_elements"(%x, %y, %v) {axis = 0 : i64, reduction = "none"} : (tensor<*xf32>, tensor<?x1xi64>, tensor<?x1xf32>) -> tensor<*xf32>
  // CHECK: "graph.index_put"(%{{.*}}, %{{.*}}, %{{.*}}) {axes = array<i64: 0>, operandSegmentSizes = array<i32: {{.*}}>, reduction = "min", resultSegmentSizes = array<i32: {{.*}}>} : (tensor<?x4xf32>, tensor<*xf32>, tensor<?x1xi64>) -> tensor<?x4xf32>
  %2 = "graph.index_put"(%u, %x, %y) {axes = array<i64: 0>, reduction = "min", operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<?x4xf32>, tensor<*xf32>, tensor<?x1xi64>) -> tensor<?x4xf32>
  return
}

// CHECK-LABEL: func.func @computed_begins
func.func @computed_begins(%x: tensor<9x4xf32>, %y: tensor<2x4xf32>, %z: tensor<2xi64>, %u: tensor<?x4xf32, #graph.shape<["n", 4]>>, %v: tensor<*xf32>) {
  // CHECK: "graph.dynamic_update_slice"(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<9x4xf32>, tensor<2x4xf32>, tensor<2xi64>) -> tensor<9x4xf32>
  %0 = "graph.dynamic_update_slice"(%x, %y, %z) : (tensor<9x4xf32>, tensor<2x4xf32>, tensor<2xi64>) -> tensor<9x4xf32>
  // CHECK: "graph.dynamic_update_slice"(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<?x4xf32, #graph.shape<["n", 4]>>, tensor<2x4xf32>, tensor<2xi64>) -> tensor<?x4xf32, #graph.shape<["n", 4]>>
  %1 = "graph.dynamic_update_slice"(%u, %y, %z) : (tensor<?x4xf32, #graph.shape<["n", 4]>>, tensor<2x4xf32>, tensor<2xi64>) -> tensor<?x4xf32, #graph.shape<["n", 4]>>
  // CHECK: "graph.dynamic_update_slice"(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<*xf32>, tensor<2x4xf32>, tensor<2xi64>) -> tensor<*xf32>
  %2 = "graph.dynamic_update_slice"(%v, %y, %z) : (tensor<*xf32>, tensor<2x4xf32>, tensor<2xi64>) -> tensor<*xf32>
  return
}
