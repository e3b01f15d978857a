// RUN: relax-opt %s --relax-infer-shapes --relax-verify | relax-opt --relax-verify | FileCheck %s

// CHECK-LABEL: func.func @static
func.func @static(%x: tensor<3x4xf32>, %s: tensor<i1>, %r: tensor<4xi32>) {
  // CHECK: "graph.nonzero"(%{{.*}}) : (tensor<3x4xf32>) -> tensor<2x?xi64>
  %0 = "graph.nonzero"(%x) : (tensor<3x4xf32>) -> tensor<*xi64>
  // CHECK: "graph.nonzero"(%{{.*}}) : (tensor<i1>) -> tensor<1x?xi64>
  %1 = "graph.nonzero"(%s) : (tensor<i1>) -> tensor<*xi64>
  // CHECK: "graph.unique"(%{{.*}}) {axes = array<i64>, sorted = true} : (tensor<3x4xf32>) -> (tensor<?xf32>, tensor<?xi64>, tensor<12xi64>, tensor<?xi64>)
  %2:4 = "graph.unique"(%x) {axes = array<i64>, sorted = true} : (tensor<3x4xf32>) -> (tensor<*xf32>, tensor<*xi64>, tensor<*xi64>, tensor<*xi64>)
  // CHECK: "graph.unique"(%{{.*}}) {axes = array<i64: -1>, sorted = false} : (tensor<3x4xf32>) -> (tensor<3x?xf32>, tensor<?xi64>, tensor<4xi64>, tensor<?xi64>)
  %3:4 = "graph.unique"(%x) {axes = array<i64: -1>, sorted = false} : (tensor<3x4xf32>) -> (tensor<*xf32>, tensor<*xi64>, tensor<*xi64>, tensor<*xi64>)
  // CHECK: "graph.repeat_interleave"(%{{.*}}, %{{.*}}) {axis = 1 : i64} : (tensor<3x4xf32>, tensor<4xi32>) -> tensor<3x?xf32>
  %4 = "graph.repeat_interleave"(%x, %r) {axis = 1 : i64} : (tensor<3x4xf32>, tensor<4xi32>) -> tensor<*xf32>
  return
}

// CHECK-LABEL: func.func @symbolic
func.func @symbolic(%x: tensor<?x3xf32, #graph.shape<["n", 3]>>, %s: tensor<i64>) {
  // CHECK: "graph.unique"(%{{.*}}) {axes = array<i64>, sorted = true} : (tensor<?x3xf32, #graph.shape<["n", 3]>>) -> (tensor<?xf32>, tensor<?xi64>, tensor<?xi64, #graph.shape<["3*n"]>>, tensor<?xi64>)
  %0:4 = "graph.unique"(%x) {axes = array<i64>, sorted = true} : (tensor<?x3xf32, #graph.shape<["n", 3]>>) -> (tensor<*xf32>, tensor<*xi64>, tensor<*xi64>, tensor<*xi64>)
  // CHECK: "graph.unique"(%{{.*}}) {axes = array<i64: 0>, sorted = true} : (tensor<?x3xf32, #graph.shape<["n", 3]>>) -> (tensor<?x3xf32>, tensor<?xi64>, tensor<?xi64, #graph.shape<["n"]>>, tensor<?xi64>)
  %1:4 = "graph.unique"(%x) {axes = array<i64: 0>, sorted = true} : (tensor<?x3xf32, #graph.shape<["n", 3]>>) -> (tensor<*xf32>, tensor<*xi64>, tensor<*xi64>, tensor<*xi64>)
  // CHECK: "graph.range_of"(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
  %2 = "graph.range_of"(%s, %s, %s) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<*xi64>
  return
}

// CHECK-LABEL: func.func @coarse
func.func @coarse(%x: tensor<*xf32>, %y: tensor<?x4xf32>, %r: tensor<?xi32>) {
  // CHECK: "graph.unique"(%{{.*}}) {axes = array<i64>, sorted = true} : (tensor<*xf32>) -> (tensor<?xf32>, tensor<?xi64>, tensor<?xi64>, tensor<?xi64>)
  %0:4 = "graph.unique"(%x) {axes = array<i64>, sorted = true} : (tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi64>, tensor<*xi64>, tensor<*xi64>)
  // CHECK: "graph.repeat_interleave"(%{{.*}}, %{{.*}}) {axis = 0 : i64} : (tensor<*xf32>, tensor<?xi32>) -> tensor<*xf32>
  %1 = "graph.repeat_interleave"(%x, %r) {axis = 0 : i64} : (tensor<*xf32>, tensor<?xi32>) -> tensor<*xf32>
  // CHECK: "graph.nonzero"(%{{.*}}) : (tensor<?x4xf32>) -> tensor<2x?xi64>
  %2 = "graph.nonzero"(%y) : (tensor<?x4xf32>) -> tensor<*xi64>
  return
}
