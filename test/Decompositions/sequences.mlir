// RUN: %PYTHON %ROOT/test/lib/decompose.py %s | relax-opt --relax-verify | FileCheck %s

// DECOMPOSE: @reversed(x: f32[t, n, 3], s: i32[n]) = reverse_sequence(x, s)
// CHECK-LABEL: func.func @reversed
// CHECK: "graph.where"
// CHECK: "graph.gather_nd"(%{{.*}}, %{{.*}}) {batch_dims = 1 : i64}

// DECOMPOSE: @past(x: f32[b, 3, t], w: f32[3, 1, 4], p: f32[b, 3, 3]) = causal_conv(x, w, None, p)
// CHECK-LABEL: func.func @past
// CHECK: %[[ALL:.*]] = "graph.concat"(%arg2, %arg0)
// CHECK: "graph.nn_conv2d"(%{{.*}}, %{{.*}}) {{.*}}groups = 3
// CHECK: "graph.strided_slice"(%[[ALL]]) {axes = array<i64: 2>, begin = #graph.shape<["t"]>, end = #graph.shape<["t + 3"]>

// The delta rule takes from a value what the state has for its key.
// DECOMPOSE: @delta(q: f32[b, t, 8], g: f32[b, t, 2]) = linear_attention(q, q, q, heads=2, kv_heads=2, beta=g)
// CHECK-LABEL: func.func @delta
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[S:.*]] = %{{.*}})
// CHECK: %[[KNOWN:.*]] = "graph.matmul"(%{{.*}}, %[[S]])
// CHECK: "graph.subtract"(%{{.*}}, %[[KNOWN]])
// CHECK: "graph.dynamic_update_slice"
