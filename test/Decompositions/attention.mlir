// RUN: %PYTHON %ROOT/test/lib/decompose.py %s | relax-opt --relax-verify | FileCheck %s

// From the first key on, the operator's own mask is enough.
// DECOMPOSE: @causal(q: f32[b, 4, n, 8], k: f32[b, 2, n, 8]) = attention(q, k, k, causal=True)[0]
// CHECK-LABEL: func.func @causal
// CHECK-NOT: graph.where
// CHECK: "graph.nn_batched_attention"(%{{.*}}, %{{.*}}, %{{.*}}) {causal = true,
// CHECK-NOT: graph.where
// CHECK: return

// A mask may have fewer keys; queries that see none give 0, not NaN.
// DECOMPOSE: @masked(q: f32[b, 4, n, 8], k: f32[b, 2, m, 8], s: i1[n, p]) = attention(q, k, k, mask=s)[0]
// CHECK-LABEL: func.func @masked
// CHECK: "graph.require"() {any_of = ["p <= m"], by = "@attention"}
// CHECK: %[[BIAS:.*]] = "graph.expand_dims"
// CHECK: "graph.max"(%[[BIAS]]) {axes = array<i64: 3>, keepdims = true}
// CHECK: %[[SAFE:.*]] = "graph.where"(%{{.*}}, %{{.*}}, %[[BIAS]])
// CHECK: %[[Y:.*]] = "graph.nn_batched_attention"(%{{.*}}, %{{.*}}, %{{.*}}, %[[SAFE]]) {causal = false,
// CHECK: "graph.where"(%{{.*}}, %{{.*}}, %[[Y]])

// Capped scores are written out; heads that share keys are rows of one product.
// DECOMPOSE: @capped(q: f32[b, 4, n, 8], k: f32[b, 2, m, 8]) = attention(q, k, k, softcap=5.0)[0]
// CHECK-LABEL: func.func @capped
// CHECK: "graph.matmul"(%{{.*}}, %{{.*}}) : ({{.*}}) -> tensor<?x2x?x?xf32, #graph.shape<["b", 2, "2*n", "m"]>>
// CHECK: "graph.tanh"
// CHECK: "graph.nn_softmax"
