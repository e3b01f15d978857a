// RUN: relax-opt %s --relax-verify | relax-opt --relax-verify | FileCheck %s

// CHECK-LABEL: func.func @static
func.func @static(%x: tensor<4xf32>, %y: tensor<4xi1>) {
  // CHECK: "graph.astype"(%{{.*}}) {dtype = i8} : (tensor<4xf32>) -> tensor<4xi8>
  %0 = "graph.astype"(%x) {dtype = i8} : (tensor<4xf32>) -> tensor<4xi8>
  // CHECK: "graph.astype"(%{{.*}}) {dtype = i1} : (tensor<4xf32>) -> tensor<4xi1>
  %1 = "graph.astype"(%x) {dtype = i1} : (tensor<4xf32>) -> tensor<4xi1>
  // CHECK: "graph.astype"(%{{.*}}) {dtype = bf16} : (tensor<4xi1>) -> tensor<4xbf16>
  %2 = "graph.astype"(%y) {dtype = bf16} : (tensor<4xi1>) -> tensor<4xbf16>
  // CHECK: "graph.astype"(%{{.*}}) {dtype = f32} : (tensor<4xf32>) -> tensor<4xf32>
  %3 = "graph.astype"(%x) {dtype = f32} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// CHECK-LABEL: func.func @symbolic
func.func @symbolic(%x: tensor<?x4xf32, #graph.shape<["n", 4]>>) {
  // CHECK: "graph.astype"(%{{.*}}) {dtype = f16} : (tensor<?x4xf32, #graph.shape<["n", 4]>>) -> tensor<?x4xf16, #graph.shape<["n", 4]>>
  %0 = "graph.astype"(%x) {dtype = f16} : (tensor<?x4xf32, #graph.shape<["n", 4]>>) -> tensor<?x4xf16, #graph.shape<["n", 4]>>
  return
}

// CHECK-LABEL: func.func @coarse
func.func @coarse(%x: tensor<*xf32>, %y: tensor<?xf32, #graph.shape<["n"]>>) {
  // CHECK: "graph.astype"(%{{.*}}) {dtype = f64} : (tensor<*xf32>) -> tensor<*xf64>
  %0 = "graph.astype"(%x) {dtype = f64} : (tensor<*xf32>) -> tensor<*xf64>
  // CHECK: "graph.astype"(%{{.*}}) {dtype = f64} : (tensor<?xf32, #graph.shape<["n"]>>) -> tensor<?xf64>
  %1 = "graph.astype"(%y) {dtype = f64} : (tensor<?xf32, #graph.shape<["n"]>>) -> tensor<?xf64>
  return
}
