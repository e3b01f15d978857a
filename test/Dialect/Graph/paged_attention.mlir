// RUN: relax-opt %s --relax-verify | relax-opt --relax-verify | FileCheck %s

!pages = tensor<?x2x16x32xf32, #graph.shape<["p", 2, 16, 32]>>
!bytes = tensor<?x2x16x32xi8, #graph.shape<["p", 2, 16, 32]>>
!scales = tensor<?x2x16x1xf32, #graph.shape<["p", 2, 16, 1]>>
!query = tensor<?x4x32xf32, #graph.shape<["n", 4, 32]>>
!new = tensor<?x2x32xf32, #graph.shape<["n", 2, 32]>>
!tables = tensor<?x?xi32, #graph.shape<["b", "s"]>>
!ids = tensor<?xi32, #graph.shape<["n"]>>

// CHECK-LABEL: func.func @symbolic
func.func @symbolic(%q: !query, %k: !pages, %x: !new, %t: !tables, %s: !ids, %p: !ids, %i: !bytes, %f: !scales) {
  // CHECK: "graph.nn_paged_kv_append"({{.*}}) : ({{.*}}) -> (tensor<?x2x16x32xf32, #graph.shape<["p", 2, 16, 32]>>, tensor<?x2x16x32xf32, #graph.shape<["p", 2, 16, 32]>>)
  %0:2 = "graph.nn_paged_kv_append"(%k, %k, %x, %x, %t, %s, %p) : (!pages, !pages, !new, !new, !tables, !ids, !ids) -> (!pages, !pages)
  // CHECK: "graph.nn_paged_attention"({{.*}}) {cap = 0.000000e+00 : f64, operandSegmentSizes = {{.*}}, scale = 2.500000e-01 : f64, window = 0 : i64} : ({{.*}}) -> tensor<?x4x32xf32, #graph.shape<["n", 4, 32]>>
  %1 = "graph.nn_paged_attention"(%q, %k, %k, %t, %s, %p) {scale = 0.25 : f64, window = 0 : i64, cap = 0.0 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0>} : (!query, !pages, !pages, !tables, !ids, !ids) -> !query
  // CHECK: "graph.nn_paged_attention"({{.*}}) {cap = 3.000000e+01 : f64, {{.*}} window = 7 : i64} : ({{.*}}) -> tensor<?x4x32xf32, #graph.shape<["n", 4, 32]>>
  %2 = "graph.nn_paged_attention"(%q, %i, %i, %t, %s, %p, %f, %f) {scale = 0.25 : f64, window = 7 : i64, cap = 30.0 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1>} : (!query, !bytes, !bytes, !tables, !ids, !ids, !scales, !scales) -> !query
  return
}
