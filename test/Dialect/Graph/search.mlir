// RUN: relax-opt %s --relax-verify | relax-opt --relax-verify | FileCheck %s

// CHECK-LABEL: func.func @static
func.func @static(%x: tensor<3x4xf32>, %y: tensor<3x4xi8>) {
  // CHECK: "graph.argmax"(%{{.*}}) {axis = -1 : i64, keepdims = false} : (tensor<3x4xf32>) -> tensor<3xi64>
  %0 = "graph.argmax"(%x) {axis = -1 : i64, keepdims = false} : (tensor<3x4xf32>) -> tensor<3xi64>
  // CHECK: "graph.argmin"(%{{.*}}) {axis = -1 : i64, keepdims = false} : (tensor<3x4xf32>) -> tensor<3xi64>
  %1 = "graph.argmin"(%x) {axis = -1 : i64, keepdims = false} : (tensor<3x4xf32>) -> tensor<3xi64>
  // CHECK: "graph.argmax"(%{{.*}}) {axis = 0 : i64, keepdims = true} : (tensor<3x4xi8>) -> tensor<1x4xi64>
  %2 = "graph.argmax"(%y) {axis = 0 : i64, keepdims = true} : (tensor<3x4xi8>) -> tensor<1x4xi64>
  return
}

// CHECK-LABEL: func.func @symbolic
func.func @symbolic(%x: tensor<?x?xf32, #graph.shape<["n", "v"]>>) {
  // CHECK: "graph.argmax"(%{{.*}}) {axis = 1 : i64, keepdims = false} : (tensor<?x?xf32, #graph.shape<["n", "v"]>>) -> tensor<?xi64, #graph.shape<["n"]>>
  %0 = "graph.argmax"(%x) {axis = 1 : i64, keepdims = false} : (tensor<?x?xf32, #graph.shape<["n", "v"]>>) -> tensor<?xi64, #graph.shape<["n"]>>
  return
}

// CHECK-LABEL: func.func @coarse
func.func @coarse(%x: tensor<*xf32>, %y: tensor<?x4xf32>) {
  // CHECK: "graph.argmax"(%{{.*}}) {axis = 5 : i64, keepdims = true} : (tensor<*xf32>) -> tensor<*xi64>
  %0 = "graph.argmax"(%x) {axis = 5 : i64, keepdims = true} : (tensor<*xf32>) -> tensor<*xi64>
  // CHECK: "graph.argmin"(%{{.*}}) {axis = 1 : i64, keepdims = false} : (tensor<?x4xf32>) -> tensor<?xi64>
  %1 = "graph.argmin"(%y) {axis = 1 : i64, keepdims = false} : (tensor<?x4xf32>) -> tensor<?xi64>
  return
}

// CHECK-LABEL: func.func @first_nonzero
func.func @first_nonzero(%x: tensor<?x4xf32>, %y: tensor<?xi1, #graph.shape<["n"]>>) {
  // CHECK: "graph.first_nonzero"(%{{.*}}) {count = #graph.shape<[7]>} : (tensor<?x4xf32>) -> tensor<2x7xi64>
  %0 = "graph.first_nonzero"(%x) {count = #graph.shape<[7]>} : (tensor<?x4xf32>) -> tensor<2x7xi64>
  // CHECK: "graph.first_nonzero"(%{{.*}}) {count = #graph.shape<["n"]>} : (tensor<?xi1, #graph.shape<["n"]>>) -> tensor<1x?xi64, #graph.shape<[1, "n"]>>
  %1 = "graph.first_nonzero"(%y) {count = #graph.shape<["n"]>} : (tensor<?xi1, #graph.shape<["n"]>>) -> tensor<1x?xi64, #graph.shape<[1, "n"]>>
  return
}
