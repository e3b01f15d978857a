// RUN: relax-opt %s --relax-verify | relax-opt --relax-verify | FileCheck %s

// CHECK-LABEL: func.func @static
func.func @static(%x: tensor<4xi1>, %y: tensor<4xf32>, %z: tensor<3x1xi1>, %u: tensor<4xi8>, %v: tensor<i8>) {
  // CHECK: "graph.where"(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %0 = "graph.where"(%x, %y, %y) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: "graph.where"(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<3x1xi1>, tensor<4xi8>, tensor<i8>) -> tensor<3x4xi8>
  %1 = "graph.where"(%z, %u, %v) : (tensor<3x1xi1>, tensor<4xi8>, tensor<i8>) -> tensor<3x4xi8>
  return
}

// CHECK-LABEL: func.func @symbolic
func.func @symbolic(%x: tensor<?x1xi1, #graph.shape<["n", 1]>>, %y: tensor<?x?xf32, #graph.shape<["n", "m"]>>, %z: tensor<?xf32, #graph.shape<["m"]>>) {
  // CHECK: "graph.where"(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<?x1xi1, #graph.shape<["n", 1]>>, tensor<?x?xf32, #graph.shape<["n", "m"]>>, tensor<?xf32, #graph.shape<["m"]>>) -> tensor<?x?xf32, #graph.shape<["n", "m"]>>
  %0 = "graph.where"(%x, %y, %z) : (tensor<?x1xi1, #graph.shape<["n", 1]>>, tensor<?x?xf32, #graph.shape<["n", "m"]>>, tensor<?xf32, #graph.shape<["m"]>>) -> tensor<?x?xf32, #graph.shape<["n", "m"]>>
  return
}

// CHECK-LABEL: func.func @coarse
func.func @coarse(%x: tensor<*xi1>, %y: tensor<4xf32>, %z: tensor<?xi1>, %u: tensor<?xf32, #graph.shape<["n"]>>) {
  // CHECK: "graph.where"(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<*xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<*xf32>
  %0 = "graph.where"(%x, %y, %y) : (tensor<*xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<*xf32>
  // CHECK: "graph.where"(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<?xi1>, tensor<?xf32, #graph.shape<["n"]>>, tensor<?xf32, #graph.shape<["n"]>>) -> tensor<?xf32>
  %1 = "graph.where"(%z, %u, %u) : (tensor<?xi1>, tensor<?xf32, #graph.shape<["n"]>>, tensor<?xf32, #graph.shape<["n"]>>) -> tensor<?xf32>
  return
}
