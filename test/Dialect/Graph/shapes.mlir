// RUN: relax-opt %s --relax-verify | relax-opt --relax-verify | FileCheck %s

// CHECK-LABEL: func.func @static
func.func @static(%x: tensor<2x3xf32>, %y: tensor<?xf32>) {
  // CHECK: "graph.shape_of"(%{{.*}}) : (tensor<2x3xf32>) -> !graph.shape_value<[2, 3]>
  %0 = "graph.shape_of"(%x) : (tensor<2x3xf32>) -> !graph.shape_value<[2, 3]>
  // CHECK: "graph.make_shape"() {dims = #graph.shape<[2, 3]>} : () -> !graph.shape_value<[2, 3]>
  %1 = "graph.make_shape"() {dims = #graph.shape<[2, 3]>} : () -> !graph.shape_value<[2, 3]>
  // CHECK: "graph.match_cast"(%{{.*}}) : (tensor<?xf32>) -> tensor<4xf32>
  %2 = "graph.match_cast"(%y) : (tensor<?xf32>) -> tensor<4xf32>
  return
}

// A match_cast binds k.
// CHECK-LABEL: func.func @symbolic
func.func @symbolic(%x: tensor<?x4xf32, #graph.shape<["n", 4]>>, %y: tensor<?x4xf32>, %z: tensor<*xf32>, %s: !graph.shape_value<["n"]>) {
  // CHECK: "graph.shape_of"(%{{.*}}) : (tensor<?x4xf32, #graph.shape<["n", 4]>>) -> !graph.shape_value<["n", 4]>
  %0 = "graph.shape_of"(%x) : (tensor<?x4xf32, #graph.shape<["n", 4]>>) -> !graph.shape_value<["n", 4]>
  // CHECK: "graph.make_shape"() {dims = #graph.shape<["n", "2*n"]>} : () -> !graph.shape_value<["n", "2*n"]>
  %1 = "graph.make_shape"() {dims = #graph.shape<["n", "2*n"]>} : () -> !graph.shape_value<["n", "2*n"]>
  // CHECK: "graph.match_cast"(%{{.*}}) : (tensor<?x4xf32>) -> tensor<?x4xf32, #graph.shape<["k", 4]>>
  %2 = "graph.match_cast"(%y) : (tensor<?x4xf32>) -> tensor<?x4xf32, #graph.shape<["k", 4]>>
  // CHECK: "graph.match_cast"(%{{.*}}) : (tensor<*xf32>) -> tensor<?x4xf32, #graph.shape<["k", 4]>>
  %3 = "graph.match_cast"(%z) : (tensor<*xf32>) -> tensor<?x4xf32, #graph.shape<["k", 4]>>
  return
}

// CHECK-LABEL: func.func @coarse
func.func @coarse(%x: tensor<?x4xf32>, %y: tensor<4xf32>, %z: !graph.object) {
  // CHECK: "graph.shape_of"(%{{.*}}) : (tensor<?x4xf32>) -> !graph.shape_value<["?", 4]>
  %0 = "graph.shape_of"(%x) : (tensor<?x4xf32>) -> !graph.shape_value<["?", 4]>
  // CHECK: "graph.match_cast"(%{{.*}}) : (tensor<4xf32>) -> tensor<*xf32>
  %1 = "graph.match_cast"(%y) : (tensor<4xf32>) -> tensor<*xf32>
  // CHECK: "graph.match_cast"(%{{.*}}) : (!graph.object) -> tensor<?xf32>
  %2 = "graph.match_cast"(%z) : (!graph.object) -> tensor<?xf32>
  return
}

// CHECK-LABEL: func.func @required
func.func @required(%x: tensor<?xf32, #graph.shape<["n"]>>, %y: tensor<?xf32, #graph.shape<["k"]>>) {
  // CHECK: "graph.require"() {any_of = ["k == n", "k == 1", "n == 1"], by = "graph.add"} : () -> ()
  "graph.require"() {any_of = ["k == n", "k == 1", "n == 1"], by = "graph.add"} : () -> ()
  return
}

// CHECK-LABEL: func.func @of_elements
func.func @of_elements(%x: tensor<2xi64>) {
  // CHECK: "graph.tensor_to_shape"(%{{.*}}) : (tensor<2xi64>) -> !graph.shape_value<["?", "?"]>
  %0 = "graph.tensor_to_shape"(%x) : (tensor<2xi64>) -> !graph.shape_value<["?", "?"]>
  // CHECK: "graph.match_cast"(%{{.*}}) : (!graph.shape_value<["?", "?"]>) -> !graph.shape_value<["k", "m"]>
  %1 = "graph.match_cast"(%0) : (!graph.shape_value<["?", "?"]>) -> !graph.shape_value<["k", "m"]>
  return
}
