// RUN: relax-compile %s --emit=mlir-lower-calls | FileCheck %s

// One attention layer over a cache that is updated in place: n new tokens behind m cached ones.

!q     = tensor<?x6x8xf32, #graph.shape<["n", 6, 8]>>
!kv    = tensor<?x2x8xf32, #graph.shape<["n", 2, 8]>>
!cache = tensor<2x?x8xf32, #graph.shape<[2, "c", 8]>>

func.func @main(%q: !q {graph.name = "query"}, %k: !kv {graph.name = "key"}, %v: !kv {graph.name = "value"},
                %past: !graph.shape_value<["m"]> {graph.name = "past"},
                %ks: !cache {graph.name = "key_cache", graph.inout = 1 : i64},
                %vs: !cache {graph.name = "value_cache", graph.inout = 2 : i64})
    -> (!q, !cache, !cache) attributes {graph.facts = ["m + n <= c"]} {
  %0:2 = "graph.nn_kv_append"(%ks, %vs, %k, %v) {position = #graph.shape<["m"]>}
      : (!cache, !cache, !kv, !kv) -> (!cache, !cache)
  %1 = "graph.nn_attention"(%q, %0#0, %0#1) {position = #graph.shape<["m"]>, scale = 0.35 : f64, causal = true}
      : (!q, !cache, !cache) -> !q
  return %1, %0#0, %0#1 : !q, !cache, !cache
}

// The caches are destinations of the kernel that appends to them, so nothing copies them.
// CHECK-LABEL: func.func @main
// CHECK-SAME:    %[[KS:[a-z0-9]*]]: tensor<2x?x8xf32{{.*}}graph.name = "key_cache"
// CHECK-SAME:    %[[VS:[a-z0-9]*]]: tensor<2x?x8xf32{{.*}}graph.name = "value_cache"
// CHECK:         "graph.call_dps"({{.*}}, %[[KS]], %[[VS]]) {callee = @kv_append
// CHECK:         %[[OUT:.*]] = "graph.alloc_tensor"()
// CHECK:         "graph.call_dps"({{.*}}, %[[KS]], %[[VS]], %[[OUT]]) {callee = @attention
// CHECK:         return %[[OUT]], %[[KS]], %[[VS]]
