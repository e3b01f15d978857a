// RUN: %PYTHON %ROOT/test/lib/decompose.py %s | relax-opt --relax-verify | FileCheck %s

// Windows that no padding cuts off have one count.
// DECOMPOSE: @whole(x: f32[n, 3, 8, 9]) = avg_pool(x, [2, 3], strides=[2, 3])
// CHECK-LABEL: func.func @whole
// CHECK-NEXT: %[[SUM:.*]] = "graph.nn_sum_pool2d"(%arg0)
// CHECK-NEXT: %[[COUNT:.*]] = arith.constant dense<6.000000e+00> : tensor<f32>
// CHECK-NEXT: "graph.divide"(%[[SUM]], %[[COUNT]])

// DECOMPOSE: @line(x: f32[n, 3, w]) = max_pool(x, [3], strides=[2], padding=[1, 0], ceil_mode=True)
// CHECK-LABEL: func.func @line
// CHECK: "graph.nn_max_pool2d"(%{{.*}}) {dilation = array<i64: 1, 1>, padding = array<i64: 0, 1, 0, 1>, strides = array<i64: 1, 2>, window = array<i64: 1, 3>}
// CHECK: return %{{.*}} : tensor<?x3x?xf32, #graph.shape<["n", 3, "(w + 1) floordiv 2"]>>

// The last window would begin in the padding.
// DECOMPOSE: @limited(x: f32[1, 1, w]) = max_pool(x, [1], strides=[3], padding=[0, 1], ceil_mode=True)
// CHECK-LABEL: func.func @limited
// CHECK: "graph.strided_slice"

// DECOMPOSE: @volume(x: f32[1, 2, 5, 6, 7]) = max_pool(x, [2, 3, 2])
// CHECK-LABEL: func.func @volume
// CHECK: "graph.nn_max_pool2d"(%{{.*}}) {{.*}}window = array<i64: 3, 2>} : (tensor<1x10x6x7xf32>)
// CHECK: "graph.nn_max_pool2d"(%{{.*}}) {{.*}}window = array<i64: 2, 1>} : (tensor<1x2x5x24xf32>)

// DECOMPOSE: @even(x: f32[1, 2, 3*n]) = adaptive_avg_pool(x, [3])
// CHECK-LABEL: func.func @even
// CHECK-NEXT: %[[SPLIT:.*]] = "graph.reshape"(%arg0) {shape = #graph.shape<[1, 2, 3, "n"]>}
// CHECK-NEXT: "graph.mean"(%[[SPLIT]]) {axes = array<i64: 3>, keepdims = false}

// DECOMPOSE: @uneven(x: f32[1, 2, 7]) = adaptive_max_pool(x, [3])
// CHECK-LABEL: func.func @uneven
// CHECK: %[[PARTS:.*]] = "graph.take"(%arg0, %{{.*}}) {axis = 2 : i64} : (tensor<1x2x7xf32>, tensor<3x4xi64>)
// CHECK: %[[INSIDE:.*]] = "graph.where"(%{{.*}}, %[[PARTS]],
// CHECK: "graph.max"(%[[INSIDE]]) {axes = array<i64: 3>, keepdims = false}

// DECOMPOSE: @any(x: f32[1, 2, w], like: f32[m]) = adaptive_avg_pool(x, ["m"])
// CHECK-LABEL: func.func @any
// CHECK: "graph.require"() {any_of = ["1 <= m"], by = "adaptive_pool"}
// CHECK: "graph.take"(%arg0, %{{.*}}) {axis = 2 : i64} : ({{.*}}) -> tensor<1x2x?x?xf32, #graph.shape<[1, 2, "m", "(w - 1) floordiv m + 2"]>>
