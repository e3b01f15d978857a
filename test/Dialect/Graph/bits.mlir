// RUN: relax-opt %s --relax-verify | relax-opt --relax-verify | FileCheck %s

// CHECK-LABEL: func.func @static
func.func @static(%x: tensor<4xf32>, %y: tensor<2xi64>) {
  // CHECK: "graph.bitcast"(%{{.*}}) {dtype = i32} : (tensor<4xf32>) -> tensor<4xi32>
  %0 = "graph.bitcast"(%x) {dtype = i32} : (tensor<4xf32>) -> tensor<4xi32>
  // CHECK: "graph.philox"(%{{.*}}) {blocks = #graph.shape<[3]>} : (tensor<2xi64>) -> (tensor<3xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>)
  %1:4 = "graph.philox"(%y) {blocks = #graph.shape<[3]>} : (tensor<2xi64>) -> (tensor<3xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>)
  return
}

// CHECK-LABEL: func.func @symbolic
func.func @symbolic(%x: tensor<?x4xbf16, #graph.shape<["n", 4]>>, %y: tensor<?xi64, #graph.shape<["k"]>>) {
  // CHECK: "graph.bitcast"(%{{.*}}) {dtype = f16} : (tensor<?x4xbf16, #graph.shape<["n", 4]>>) -> tensor<?x4xf16, #graph.shape<["n", 4]>>
  %0 = "graph.bitcast"(%x) {dtype = f16} : (tensor<?x4xbf16, #graph.shape<["n", 4]>>) -> tensor<?x4xf16, #graph.shape<["n", 4]>>
  // CHECK: "graph.philox"(%{{.*}}) {blocks = #graph.shape<["n + 1"]>}
  %1:4 = "graph.philox"(%y) {blocks = #graph.shape<["n + 1"]>} : (tensor<?xi64, #graph.shape<["k"]>>) -> (tensor<?xi32, #graph.shape<["n + 1"]>>, tensor<?xi32, #graph.shape<["n + 1"]>>, tensor<?xi32, #graph.shape<["n + 1"]>>, tensor<?xi32>)
  return
}

// CHECK-LABEL: func.func @coarse
func.func @coarse(%x: tensor<*xf64>, %y: tensor<*xi64>) {
  // CHECK: "graph.bitcast"(%{{.*}}) {dtype = i64} : (tensor<*xf64>) -> tensor<*xi64>
  %0 = "graph.bitcast"(%x) {dtype = i64} : (tensor<*xf64>) -> tensor<*xi64>
  // CHECK: "graph.philox"(%{{.*}}) {blocks = #graph.shape<[0]>}
  %1:4 = "graph.philox"(%y) {blocks = #graph.shape<[0]>} : (tensor<*xi64>) -> (tensor<0xi32>, tensor<0xi32>, tensor<0xi32>, tensor<0xi32>)
  return
}
