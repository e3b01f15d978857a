// RUN: %PYTHON %ROOT/test/lib/decompose.py %s | relax-opt --relax-verify | FileCheck %s

// Four words for each value of the counter, which is 5 further afterwards.
// DECOMPOSE: @dropped(s: i64[2], x: f32[17]) = dropout(s, x, 0.25)
// CHECK-LABEL: func.func @dropped
// CHECK: %[[W:.*]]:4 = "graph.philox"(%arg0) {blocks = #graph.shape<[5]>}
// CHECK: "graph.stack"(%[[W]]#0, %[[W]]#1, %[[W]]#2, %[[W]]#3) {axis = 1 : i64
// CHECK: "graph.strided_slice"(%{{.*}}) {{.*}}end = #graph.shape<[17]>
// CHECK: %[[MASK:.*]] = "graph.greater_equal"
// CHECK: %[[Y:.*]] = "graph.where"(%[[MASK]]
// CHECK: return %[[Y]], %[[MASK]], %{{.*}} : tensor<17xf32>, tensor<17xi1>, tensor<2xi64>

// DECOMPOSE: @classes(s: i64[2], x: f32[n, c]) = multinomial(s, x, 4)
// CHECK-LABEL: func.func @classes
// CHECK: %[[SUMS:.*]] = "graph.cumsum"
// CHECK: "graph.searchsorted"(%[[SUMS]], %{{.*}}) {right = true} : {{.*}} -> tensor<?x4xi64, #graph.shape<["n", 4]>>
