// RUN: relax-opt %s --split-input-file --relax-fuse-attention --relax-canonicalize-bindings --pretty | FileCheck %s
// RUN: relax-opt %s --split-input-file --relax-fuse-attention --relax-fuse-attention --relax-verify > %t

!q = tensor<?x?x4x8xf32, #graph.shape<["b", "n", 4, 8]>>
!k = tensor<?x?x4x8xf32, #graph.shape<["b", "m", 4, 8]>>
!heads = tensor<?x4x?x8xf32, #graph.shape<["b", 4, "n", 8]>>
!turned = tensor<?x4x8x?xf32, #graph.shape<["b", 4, 8, "m"]>>
!values = tensor<?x4x?x8xf32, #graph.shape<["b", 4, "m", 8]>>
!scores = tensor<?x4x?x?xf32, #graph.shape<["b", 4, "n", "m"]>>
!mask = tensor<?x1x1x?xf32, #graph.shape<["b", 1, 1, "m"]>>

// An encoder's attention: all permutations meet their inverses.
// CHECK-LABEL: func @encoder(
// CHECK:         %[[Y:.*]] = graph.nn_batched_attention(%arg0, %arg1, %arg2, %arg3) {causal=false, scale=5.000000e-01 : f64} : tensor<b x n x 4 x 8 x f32>
// CHECK-NEXT:    return %[[Y]]
func.func @encoder(%q: !q, %k: !k, %v: !k, %mask: !mask) -> !q {
  %scale = arith.constant dense<5.0e-1> : tensor<f32>
  %0 = "graph.permute_dims"(%q) {axes = array<i64: 0, 2, 1, 3>} : (!q) -> !heads
  %1 = "graph.permute_dims"(%k) {axes = array<i64: 0, 2, 3, 1>} : (!k) -> !turned
  %2 = "graph.permute_dims"(%v) {axes = array<i64: 0, 2, 1, 3>} : (!k) -> !values
  %3 = "graph.matmul"(%0, %1) : (!heads, !turned) -> !scores
  %4 = "graph.multiply"(%3, %scale) : (!scores, tensor<f32>) -> !scores
  %5 = "graph.add"(%mask, %4) : (!mask, !scores) -> !scores
  %6 = "graph.nn_softmax"(%5) {axis = -1 : i64} : (!scores) -> !scores
  %7 = "graph.matmul"(%6, %2) : (!scores, !values) -> !heads
  %8 = "graph.permute_dims"(%7) {axes = array<i64: 0, 2, 1, 3>} : (!heads) -> !q
  return %8 : !q
}

// A condition becomes a mask, a division a scale.
// CHECK-LABEL: func @condition(
// CHECK:         %[[MASK:.*]] = graph.where(%arg3, %{{.*}}, %{{.*}}) : tensor<n x m x f32>
// CHECK-NEXT:    %[[WIDE:.*]] = graph.reshape(%[[MASK]]) {{{.*}}} : tensor<1 x 1 x n x m x f32>
// CHECK:         graph.nn_batched_attention(%{{.*}}, %{{.*}}, %{{.*}}, %[[WIDE]]) {causal=false, scale=2.500000e-01 : f64}
// CHECK-NOT:     graph.matmul
func.func @condition(%q: !heads, %k: !turned, %v: !values, %seen: tensor<?x?xi1, #graph.shape<["n", "m"]>>) -> !heads {
  %root = arith.constant dense<4.0> : tensor<f32>
  %never = arith.constant dense<0xFF800000> : tensor<f32>
  %0 = "graph.matmul"(%q, %k) : (!heads, !turned) -> !scores
  %1 = "graph.divide"(%0, %root) : (!scores, tensor<f32>) -> !scores
  %2 = "graph.where"(%seen, %1, %never) : (tensor<?x?xi1, #graph.shape<["n", "m"]>>, !scores, tensor<f32>) -> !scores
  %3 = "graph.nn_softmax"(%2) {axis = 3 : i64} : (!scores) -> !scores
  %4 = "graph.matmul"(%3, %v) : (!scores, !values) -> !heads
  return %4 : !heads
}

// -----

!q = tensor<?x2x3x?x8xf32, #graph.shape<["b", 2, 3, "n", 8]>>
!k = tensor<?x2x1x8x?xf32, #graph.shape<["b", 2, 1, 8, "n"]>>
!v = tensor<?x2x1x?x8xf32, #graph.shape<["b", 2, 1, "n", 8]>>
!scores = tensor<?x2x3x?x?xf32, #graph.shape<["b", 2, 3, "n", "n"]>>
!mask = tensor<?x?xf32, #graph.shape<["n", "n"]>>

// Groups of heads share keys; -inf above the diagonal is no operand.
// CHECK-LABEL: func @grouped_causal(
// CHECK-NOT:     graph.triu
// CHECK:         graph.nn_batched_attention(%{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}}) {causal=true, scale=1.000000e+00 : f64} : tensor<b x n x 6 x 8 x f32>
// CHECK-NOT:     graph.matmul
func.func @grouped_causal(%q: !q, %k: !k, %v: !v) -> !q {
  %never = arith.constant dense<0xFF800000> : tensor<f32>
  %0 = "graph.full"(%never) {shape = #graph.shape<["n", "n"]>} : (tensor<f32>) -> !mask
  %1 = "graph.triu"(%0) {k = 1 : i64} : (!mask) -> !mask
  %2 = "graph.matmul"(%q, %k) : (!q, !k) -> !scores
  %3 = "graph.add"(%2, %1) : (!scores, !mask) -> !scores
  %4 = "graph.nn_softmax"(%3) {axis = -1 : i64} : (!scores) -> !scores
  %5 = "graph.matmul"(%4, %v) : (!scores, !v) -> !q
  return %5 : !q
}

// -----

!q = tensor<?x8xbf16, #graph.shape<["n", 8]>>
!k = tensor<8x?xbf16, #graph.shape<[8, "m"]>>
!v = tensor<?x12xbf16, #graph.shape<["m", 12]>>
!scores = tensor<?x?xbf16, #graph.shape<["n", "m"]>>
!y = tensor<?x12xbf16, #graph.shape<["n", 12]>>

// No batch and no heads.
// CHECK-LABEL: func @matrices(
// CHECK:         graph.nn_batched_attention({{.*}}) {{.*}} : tensor<1 x n x 1 x 12 x bf16>
// CHECK:         graph.reshape({{.*}}) {{.*}} : tensor<n x 12 x bf16>
func.func @matrices(%q: !q, %k: !k, %v: !v) -> !y {
  %0 = "graph.matmul"(%q, %k) : (!q, !k) -> !scores
  %1 = "graph.nn_softmax"(%0) {axis = -1 : i64} : (!scores) -> !scores
  %2 = "graph.matmul"(%1, %v) : (!scores, !v) -> !y
  return %2 : !y
}

// Scores that are used elsewhere have to be written anyway.
// CHECK-LABEL: func @negative_used(
// CHECK-NOT:     graph.nn_batched_attention
func.func @negative_used(%q: !q, %k: !k, %v: !v) -> (!y, !scores) {
  %0 = "graph.matmul"(%q, %k) : (!q, !k) -> !scores
  %1 = "graph.nn_softmax"(%0) {axis = -1 : i64} : (!scores) -> !scores
  %2 = "graph.matmul"(%1, %v) : (!scores, !v) -> !y
  return %2, %1 : !y, !scores
}

// A softmax over the queries, and a mask in front of the scale.
// CHECK-LABEL: func @negative_axis(
// CHECK-NOT:     graph.nn_batched_attention
func.func @negative_axis(%q: !q, %k: !k, %v: !v) -> !y {
  %0 = "graph.matmul"(%q, %k) : (!q, !k) -> !scores
  %1 = "graph.nn_softmax"(%0) {axis = 0 : i64} : (!scores) -> !scores
  %2 = "graph.matmul"(%1, %v) : (!scores, !v) -> !y
  return %2 : !y
}

// CHECK-LABEL: func @negative_order(
// CHECK-NOT:     graph.nn_batched_attention
func.func @negative_order(%q: !q, %k: !k, %v: !v, %mask: !scores) -> !y {
  %scale = arith.constant dense<5.0e-1> : tensor<bf16>
  %0 = "graph.matmul"(%q, %k) : (!q, !k) -> !scores
  %1 = "graph.add"(%0, %mask) : (!scores, !scores) -> !scores
  %2 = "graph.multiply"(%1, %scale) : (!scores, tensor<bf16>) -> !scores
  %3 = "graph.nn_softmax"(%2) {axis = 1 : i64} : (!scores) -> !scores
  %4 = "graph.matmul"(%3, %v) : (!scores, !v) -> !y
  return %4 : !y
}

// A mask with one number for all keys, and a scale that differs.
// CHECK-LABEL: func @negative_mask(
// CHECK-NOT:     graph.nn_batched_attention
func.func @negative_mask(%q: !q, %k: !k, %v: !v, %mask: tensor<?x1xbf16, #graph.shape<["n", 1]>>) -> !y {
  %0 = "graph.matmul"(%q, %k) : (!q, !k) -> !scores
  %1 = "graph.add"(%0, %mask) : (!scores, tensor<?x1xbf16, #graph.shape<["n", 1]>>) -> !scores
  %2 = "graph.nn_softmax"(%1) {axis = 1 : i64} : (!scores) -> !scores
  %3 = "graph.matmul"(%2, %v) : (!scores, !v) -> !y
  return %3 : !y
}

// CHECK-LABEL: func @negative_scale(
// CHECK-NOT:     graph.nn_batched_attention
func.func @negative_scale(%q: !q, %k: !k, %v: !v, %scale: !scores) -> !y {
  %0 = "graph.matmul"(%q, %k) : (!q, !k) -> !scores
  %1 = "graph.multiply"(%0, %scale) : (!scores, !scores) -> !scores
  %2 = "graph.nn_softmax"(%1) {axis = 1 : i64} : (!scores) -> !scores
  %3 = "graph.matmul"(%2, %v) : (!scores, !v) -> !y
  return %3 : !y
}

// -----

!q = tensor<?x3x?x8xf32, #graph.shape<["b", 3, "n", 8]>>
!k = tensor<?x3x8x?xf32, #graph.shape<["b", 3, 8, "m"]>>
!v = tensor<1x3x?x8xf32, #graph.shape<[1, 3, "m", 8]>>
!scores = tensor<?x3x?x?xf32, #graph.shape<["b", 3, "n", "m"]>>

// Values that all sequences share.
// CHECK-LABEL: func @negative_shared(
// CHECK-NOT:     graph.nn_batched_attention
func.func @negative_shared(%q: !q, %k: !k, %v: !v) -> !q {
  %0 = "graph.matmul"(%q, %k) : (!q, !k) -> !scores
  %1 = "graph.nn_softmax"(%0) {axis = -1 : i64} : (!scores) -> !scores
  %2 = "graph.matmul"(%1, %v) : (!scores, !v) -> !q
  return %2 : !q
}

// -----

!q = tensor<?x?x?x8xf32, #graph.shape<["b", "h", "n", 8]>>
!k = tensor<?x?x8x?xf32, #graph.shape<["b", "h", 8, "n"]>>
!scores = tensor<?x?x?x?xf32, #graph.shape<["b", "h", "n", "n"]>>

// Heads that are no constants.
// CHECK-LABEL: func @negative_heads(
// CHECK-NOT:     graph.nn_batched_attention
func.func @negative_heads(%q: !q, %k: !k) -> !q {
  %0 = "graph.matmul"(%q, %k) : (!q, !k) -> !scores
  %1 = "graph.nn_softmax"(%0) {axis = -1 : i64} : (!scores) -> !scores
  %2 = "graph.matmul"(%1, %q) : (!scores, !q) -> !q
  return %2 : !q
}
