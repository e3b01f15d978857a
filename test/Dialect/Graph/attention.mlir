// RUN: relax-opt %s --relax-verify | relax-opt --relax-verify | FileCheck %s

// CHECK-LABEL: func.func @static
func.func @static(%x: tensor<5x2x8xf32>, %y: tensor<5x4xf32>, %z: tensor<2x16x8xf32>, %u: tensor<3x2x8xf32>, %v: tensor<3x4x8xf32>) {
  // CHECK: "graph.nn_rotary"(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<5x2x8xf32>, tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x2x8xf32>
  %0 = "graph.nn_rotary"(%x, %y, %y) : (tensor<5x2x8xf32>, tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x2x8xf32>
  // CHECK: "graph.nn_kv_append"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {position = #graph.shape<[4]>} : (tensor<2x16x8xf32>, tensor<2x16x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>) -> (tensor<2x16x8xf32>, tensor<2x16x8xf32>)
  %1:2 = "graph.nn_kv_append"(%z, %z, %u, %u) {position = #graph.shape<[4]>} : (tensor<2x16x8xf32>, tensor<2x16x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>) -> (tensor<2x16x8xf32>, tensor<2x16x8xf32>)
  // CHECK: "graph.nn_attention"(%{{.*}}, %{{.*}}, %{{.*}}) {causal = true, position = #graph.shape<[4]>, scale = 1.250000e-01 : f64} : (tensor<3x4x8xf32>, tensor<2x16x8xf32>, tensor<2x16x8xf32>) -> tensor<3x4x8xf32>
  %2 = "graph.nn_attention"(%v, %z, %z) {causal = true, position = #graph.shape<[4]>, scale = 1.250000e-01 : f64} : (tensor<3x4x8xf32>, tensor<2x16x8xf32>, tensor<2x16x8xf32>) -> tensor<3x4x8xf32>
  return
}

// CHECK-LABEL: func.func @symbolic
func.func @symbolic(%x: tensor<?x2x8xf32, #graph.shape<["n", 2, 8]>>, %y: tensor<?x4xf32, #graph.shape<["n", 4]>>, %z: tensor<?x2x?xf32, #graph.shape<["n", 2, "2*d"]>>, %u: tensor<?x?xf32, #graph.shape<["n", "d"]>>, %v: tensor<2x?x8xf32, #graph.shape<[2, "c", 8]>>, %w: tensor<?x4x8xf32, #graph.shape<["n", 4, 8]>>, %s: !graph.shape_value<["m"]>) {
  // CHECK: "graph.nn_rotary"(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<?x2x8xf32, #graph.shape<["n", 2, 8]>>, tensor<?x4xf32, #graph.shape<["n", 4]>>, tensor<?x4xf32, #graph.shape<["n", 4]>>) -> tensor<?x2x8xf32, #graph.shape<["n", 2, 8]>>
  %0 = "graph.nn_rotary"(%x, %y, %y) : (tensor<?x2x8xf32, #graph.shape<["n", 2, 8]>>, tensor<?x4xf32, #graph.shape<["n", 4]>>, tensor<?x4xf32, #graph.shape<["n", 4]>>) -> tensor<?x2x8xf32, #graph.shape<["n", 2, 8]>>
  // CHECK: "graph.nn_rotary"(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<?x2x?xf32, #graph.shape<["n", 2, "2*d"]>>, tensor<?x?xf32, #graph.shape<["n", "d"]>>, tensor<?x?xf32, #graph.shape<["n", "d"]>>) -> tensor<?x2x?xf32, #graph.shape<["n", 2, "2*d"]>>
  %1 = "graph.nn_rotary"(%z, %u, %u) : (tensor<?x2x?xf32, #graph.shape<["n", 2, "2*d"]>>, tensor<?x?xf32, #graph.shape<["n", "d"]>>, tensor<?x?xf32, #graph.shape<["n", "d"]>>) -> tensor<?x2x?xf32, #graph.shape<["n", 2, "2*d"]>>
  // CHECK: "graph.nn_kv_append"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {position = #graph.shape<["m"]>} : (tensor<2x?x8xf32, #graph.shape<[2, "c", 8]>>, tensor<2x?x8xf32, #graph.shape<[2, "c", 8]>>, tensor<?x2x8xf32, #graph.shape<["n", 2, 8]>>, tensor<?x2x8xf32, #graph.shape<["n", 2, 8]>>) -> (tensor<2x?x8xf32, #graph.shape<[2, "c", 8]>>, tensor<2x?x8xf32, #graph.shape<[2, "c", 8]>>)
  %2:2 = "graph.nn_kv_append"(%v, %v, %x, %x) {position = #graph.shape<["m"]>} : (tensor<2x?x8xf32, #graph.shape<[2, "c", 8]>>, tensor<2x?x8xf32, #graph.shape<[2, "c", 8]>>, tensor<?x2x8xf32, #graph.shape<["n", 2, 8]>>, tensor<?x2x8xf32, #graph.shape<["n", 2, 8]>>) -> (tensor<2x?x8xf32, #graph.shape<[2, "c", 8]>>, tensor<2x?x8xf32, #graph.shape<[2, "c", 8]>>)
  // CHECK: "graph.nn_attention"(%{{.*}}, %{{.*}}, %{{.*}}) {causal = false, position = #graph.shape<["m"]>, scale = 1.250000e-01 : f64} : (tensor<?x4x8xf32, #graph.shape<["n", 4, 8]>>, tensor<2x?x8xf32, #graph.shape<[2, "c", 8]>>, tensor<2x?x8xf32, #graph.shape<[2, "c", 8]>>) -> tensor<?x4x8xf32, #graph.shape<["n", 4, 8]>>
  %3 = "graph.nn_attention"(%w, %v, %v) {causal = false, position = #graph.shape<["m"]>, scale = 1.250000e-01 : f64} : (tensor<?x4x8xf32, #graph.shape<["n", 4, 8]>>, tensor<2x?x8xf32, #graph.shape<[2, "c", 8]>>, tensor<2x?x8xf32, #graph.shape<[2, "c", 8]>>) -> tensor<?x4x8xf32, #graph.shape<["n", 4, 8]>>
  return
}

// CHECK-LABEL: func.func @coarse
func.func @coarse(%x: tensor<*xf32>, %y: tensor<?x4xf32>, %z: tensor<2x?x8xf32>, %u: tensor<?x2x8xf32>, %v: tensor<?x4x8xf32>) {
  // CHECK: "graph.nn_rotary"(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<*xf32>, tensor<*xf32>, tensor<?x4xf32>) -> tensor<*xf32>
  %0 = "graph.nn_rotary"(%x, %x, %y) : (tensor<*xf32>, tensor<*xf32>, tensor<?x4xf32>) -> tensor<*xf32>
  // CHECK: "graph.nn_kv_append"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {position = #graph.shape<[0]>} : (tensor<*xf32>, tensor<2x?x8xf32>, tensor<?x2x8xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<2x?x8xf32>)
  %1:2 = "graph.nn_kv_append"(%x, %z, %u, %x) {position = #graph.shape<[0]>} : (tensor<*xf32>, tensor<2x?x8xf32>, tensor<?x2x8xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<2x?x8xf32>)
  // CHECK: "graph.nn_attention"(%{{.*}}, %{{.*}}, %{{.*}}) {causal = true, position = #graph.shape<[0]>, scale = 1.250000e-01 : f64} : (tensor<?x4x8xf32>, tensor<2x?x8xf32>, tensor<*xf32>) -> tensor<?x4x8xf32>
  %2 = "graph.nn_attention"(%v, %z, %x) {causal = true, position = #graph.shape<[0]>, scale = 1.250000e-01 : f64} : (tensor<?x4x8xf32>, tensor<2x?x8xf32>, tensor<*xf32>) -> tensor<?x4x8xf32>
  return
}

// CHECK-LABEL: func.func @batched
func.func @batched(%q: tensor<?x?x4x8xf32, #graph.shape<["b", "n", 4, 8]>>, %k: tensor<?x?x2x8xf32, #graph.shape<["b", "m", 2, 8]>>, %v: tensor<?x?x2x6xf32, #graph.shape<["b", "m", 2, 6]>>, %a: tensor<?x1x1x?xf32, #graph.shape<["b", 1, 1, "m"]>>, %u: tensor<*xf32>) {
  // CHECK: "graph.nn_batched_attention"(%{{.*}}, %{{.*}}, %{{.*}}) {causal = true, operandSegmentSizes = array<i32: 1, 1, 1, 0>, scale = 5.000000e-01 : f64} : (tensor<?x?x4x8xf32, #graph.shape<["b", "n", 4, 8]>>, tensor<?x?x2x8xf32, #graph.shape<["b", "m", 2, 8]>>, tensor<?x?x2x6xf32, #graph.shape<["b", "m", 2, 6]>>) -> tensor<?x?x4x6xf32, #graph.shape<["b", "n", 4, 6]>>
  %0 = "graph.nn_batched_attention"(%q, %k, %v) {causal = true, operandSegmentSizes = array<i32: 1, 1, 1, 0>, scale = 0.5 : f64} : (tensor<?x?x4x8xf32, #graph.shape<["b", "n", 4, 8]>>, tensor<?x?x2x8xf32, #graph.shape<["b", "m", 2, 8]>>, tensor<?x?x2x6xf32, #graph.shape<["b", "m", 2, 6]>>) -> tensor<?x?x4x6xf32, #graph.shape<["b", "n", 4, 6]>>
  // CHECK: "graph.nn_batched_attention"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {{.*}} -> tensor<?x?x4x6xf32, #graph.shape<["b", "n", 4, 6]>>
  %1 = "graph.nn_batched_attention"(%q, %k, %v, %a) {causal = false, operandSegmentSizes = array<i32: 1, 1, 1, 1>, scale = 0.5 : f64} : (tensor<?x?x4x8xf32, #graph.shape<["b", "n", 4, 8]>>, tensor<?x?x2x8xf32, #graph.shape<["b", "m", 2, 8]>>, tensor<?x?x2x6xf32, #graph.shape<["b", "m", 2, 6]>>, tensor<?x1x1x?xf32, #graph.shape<["b", 1, 1, "m"]>>) -> tensor<?x?x4x6xf32, #graph.shape<["b", "n", 4, 6]>>
  // CHECK: "graph.nn_batched_attention"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {{.*}} -> tensor<*xf32>
  %2 = "graph.nn_batched_attention"(%u, %k, %u, %u) {causal = false, operandSegmentSizes = array<i32: 1, 1, 1, 1>, scale = 0.5 : f64} : (tensor<*xf32>, tensor<?x?x2x8xf32, #graph.shape<["b", "m", 2, 8]>>, tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  return
}
