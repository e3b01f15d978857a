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

// Rows are exchanged in the whole matrix, factors below the diagonal among them.
// DECOMPOSE: @factors(a: f32[b, m, n]) = lu_factor(a)
// CHECK-LABEL: func.func @factors
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[PIVOTS:.*]] = %{{.*}})
// CHECK: %[[ROW:.*]] = "graph.argmax"
// CHECK: "graph.gather_nd"(%{{.*}}, %{{.*}}) {batch_dims = 1 : i64}
// CHECK: "graph.dynamic_update_slice"(%[[PIVOTS]]
// CHECK: return %{{.*}}, %{{.*}} : {{.*}}, tensor<?x?xi64, #graph.shape<["b", "min(m, n)"]>>

// A reflector for each column, and their product by a loop from the last one to the first.
// DECOMPOSE: @orthonormal(a: f32[b, m, n]) = qr(a)
// CHECK-LABEL: func.func @orthonormal
// CHECK: scf.for
// CHECK: "graph.hypot"
// CHECK: "graph.matmul"
// CHECK: scf.for
// CHECK: arith.subi
// CHECK: "graph.matmul"
// CHECK: "graph.triu"

// Sweeps until nothing is rotated, and 40 at most; a round rotates rows, then columns.
// DECOMPOSE: @eigenvalues(a: f32[b, n, n]) = eigvalsh(a)
// CHECK-LABEL: func.func @eigenvalues
// CHECK: scf.while
// CHECK: %[[MOST:.*]] = {{.*}}constant{{.*}}dense<40> : tensor<i64>
// CHECK: "graph.less"(%{{.*}}, %[[MOST]])
// CHECK: scf.condition
// CHECK: scf.for
// CHECK: %[[PARTNER:.*]] = "graph.remainder"
// CHECK: "graph.take"(%{{.*}}, %[[PARTNER]]) {axis = 1 : i64}
// CHECK: "graph.take"(%{{.*}}, %[[PARTNER]]) {axis = 2 : i64}
// CHECK: "graph.any"
// CHECK: "graph.sort"

// Rotated columns become orthonormal by reflectors, whose signs are taken back.
// DECOMPOSE: @singular(a: f32[b, m, n]) = svd(a)
// CHECK-LABEL: func.func @singular
// CHECK: scf.while
// CHECK: "graph.sort"(%{{.*}}) {axis = 1 : i64, descending = true}
// CHECK: "graph.gather_nd"
// CHECK: "graph.negative"
// CHECK: return

// Squared as often as the matrix that takes most, each as often as it takes.
// DECOMPOSE: @exponential(a: f32[b, n, n]) = matrix_exp(a)
// CHECK-LABEL: func.func @exponential
// CHECK: "graph.log2"
// CHECK-COUNT-7: "graph.matmul"
// CHECK: scf.while
// CHECK: "graph.matmul"
// CHECK: "graph.where"
