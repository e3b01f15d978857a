// RUN: %PYTHON %ROOT/test/lib/decompose.py %s | relax-opt --relax-verify | FileCheck %s

// DECOMPOSE: @columns(x: f32[n, 3, h, 8]) = unfold(x, [3, 2], strides=[2, 1], padding=[1, 0, 0, 0])
// CHECK-LABEL: func.func @columns
// CHECK: "graph.require"() {any_of = ["3 <= h + 1"], by = "@unfold"}
// CHECK: "graph.pad"(%arg0, %{{.*}}) {high = #graph.shape<[0, 0, 0, 0]>{{.*}}low = #graph.shape<[0, 0, 1, 0]>
// CHECK-COUNT-2: "graph.take"
// CHECK: return %{{.*}} : tensor<?x18x?xf32, #graph.shape<["n", 18, {{.*}}]>>

// Each element of a window is spread where the windows have it.
// DECOMPOSE: @summed(x: f32[n, 6, 4]) = fold(x, [9], [3], strides=[2])
// CHECK-LABEL: func.func @summed
// CHECK: "graph.pad"(%{{.*}}, %{{.*}}) {high = #graph.shape<[0, 0, 2]>, interior = array<i64: 0, 0, 1>, low = #graph.shape<[0, 0, 0]>
// CHECK: "graph.pad"(%{{.*}}, %{{.*}}) {high = #graph.shape<[0, 0, 1]>, {{.*}}low = #graph.shape<[0, 0, 1]>
// CHECK: "graph.pad"(%{{.*}}, %{{.*}}) {high = #graph.shape<[0, 0, 0]>, {{.*}}low = #graph.shape<[0, 0, 2]>

// DECOMPOSE: @best(x: f32[n, 2, 8]) = max_pool_with_indices(x, [2], strides=[2])
// CHECK-LABEL: func.func @best
// CHECK: "graph.nn_max_pool2d"
// CHECK: %[[TAP:.*]] = "graph.argmax"(%{{.*}}) {axis = 2 : i64, keepdims = false}
// CHECK: "graph.where"(%{{.*}}, %{{.*}}, %[[TAP]])
// CHECK: return %{{.*}}, %{{.*}} : tensor<?x2x4xf32, #graph.shape<["n", 2, 4]>>, tensor<?x2x4xi64, #graph.shape<["n", 2, 4]>>
