// RUN: relax-opt %s --relax-verify | relax-opt --relax-verify | FileCheck %s

// CHECK-LABEL: func.func @static
func.func @static(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>, %z: tensor<5x1x2x3xf32>, %u: tensor<6x3x4xf32>, %v: tensor<2x3xi8>, %w: tensor<3x4xi8>) {
  // CHECK: "graph.matmul"(%{{.*}}, %{{.*}}) : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %0 = "graph.matmul"(%x, %y) : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  // CHECK: "graph.matmul"(%{{.*}}, %{{.*}}) : (tensor<5x1x2x3xf32>, tensor<6x3x4xf32>) -> tensor<5x6x2x4xf32>
  %1 = "graph.matmul"(%z, %u) : (tensor<5x1x2x3xf32>, tensor<6x3x4xf32>) -> tensor<5x6x2x4xf32>
  // CHECK: "graph.matmul"(%{{.*}}, %{{.*}}) : (tensor<2x3xi8>, tensor<3x4xi8>) -> tensor<2x4xi8>
  %2 = "graph.matmul"(%v, %w) : (tensor<2x3xi8>, tensor<3x4xi8>) -> tensor<2x4xi8>
  return
}

// CHECK-LABEL: func.func @symbolic
func.func @symbolic(%x: tensor<?x64xf32, #graph.shape<["n", 64]>>, %y: tensor<64x32xf32>, %z: tensor<?x?x?xf32, #graph.shape<["b", "n", "k"]>>, %u: tensor<?x?x?xf32, #graph.shape<["b", "k", "m"]>>, %v: tensor<?x?xf32, #graph.shape<["n", "2*k"]>>, %w: tensor<?x4xf32, #graph.shape<["2*k", 4]>>) {
  // CHECK: "graph.matmul"(%{{.*}}, %{{.*}}) : (tensor<?x64xf32, #graph.shape<["n", 64]>>, tensor<64x32xf32>) -> tensor<?x32xf32, #graph.shape<["n", 32]>>
  %0 = "graph.matmul"(%x, %y) : (tensor<?x64xf32, #graph.shape<["n", 64]>>, tensor<64x32xf32>) -> tensor<?x32xf32, #graph.shape<["n", 32]>>
  // CHECK: "graph.matmul"(%{{.*}}, %{{.*}}) : (tensor<?x?x?xf32, #graph.shape<["b", "n", "k"]>>, tensor<?x?x?xf32, #graph.shape<["b", "k", "m"]>>) -> tensor<?x?x?xf32, #graph.shape<["b", "n", "m"]>>
  %1 = "graph.matmul"(%z, %u) : (tensor<?x?x?xf32, #graph.shape<["b", "n", "k"]>>, tensor<?x?x?xf32, #graph.shape<["b", "k", "m"]>>) -> tensor<?x?x?xf32, #graph.shape<["b", "n", "m"]>>
  // CHECK: "graph.matmul"(%{{.*}}, %{{.*}}) : (tensor<?x?xf32, #graph.shape<["n", "2*k"]>>, tensor<?x4xf32, #graph.shape<["2*k", 4]>>) -> tensor<?x4xf32, #graph.shape<["n", 4]>>
  %2 = "graph.matmul"(%v, %w) : (tensor<?x?xf32, #graph.shape<["n", "2*k"]>>, tensor<?x4xf32, #graph.shape<["2*k", 4]>>) -> tensor<?x4xf32, #graph.shape<["n", 4]>>
  return
}

// Contracted dims that may be equal are accepted; run time compares them.
// CHECK-LABEL: func.func @coarse
func.func @coarse(%x: tensor<?x?xf32, #graph.shape<["n", "k"]>>, %y: tensor<?x4xf32, #graph.shape<["j", 4]>>, %z: tensor<?x?xf32>, %u: tensor<*xf32>, %v: tensor<3x4xf32>) {
  // CHECK: "graph.matmul"(%{{.*}}, %{{.*}}) : (tensor<?x?xf32, #graph.shape<["n", "k"]>>, tensor<?x4xf32, #graph.shape<["j", 4]>>) -> tensor<?x4xf32, #graph.shape<["n", 4]>>
  %0 = "graph.matmul"(%x, %y) : (tensor<?x?xf32, #graph.shape<["n", "k"]>>, tensor<?x4xf32, #graph.shape<["j", 4]>>) -> tensor<?x4xf32, #graph.shape<["n", 4]>>
  // CHECK: "graph.matmul"(%{{.*}}, %{{.*}}) : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  %1 = "graph.matmul"(%z, %z) : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  // CHECK: "graph.matmul"(%{{.*}}, %{{.*}}) : (tensor<*xf32>, tensor<3x4xf32>) -> tensor<*xf32>
  %2 = "graph.matmul"(%u, %v) : (tensor<*xf32>, tensor<3x4xf32>) -> tensor<*xf32>
  return
}
