// RUN: %PYTHON %ROOT/test/lib/decompose.py %s | relax-opt --relax-verify | FileCheck %s

// Four words for each value of the counter, which is 5 further afterwards.
// DECOMPOSE: @dropped(s: i64[2], x: f32[17]) = dropout(s, x, 0.25)
// CHECK-LABEL: func.func @dropped
// CHECK-DAG: %[[KEY:.*]] = "graph.take"(%arg0, %{{.*}}) {axis = 0 : i64} : (tensor<2xi64>, tensor<i64>) -> tensor<i64>
// CHECK-DAG: %[[RANGE:.*]] = "graph.arange"() {bounds = #graph.shape<[0, 5, 1]>, dtype = i64}
// CHECK: "graph.add"(%[[RANGE]], %{{.*}})
// CHECK-COUNT-20: "graph.multiply"(%{{.*}}, %{{.*}}) : (tensor<5xi64>, tensor<i64>) -> tensor<5xi64>
// CHECK: %[[WORDS:.*]] = "graph.stack"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {axis = 1 : i64, {{.*}} -> tensor<5x4xi64>
// CHECK: %[[MASK:.*]] = "graph.greater_equal"
// CHECK: %[[Y:.*]] = "graph.where"(%[[MASK]]
// CHECK: return %[[Y]], %[[MASK]], %{{.*}} : tensor<17xf32>, tensor<17xi1>, tensor<2xi64>

// DECOMPOSE: @classes(s: i64[2], x: f32[n, c]) = multinomial(s, x, 4)
// CHECK-LABEL: func.func @classes
// CHECK: %[[SUMS:.*]] = "graph.cumsum"
// CHECK: "graph.searchsorted"(%[[SUMS]], %{{.*}}) {right = true} : {{.*}} -> tensor<?x4xi64, #graph.shape<["n", 4]>>
