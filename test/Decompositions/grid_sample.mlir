// RUN: %PYTHON %ROOT/test/lib/decompose.py %s | relax-opt --relax-verify | FileCheck %s

// Four elements for each one of the result; those outside of the input count for nothing.
// DECOMPOSE: @sampled(x: f32[n, 3, h, w], g: f32[n, a, b, 2]) = grid_sample(x, g)
// CHECK-LABEL: func.func @sampled
// CHECK: %[[LAST:.*]] = "graph.permute_dims"(%arg0) {axes = array<i64: 0, 2, 3, 1>}
// CHECK-COUNT-4: "graph.gather_nd"(%[[LAST]], %{{.*}}) {batch_dims = 1 : i64}
// CHECK: return %{{.*}} : tensor<?x3x?x?xf32, #graph.shape<["n", 3, "a", "b"]>>

// DECOMPOSE: @grid(t: f32[n, 2, 3]) = affine_grid(t, [4, 5])
// CHECK-LABEL: func.func @grid
// CHECK: "graph.matmul"
// CHECK: return %{{.*}} : tensor<?x4x5x2xf32, #graph.shape<["n", 4, 5, 2]>>
