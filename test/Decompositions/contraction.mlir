// RUN: %PYTHON %ROOT/test/lib/decompose.py %s | relax-opt --relax-verify | FileCheck %s

// DECOMPOSE: @rows(x: f32[n, 3, k], w: f32[k, 5]) = einsum("abk,kc->abc", x, w)
// CHECK-LABEL: func.func @rows
// CHECK-NEXT: %[[Y:.*]] = "graph.matmul"(%arg0, %arg1)
// CHECK-NEXT: return %[[Y]] : tensor<?x3x5xf32, #graph.shape<["n", 3, 5]>>

// DECOMPOSE: @batches(x: f32[n, 3, k], y: f32[n, 5, k]) = einsum("abk,ack->abc", x, y)
// CHECK-LABEL: func.func @batches
// CHECK-NEXT: %[[T:.*]] = "graph.permute_dims"(%arg1) {axes = array<i64: 0, 2, 1>}
// CHECK-NEXT: "graph.matmul"(%arg0, %[[T]])

// DECOMPOSE: @merged(x: f32[2, 3, n], y: f32[4, 3, n]) = dot_general(x, y, contract=([1, 2], [1, 2]))
// CHECK-LABEL: func.func @merged
// CHECK-NEXT: %[[X:.*]] = "graph.reshape"(%arg0) {shape = #graph.shape<[2, "3*n"]>}
// CHECK-NEXT: %[[Y:.*]] = "graph.reshape"(%arg1) {shape = #graph.shape<[4, "3*n"]>}
// CHECK-NEXT: %[[T:.*]] = "graph.permute_dims"(%[[Y]]) {axes = array<i64: 1, 0>}
// CHECK-NEXT: "graph.matmul"(%[[X]], %[[T]])

// DECOMPOSE: @products(x: f32[n], y: f32[m]) = outer(x, y)
// CHECK-LABEL: func.func @products
// CHECK: "graph.multiply"(%{{.*}}, %{{.*}}) : (tensor<?x1xf32, #graph.shape<["n", 1]>>, tensor<1x?xf32, #graph.shape<[1, "m"]>>)

// DECOMPOSE: @diagonal(x: f32[n, n]) = einsum("ii->i", x)
// CHECK-LABEL: func.func @diagonal
// CHECK: %[[EYE:.*]] = "graph.eye"() {{.*}}shape = #graph.shape<["n", "n"]>
// CHECK: %[[ONLY:.*]] = "graph.where"(%[[EYE]], %arg0,
// CHECK: "graph.sum"(%[[ONLY]]) {axes = array<i64: 0>, keepdims = false}

// DECOMPOSE: @collapsed(x: f32[2, n, m]) = collapse_sum_to(x, ["n", 1])
// CHECK-LABEL: func.func @collapsed
// CHECK: "graph.sum"(%arg0) {axes = array<i64: 0>, keepdims = false}
// CHECK: "graph.sum"(%{{.*}}) {axes = array<i64: 1>, keepdims = true}

// DECOMPOSE: @row(x: f32[k], y: f32[4, k, n]) = matmul(x, y)
// CHECK-LABEL: func.func @row
// CHECK-NEXT: %[[ROW:.*]] = "graph.expand_dims"(%arg0) {axes = array<i64: 0>}
// CHECK-NEXT: %[[P:.*]] = "graph.matmul"(%[[ROW]], %arg1)
// CHECK-NEXT: "graph.squeeze"(%[[P]]) {axes = array<i64: -2>}{{.*}} -> tensor<4x?xf32, #graph.shape<[4, "n"]>>

// DECOMPOSE: @rest(x: f32[a, b, c]) = reshape(x, ["c", -1, 1])
// CHECK-LABEL: func.func @rest
// CHECK-NEXT: "graph.reshape"(%arg0) {shape = #graph.shape<["c", "a*b", 1]>}
