// RUN: relax-opt %s --relax-verify | relax-opt --relax-verify | FileCheck %s

// CHECK-LABEL: func.func @static
func.func @static(%x: tensor<9xf32>, %rows: tensor<2x9xf32>, %v: tensor<2x5xf32>) {
  // CHECK: "graph.searchsorted"(%{{.*}}, %{{.*}}) {right = true} : (tensor<9xf32>, tensor<2x5xf32>) -> tensor<2x5xi64>
  %0 = "graph.searchsorted"(%x, %v) {right = true} : (tensor<9xf32>, tensor<2x5xf32>) -> tensor<2x5xi64>
  // CHECK: "graph.searchsorted"(%{{.*}}, %{{.*}}) {right = false} : (tensor<2x9xf32>, tensor<2x5xf32>) -> tensor<2x5xi64>
  %1 = "graph.searchsorted"(%rows, %v) {right = false} : (tensor<2x9xf32>, tensor<2x5xf32>) -> tensor<2x5xi64>
  return
}

// CHECK-LABEL: func.func @symbolic
func.func @symbolic(%x: tensor<?xi32, #graph.shape<["m"]>>, %v: tensor<?xi32, #graph.shape<["n"]>>) {
  // CHECK: "graph.searchsorted"(%{{.*}}, %{{.*}}) {right = false} : (tensor<?xi32, #graph.shape<["m"]>>, tensor<?xi32, #graph.shape<["n"]>>) -> tensor<?xi64, #graph.shape<["n"]>>
  %0 = "graph.searchsorted"(%x, %v) {right = false} : (tensor<?xi32, #graph.shape<["m"]>>, tensor<?xi32, #graph.shape<["n"]>>) -> tensor<?xi64, #graph.shape<["n"]>>
  return
}

// CHECK-LABEL: func.func @coarse
func.func @coarse(%x: tensor<*xf32>, %v: tensor<?x4xf32>, %u: tensor<*xf32>) {
  // CHECK: "graph.searchsorted"(%{{.*}}, %{{.*}}) {right = false} : (tensor<*xf32>, tensor<?x4xf32>) -> tensor<?x4xi64>
  %0 = "graph.searchsorted"(%x, %v) {right = false} : (tensor<*xf32>, tensor<?x4xf32>) -> tensor<?x4xi64>
  // CHECK: "graph.searchsorted"(%{{.*}}, %{{.*}}) {right = false} : (tensor<?x4xf32>, tensor<*xf32>) -> tensor<*xi64>
  %1 = "graph.searchsorted"(%v, %u) {right = false} : (tensor<?x4xf32>, tensor<*xf32>) -> tensor<*xi64>
  return
}
