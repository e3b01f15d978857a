// RUN: %PYTHON %ROOT/test/lib/decompose.py %s | relax-opt --relax-verify | FileCheck %s

// Rows that are not solved yet are 0, and so is what is not below the diagonal.
// DECOMPOSE: @lower(a: f32[n, n], b: f32[n, k]) = triangular_solve(a, b)
// CHECK-LABEL: func.func @lower
// CHECK: %[[LOW:.*]] = "graph.tril"(%{{.*}}) {k = -1 : i64}
// CHECK: scf.for {{.*}} iter_args(%[[X:.*]] = %{{.*}})
// CHECK: %[[ROW:.*]] = "graph.take"(%[[LOW]], %{{.*}}) {axis = 1 : i64}
// CHECK: "graph.matmul"(%{{.*}}, %[[X]])
// CHECK: "graph.divide"
// CHECK: "graph.dynamic_update_slice"(%[[X]]

// A transposed lower triangle is an upper one: from the last row on.
// DECOMPOSE: @upper(a: f32[n, n], b: f32[n, k]) = triangular_solve(a, b, transpose=True)
// CHECK-LABEL: func.func @upper
// CHECK: "graph.permute_dims"
// CHECK: "graph.triu"(%{{.*}}) {k = 1 : i64}
// CHECK: scf.for
// CHECK: arith.subi
// CHECK: arith.subi

// Rows are exchanged by indices, which differ among the matrices of a batch.
// DECOMPOSE: @determinants(a: f32[b, n, n]) = det(a)
// CHECK-LABEL: func.func @determinants
// CHECK: scf.for
// CHECK: %[[BEST:.*]] = "graph.argmax"
// CHECK: "graph.gather_nd"(%{{.*}}, %{{.*}}) {batch_dims = 1 : i64}
// CHECK: "graph.prod"
// CHECK: return %{{.*}} : tensor<?xf32, #graph.shape<["b"]>>
