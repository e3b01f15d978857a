// RUN: relax-opt %s --relax-verify | relax-opt --relax-verify | FileCheck %s

// CHECK-LABEL: func.func @static
func.func @static(%x: tensor<9x4xf32>) {
  // CHECK: "graph.sort"(%{{.*}}) {axis = -1 : i64, descending = true} : (tensor<9x4xf32>) -> (tensor<9x4xf32>, tensor<9x4xi64>)
  %0:2 = "graph.sort"(%x) {axis = -1 : i64, descending = true} : (tensor<9x4xf32>) -> (tensor<9x4xf32>, tensor<9x4xi64>)
  // CHECK: "graph.topk"(%{{.*}}) {axis = 0 : i64, k = #graph.shape<[3]>, largest = false} : (tensor<9x4xf32>) -> (tensor<3x4xf32>, tensor<3x4xi64>)
  %1:2 = "graph.topk"(%x) {axis = 0 : i64, k = #graph.shape<[3]>, largest = false} : (tensor<9x4xf32>) -> (tensor<3x4xf32>, tensor<3x4xi64>)
  return
}

// CHECK-LABEL: func.func @symbolic
func.func @symbolic(%x: tensor<?x?xf32, #graph.shape<["n", "m"]>>, %y: tensor<?xf32, #graph.shape<["k"]>>) {
  // CHECK: "graph.sort"(%{{.*}}) {axis = -1 : i64, descending = true} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>) -> (tensor<?x?xf32, #graph.shape<["n", "m"]>>, tensor<?x?xi64, #graph.shape<["n", "m"]>>)
  %0:2 = "graph.sort"(%x) {axis = -1 : i64, descending = true} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>) -> (tensor<?x?xf32, #graph.shape<["n", "m"]>>, tensor<?x?xi64, #graph.shape<["n", "m"]>>)
  // CHECK: "graph.topk"(%{{.*}}) {axis = 1 : i64, k = #graph.shape<["k"]>, largest = false} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>) -> (tensor<?x?xf32, #graph.shape<["n", "k"]>>, tensor<?x?xi64, #graph.shape<["n", "k"]>>)
  %1:2 = "graph.topk"(%x) {axis = 1 : i64, k = #graph.shape<["k"]>, largest = false} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>) -> (tensor<?x?xf32, #graph.shape<["n", "k"]>>, tensor<?x?xi64, #graph.shape<["n", "k"]>>)
  return
}

// CHECK-LABEL: func.func @coarse
func.func @coarse(%x: tensor<?x4xf32>, %y: tensor<*xf32>) {
  // CHECK: "graph.sort"(%{{.*}}) {axis = -1 : i64, descending = true} : (tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi64>)
  %0:2 = "graph.sort"(%y) {axis = -1 : i64, descending = true} : (tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi64>)
  // CHECK: "graph.topk"(%{{.*}}) {axis = 0 : i64, k = #graph.shape<[3]>, largest = false} : (tensor<?x4xf32>) -> (tensor<3x4xf32>, tensor<3x4xi64>)
  %1:2 = "graph.topk"(%x) {axis = 0 : i64, k = #graph.shape<[3]>, largest = false} : (tensor<?x4xf32>) -> (tensor<3x4xf32>, tensor<3x4xi64>)
  return
}

// CHECK-LABEL: func.func @rows
func.func @rows(%x: tensor<?x4xf32, #graph.shape<["n", 4]>>, %y: tensor<*xi8>) {
  // CHECK: "graph.argsort_rows"(%{{.*}}) : (tensor<?x4xf32, #graph.shape<["n", 4]>>) -> tensor<?xi64, #graph.shape<["n"]>>
  %0 = "graph.argsort_rows"(%x) : (tensor<?x4xf32, #graph.shape<["n", 4]>>) -> tensor<?xi64, #graph.shape<["n"]>>
  // CHECK: "graph.argsort_rows"(%{{.*}}) : (tensor<*xi8>) -> tensor<?xi64>
  %1 = "graph.argsort_rows"(%y) : (tensor<*xi8>) -> tensor<?xi64>
  return
}
