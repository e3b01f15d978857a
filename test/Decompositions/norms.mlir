// RUN: %PYTHON %ROOT/test/lib/decompose.py %s | relax-opt --relax-verify | FileCheck %s

// DECOMPOSE: @groups(x: f32[n, 6, h, w], s: f32[6], b: f32[6]) = group_norm(x, 2, s, b, epsilon=0.5)
// CHECK-LABEL: func.func @groups
// CHECK-NEXT: %[[SPLIT:.*]] = "graph.reshape"(%arg0) {shape = #graph.shape<["n", 2, 3, "h", "w"]>}
// CHECK: "graph.mean"(%[[SPLIT]]) {axes = array<i64: 2, 3, 4>, keepdims = true}
// CHECK: "graph.variance"(%[[SPLIT]]) {axes = array<i64: 2, 3, 4>, correction = 0 : i64, keepdims = true}
// CHECK: "graph.expand_dims"(%arg1) {axes = array<i64: 0, 2, 3>}

// DECOMPOSE: @layers(x: f32[n, 3, m], s: f32[3, m], b: f32[m]) = layer_norm(x, s, b, epsilon=0.5, axis=1)
// CHECK-LABEL: func.func @layers
// CHECK: "graph.nn_layer_norm"(%{{.*}}) {epsilon = 5.000000e-01 : f64} : (tensor<?x?xf32, #graph.shape<["n", "3*m"]>>, tensor<?xf32, #graph.shape<["3*m"]>>, tensor<?xf32, #graph.shape<["3*m"]>>)

// DECOMPOSE: @loss(x: f32[n, 5], t: i64[n]) = cross_entropy(x, t)
// CHECK-LABEL: func.func @loss
// CHECK: %[[LOGS:.*]] = "graph.nn_log_softmax"(%arg0) {axis = 1 : i64}
// CHECK: "graph.gather_elements"(%[[LOGS]], %{{.*}}) {axis = 1 : i64}
// CHECK: "graph.mean"
