// RUN: relax-opt %s --relax-verify | relax-opt --relax-verify | FileCheck %s

// CHECK-LABEL: func.func @static
func.func @static(%x: tensor<4x8xf32>, %y: tensor<4xi8>, %z: tensor<8xf32>) {
  // CHECK: "graph.nn_relu"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %0 = "graph.nn_relu"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.nn_silu"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = "graph.nn_silu"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.nn_gelu"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = "graph.nn_gelu"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.nn_gelu_tanh"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = "graph.nn_gelu_tanh"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.nn_relu"(%{{.*}}) : (tensor<4xi8>) -> tensor<4xi8>
  %4 = "graph.nn_relu"(%y) : (tensor<4xi8>) -> tensor<4xi8>
  // CHECK: "graph.nn_softmax"(%{{.*}}) {axis = -1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %5 = "graph.nn_softmax"(%x) {axis = -1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.nn_rms_norm"(%{{.*}}, %{{.*}}) {epsilon = 1.000000e-05 : f64} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %6 = "graph.nn_rms_norm"(%x, %z) {epsilon = 1.000000e-05 : f64} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.nn_layer_norm"(%{{.*}}, %{{.*}}, %{{.*}}) {epsilon = 1.000000e-05 : f64} : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %7 = "graph.nn_layer_norm"(%x, %z, %z) {epsilon = 1.000000e-05 : f64} : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  return
}

// CHECK-LABEL: func.func @symbolic
func.func @symbolic(%x: tensor<?x8xf32, #graph.shape<["n", 8]>>, %y: tensor<?x?xf32, #graph.shape<["n", "m"]>>, %z: tensor<?x?xf32, #graph.shape<["n", "k"]>>, %u: tensor<?xf32, #graph.shape<["k"]>>, %v: tensor<?x?x8xf32, #graph.shape<["b", "n", 8]>>, %w: tensor<8xf32>) {
  // CHECK: "graph.nn_silu"(%{{.*}}) : (tensor<?x8xf32, #graph.shape<["n", 8]>>) -> tensor<?x8xf32, #graph.shape<["n", 8]>>
  %0 = "graph.nn_silu"(%x) : (tensor<?x8xf32, #graph.shape<["n", 8]>>) -> tensor<?x8xf32, #graph.shape<["n", 8]>>
  // CHECK: "graph.nn_softmax"(%{{.*}}) {axis = 0 : i64} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>) -> tensor<?x?xf32, #graph.shape<["n", "m"]>>
  %1 = "graph.nn_softmax"(%y) {axis = 0 : i64} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>) -> tensor<?x?xf32, #graph.shape<["n", "m"]>>
  // CHECK: "graph.nn_rms_norm"(%{{.*}}, %{{.*}}) {epsilon = 1.000000e-05 : f64} : (tensor<?x?xf32, #graph.shape<["n", "k"]>>, tensor<?xf32, #graph.shape<["k"]>>) -> tensor<?x?xf32, #graph.shape<["n", "k"]>>
  %2 = "graph.nn_rms_norm"(%z, %u) {epsilon = 1.000000e-05 : f64} : (tensor<?x?xf32, #graph.shape<["n", "k"]>>, tensor<?xf32, #graph.shape<["k"]>>) -> tensor<?x?xf32, #graph.shape<["n", "k"]>>
  // CHECK: "graph.nn_layer_norm"(%{{.*}}, %{{.*}}, %{{.*}}) {epsilon = 1.000000e-05 : f64} : (tensor<?x?x8xf32, #graph.shape<["b", "n", 8]>>, tensor<8xf32>, tensor<8xf32>) -> tensor<?x?x8xf32, #graph.shape<["b", "n", 8]>>
  %3 = "graph.nn_layer_norm"(%v, %w, %w) {epsilon = 1.000000e-05 : f64} : (tensor<?x?x8xf32, #graph.shape<["b", "n", 8]>>, tensor<8xf32>, tensor<8xf32>) -> tensor<?x?x8xf32, #graph.shape<["b", "n", 8]>>
  return
}

// CHECK-LABEL: func.func @coarse
func.func @coarse(%x: tensor<*xf32>, %y: tensor<?x?xf32, #graph.shape<["?", "k"]>>, %z: tensor<?xf32>, %u: tensor<8xf32>) {
  // CHECK: "graph.nn_gelu"(%{{.*}}) : (tensor<*xf32>) -> tensor<*xf32>
  %0 = "graph.nn_gelu"(%x) : (tensor<*xf32>) -> tensor<*xf32>
  // CHECK: "graph.nn_softmax"(%{{.*}}) {axis = 7 : i64} : (tensor<*xf32>) -> tensor<*xf32>
  %1 = "graph.nn_softmax"(%x) {axis = 7 : i64} : (tensor<*xf32>) -> tensor<*xf32>
  // CHECK: "graph.nn_rms_norm"(%{{.*}}, %{{.*}}) {epsilon = 1.000000e-05 : f64} : (tensor<?x?xf32, #graph.shape<["?", "k"]>>, tensor<?xf32>) -> tensor<?x?xf32, #graph.shape<["?", "k"]>>
  %2 = "graph.nn_rms_norm"(%y, %z) {epsilon = 1.000000e-05 : f64} : (tensor<?x?xf32, #graph.shape<["?", "k"]>>, tensor<?xf32>) -> tensor<?x?xf32, #graph.shape<["?", "k"]>>
  // CHECK: "graph.nn_layer_norm"(%{{.*}}, %{{.*}}, %{{.*}}) {epsilon = 1.000000e-05 : f64} : (tensor<*xf32>, tensor<*xf32>, tensor<8xf32>) -> tensor<*xf32>
  %3 = "graph.nn_layer_norm"(%x, %x, %u) {epsilon = 1.000000e-05 : f64} : (tensor<*xf32>, tensor<*xf32>, tensor<8xf32>) -> tensor<*xf32>
  return
}

// CHECK-LABEL: func.func @log_softmax
func.func @log_softmax(%x: tensor<9x4xf32>, %y: tensor<?x?xf32, #graph.shape<["n", "m"]>>, %z: tensor<*xf32>) {
  // CHECK: "graph.nn_log_softmax"(%{{.*}}) {axis = 1 : i64} : (tensor<9x4xf32>) -> tensor<9x4xf32>
  %0 = "graph.nn_log_softmax"(%x) {axis = 1 : i64} : (tensor<9x4xf32>) -> tensor<9x4xf32>
  // CHECK: "graph.nn_log_softmax"(%{{.*}}) {axis = -2 : i64} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>) -> tensor<?x?xf32, #graph.shape<["n", "m"]>>
  %1 = "graph.nn_log_softmax"(%y) {axis = -2 : i64} : (tensor<?x?xf32, #graph.shape<["n", "m"]>>) -> tensor<?x?xf32, #graph.shape<["n", "m"]>>
  // CHECK: "graph.nn_log_softmax"(%{{.*}}) {axis = 0 : i64} : (tensor<*xf32>) -> tensor<*xf32>
  %2 = "graph.nn_log_softmax"(%z) {axis = 0 : i64} : (tensor<*xf32>) -> tensor<*xf32>
  return
}
