// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-schedule{target=x86-64-v3}' | FileCheck %s
// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops' | FileCheck %s --check-prefix=PROGRAM

!pages = tensor<?x2x16x32xf32, #graph.shape<["p", 2, 16, 32]>>
!query = tensor<?x4x32xf32, #graph.shape<["n", 4, 32]>>
!new = tensor<?x2x32xf32, #graph.shape<["n", 2, 32]>>
!tables = tensor<?x?xi32, #graph.shape<["b", "s"]>>
!ids = tensor<?xi32, #graph.shape<["n"]>>
!unsigned = tensor<?xui32, #graph.shape<["n"]>>

func.func @main(%q: !query, %k: !pages, %t: !tables, %s: !ids, %p: !ids) -> !query {
  %0 = "graph.nn_paged_attention"(%q, %k, %k, %t, %s, %p) {scale = 0.25 : f64, window = 5 : i64, cap = 0.0 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0>} : (!query, !pages, !pages, !tables, !ids, !ids) -> !query
  return %0 : !query
}

func.func @negative_unsigned(%q: !query, %k: !pages, %t: !tables, %s: !ids, %p: !unsigned) -> !query {
  %0 = "graph.nn_paged_attention"(%q, %k, %k, %t, %s, %p) {scale = 0.25 : f64, window = 5 : i64, cap = 0.0 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0>} : (!query, !pages, !pages, !tables, !ids, !unsigned) -> !query
  return %0 : !query
}

// In place.
// PROGRAM-LABEL: func.func @append
// PROGRAM:         "graph.call_tir_inplace"({{.*}}) {callee = @paged_kv_append, inplace_indices = array<i64: 0, 1>,
func.func @append(%k: !pages {graph.inout = 0 : i64}, %v: !pages {graph.inout = 1 : i64}, %x: !new, %t: !tables, %s: !ids, %p: !ids) -> (!pages, !pages) {
  %0:2 = "graph.nn_paged_kv_append"(%k, %v, %x, %x, %t, %s, %p) : (!pages, !pages, !new, !new, !tables, !ids, !ids) -> (!pages, !pages)
  return %0#0, %0#1 : !pages, !pages
}

// Pages are read where they are, by clamped indices, and nothing is stored of keys that are not seen.
// CHECK-LABEL: func.func private @paged_attention(
// CHECK-SAME: {{.*}}tir.schedule = "paged_attention"
// CHECK:         scf.parallel
// CHECK:           %[[PAGE:.*]] = memref.load %{{.*}} : memref<?xi32>
// The key 16 rows later is in the next page.
// CHECK:           arith.addi %{{.*}}, %c16
// CHECK:           memref.load %{{.*}} : memref<?xi32>
// CHECK:           memref.prefetch %{{.*}}, read, locality<2>, data : memref<?xf32>
// CHECK-NOT:     memref.copy

// The positions of an unsigned type do not fit the rule.
// CHECK-LABEL: func.func private @paged_attention_{{[0-9]+}}(
// CHECK-NOT:   tir.schedule = "paged_attention"
// CHECK-LABEL: func.func private @paged_kv_append(
// CHECK-NOT:     memref.alloc

// PROGRAM-LABEL: func.func private @paged_attention(
// PROGRAM-SAME: tir.paged_attention = {cap = 0.000000e+00 : f64, scale = 2.500000e-01 : f64, window = 5 : i64}
// PROGRAM:         linalg.generic
// PROGRAM:           tensor.extract %{{.*}} : tensor<?x?xi32>
// PROGRAM:           tensor.extract %{{.*}} : tensor<?x2x16x32xf32>
