// RUN: relax-opt %s --relax-verify | relax-opt --relax-verify | FileCheck %s

// CHECK-LABEL: func.func @static
func.func @static(%x: tensor<9x4xf32>) {
  // CHECK: "graph.cumsum"(%{{.*}}) {axis = 1 : i64, exclusive = false, reverse = true} : (tensor<9x4xf32>) -> tensor<9x4xf32>
  %0 = "graph.cumsum"(%x) {axis = 1 : i64, exclusive = false, reverse = true} : (tensor<9x4xf32>) -> tensor<9x4xf32>
  // CHECK: "graph.cumprod"(%{{.*}}) {axis = -2 : i64, exclusive = false, reverse = true} : (tensor<9x4xf32>) -> tensor<9x4xf32>
  %1 = "graph.cumprod"(%x) {axis = -2 : i64, exclusive = false, reverse = true} : (tensor<9x4xf32>) -> tensor<9x4xf32>
  return
}

// CHECK-LABEL: func.func @symbolic
func.func @symbolic(%x: tensor<?x?xi32, #graph.shape<["n", "m"]>>) {
  // CHECK: "graph.cumsum"(%{{.*}}) {axis = 1 : i64, exclusive = false, reverse = true} : (tensor<?x?xi32, #graph.shape<["n", "m"]>>) -> tensor<?x?xi32, #graph.shape<["n", "m"]>>
  %0 = "graph.cumsum"(%x) {axis = 1 : i64, exclusive = false, reverse = true} : (tensor<?x?xi32, #graph.shape<["n", "m"]>>) -> tensor<?x?xi32, #graph.shape<["n", "m"]>>
  return
}

// CHECK-LABEL: func.func @coarse
func.func @coarse(%x: tensor<?x4xf32>, %y: tensor<*xf32>) {
  // CHECK: "graph.cumsum"(%{{.*}}) {axis = 1 : i64, exclusive = false, reverse = true} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %0 = "graph.cumsum"(%x) {axis = 1 : i64, exclusive = false, reverse = true} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  // CHECK: "graph.cumprod"(%{{.*}}) {axis = 1 : i64, exclusive = false, reverse = true} : (tensor<*xf32>) -> tensor<*xf32>
  %1 = "graph.cumprod"(%y) {axis = 1 : i64, exclusive = false, reverse = true} : (tensor<*xf32>) -> tensor<*xf32>
  return
}
