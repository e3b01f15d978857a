// RUN: relax-opt %s --split-input-file --pass-pipeline='builtin.module(relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,symbol-dce)' --pretty | FileCheck %s
// RUN: exits 2 relax-opt %s --pass-pipeline='relax-fuse-ops{max-size=0}' 2>&1 | FileCheck %s --check-prefix=SIZE
// SIZE: relax-opt: pass 'relax-fuse-ops': max-size must be positive, but is 0

!m = tensor<?x8xf32, #graph.shape<["n", 8]>>

// Bias, activation and residual run where the sums are; the transposed weight is read as it lies.
// CHECK-LABEL: func @matmul_epilogue
// CHECK-NEXT:    %[[Y:.*]] = graph.call @fused_permute_dims_matmul_add_relu(
// CHECK-NEXT:    return %[[Y]]
// CHECK:       func private @fused_permute_dims_matmul_add_relu
// CHECK:         graph.call_tir @permute_dims(
// CHECK:         graph.call_tir @matmul(
// CHECK:         graph.call_tir @add(
// CHECK:         graph.call_tir @add_1(
// CHECK:         graph.call_tir @relu(
func.func @matmul_epilogue(%x: !m, %w: tensor<8x8xf32>, %b: tensor<8xf32>) -> !m {
  %0 = "graph.permute_dims"(%w) {axes = array<i64: 1, 0>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = "graph.matmul"(%x, %0) : (!m, tensor<8x8xf32>) -> !m
  %2 = "graph.add"(%1, %b) : (!m, tensor<8xf32>) -> !m
  %3 = "graph.add"(%x, %2) : (!m, !m) -> !m
  %4 = "graph.nn_relu"(%3) : (!m) -> !m
  return %4 : !m
}

// -----

!m = tensor<?x8xf32, #graph.shape<["n", 8]>>

// Paths that part and meet again become one, with the reduction that they lead to; equal groups
// are one function.
// CHECK-LABEL: func @diamond
// CHECK-NEXT:    graph.call @fused_exp_negative_add_softmax(
// CHECK-NEXT:    graph.call @fused_exp_negative_add_softmax(
// CHECK-NEXT:    return
// CHECK:       func private @fused_exp_negative_add_softmax
// CHECK-NOT:   func private @fused
func.func @diamond(%x: !m) -> !m {
  %0 = "graph.exp"(%x) : (!m) -> !m
  %1 = "graph.negative"(%0) : (!m) -> !m
  %2 = "graph.add"(%0, %1) : (!m, !m) -> !m
  %3 = "graph.nn_softmax"(%2) {axis = -1 : i64} : (!m) -> !m
  %4 = "graph.exp"(%3) : (!m) -> !m
  %5 = "graph.negative"(%4) : (!m) -> !m
  %6 = "graph.add"(%4, %5) : (!m, !m) -> !m
  %7 = "graph.nn_softmax"(%6) {axis = -1 : i64} : (!m) -> !m
  return %7 : !m
}

// -----

// A producer joins the reduction behind it; what follows a reduction is a kernel of its own.
// CHECK-LABEL: func @into_reduction
// CHECK-NEXT:    %[[S:.*]] = graph.call @fused_exp_sum(
// CHECK-NEXT:    %[[L:.*]] = graph.call_tir @log(%[[S]])
// CHECK-NEXT:    return %[[L]]
func.func @into_reduction(%x: tensor<?x8xf32, #graph.shape<["n", 8]>>) -> tensor<?xf32, #graph.shape<["n"]>> {
  %0 = "graph.exp"(%x) : (tensor<?x8xf32, #graph.shape<["n", 8]>>) -> tensor<?x8xf32, #graph.shape<["n", 8]>>
  %1 = "graph.sum"(%0) {axes = array<i64: 1>, keepdims = false} : (tensor<?x8xf32, #graph.shape<["n", 8]>>) -> tensor<?xf32, #graph.shape<["n"]>>
  %2 = "graph.log"(%1) : (tensor<?xf32, #graph.shape<["n"]>>) -> tensor<?xf32, #graph.shape<["n"]>>
  return %2 : tensor<?xf32, #graph.shape<["n"]>>
}

// -----

!m = tensor<?x?xf32, #graph.shape<["n", "n"]>>

// The operands do not show n: it comes in as a shape (paper Figure 8).
// CHECK-LABEL: func @symbolic_extra_shape
// CHECK-NEXT:    %[[N:.*]] = graph.make_shape
// CHECK-NEXT:    graph.call @fused_full_triu_negative(%arg1, %[[N]])
// CHECK:       func private @fused_full_triu_negative(%arg0: tensor<f32>, %arg1: shape
func.func @symbolic_extra_shape(%s: !graph.shape_value<["n"]>, %v: tensor<f32>) -> !m {
  %0 = "graph.full"(%v) {shape = #graph.shape<["n", "n"]>} : (tensor<f32>) -> !m
  %1 = "graph.triu"(%0) {k = 0 : i64} : (!m) -> !m
  %2 = "graph.negative"(%1) : (!m) -> !m
  return %2 : !m
}

// -----

// A constant of one value goes along; 2*n in an operand shows n.
// CHECK-LABEL: func @symbolic_multiple
// CHECK-NEXT:    graph.call @fused_multiply_exp(%arg0)
// CHECK:       func private @fused_multiply_exp(%arg0: tensor<2*n x f32>)
// CHECK-NEXT:    constant dense<3
func.func @symbolic_multiple(%x: tensor<?xf32, #graph.shape<["2*n"]>>) -> tensor<?xf32, #graph.shape<["2*n"]>> {
  %c = arith.constant dense<3.0> : tensor<f32>
  %0 = "graph.multiply"(%x, %c) : (tensor<?xf32, #graph.shape<["2*n"]>>, tensor<f32>) -> tensor<?xf32, #graph.shape<["2*n"]>>
  %1 = "graph.exp"(%0) : (tensor<?xf32, #graph.shape<["2*n"]>>) -> tensor<?xf32, #graph.shape<["2*n"]>>
  return %1 : tensor<?xf32, #graph.shape<["2*n"]>>
}

// -----

// Reshapes at the border of a group stay outside, where they are views; alone they are no group.
// CHECK-LABEL: func @reshapes
// CHECK-NEXT:    graph.call_tir @reshape(
// CHECK-NEXT:    graph.call @fused_exp_negative(
// CHECK-NEXT:    graph.call_tir @reshape_1(
// CHECK-NEXT:    graph.call_tir @reshape_2(
// CHECK-NEXT:    return
func.func @reshapes(%x: tensor<4x6xf32>) -> tensor<2x12xf32> {
  %0 = "graph.reshape"(%x) {shape = #graph.shape<[24]>} : (tensor<4x6xf32>) -> tensor<24xf32>
  %1 = "graph.exp"(%0) : (tensor<24xf32>) -> tensor<24xf32>
  %2 = "graph.negative"(%1) : (tensor<24xf32>) -> tensor<24xf32>
  %3 = "graph.reshape"(%2) {shape = #graph.shape<[6, 4]>} : (tensor<24xf32>) -> tensor<6x4xf32>
  %4 = "graph.reshape"(%3) {shape = #graph.shape<[2, 12]>} : (tensor<6x4xf32>) -> tensor<2x12xf32>
  return %4 : tensor<2x12xf32>
}

// -----

// A transpose that two products read is none of their work: each reads the weight as it lies.
// CHECK-LABEL: func @shared_transpose
// CHECK-NEXT:    graph.call @fused_permute_dims_matmul(
// CHECK-NEXT:    graph.call @fused_permute_dims_matmul(
// CHECK-NEXT:    return
func.func @shared_transpose(%x: tensor<3x8xf32>, %y: tensor<3x8xf32>, %w: tensor<5x8xf32>) -> (tensor<3x5xf32>, tensor<3x5xf32>) {
  %0 = "graph.permute_dims"(%w) {axes = array<i64: 1, 0>} : (tensor<5x8xf32>) -> tensor<8x5xf32>
  %1 = "graph.matmul"(%x, %0) : (tensor<3x8xf32>, tensor<8x5xf32>) -> tensor<3x5xf32>
  %2 = "graph.matmul"(%y, %0) : (tensor<3x8xf32>, tensor<8x5xf32>) -> tensor<3x5xf32>
  return %1, %2 : tensor<3x5xf32>, tensor<3x5xf32>
}

// -----

!new   = tensor<?x2x8xf32, #graph.shape<["n", 2, 8]>>
!cache = tensor<2x?x8xf32, #graph.shape<[2, "c", 8]>>
!flat  = tensor<?x16xf32, #graph.shape<["n", 16]>>

// Producers go into the update in place, which stays one.
// CHECK-LABEL: func @into_update
// CHECK:         graph.call @fused_exp_reshape_kv_append(
// CHECK:       func private @fused_exp_reshape_kv_append
// CHECK:         graph.call_tir_inplace @kv_append
func.func @into_update(%k: !flat, %v: !new, %kc: !cache {graph.inout = 0 : i64}, %vc: !cache {graph.inout = 1 : i64}, %p: !graph.shape_value<["m"]>) -> (!cache, !cache) {
  %0 = "graph.exp"(%k) : (!flat) -> !flat
  %1 = "graph.reshape"(%0) {shape = #graph.shape<["n", 2, 8]>} : (!flat) -> !new
  %2:2 = "graph.nn_kv_append"(%kc, %vc, %1, %v) {position = #graph.shape<["m"]>} : (!cache, !cache, !new, !new) -> (!cache, !cache)
  return %2#0, %2#1 : !cache, !cache
}

// -----

!new   = tensor<?x2x8xf32, #graph.shape<["n", 2, 8]>>
!cache = tensor<2x?x8xf32, #graph.shape<[2, "c", 8]>>

// What reads the cache as it was must not move behind its update.
// CHECK-LABEL: func @negative_update
// CHECK-NEXT:    graph.call_tir @exp(%arg1)
// CHECK-NEXT:    graph.call_tir_inplace @kv_append
// CHECK-NEXT:    graph.call_tir @add(
func.func @negative_update(%k: !new, %kc: !cache {graph.inout = 0 : i64}, %vc: !cache {graph.inout = 1 : i64}, %p: !graph.shape_value<["m"]>) -> (!cache, !cache, !cache) {
  %0 = "graph.exp"(%kc) : (!cache) -> !cache
  %1:2 = "graph.nn_kv_append"(%kc, %vc, %k, %k) {position = #graph.shape<["m"]>} : (!cache, !cache, !new, !new) -> (!cache, !cache)
  %2 = "graph.add"(%0, %1#1) : (!cache, !cache) -> !cache
  return %1#0, %1#1, %2 : !cache, !cache, !cache
}

// -----

!new   = tensor<?x2x8xf32, #graph.shape<["n", 2, 8]>>
!cache = tensor<2x?x8xf32, #graph.shape<[2, "c", 8]>>

// An update in a branch is one, too.
// CHECK-LABEL: func @negative_update_in_branch
// CHECK-NEXT:    graph.call_tir @exp(%arg1)
// CHECK:         graph.call_tir_inplace @kv_append
// CHECK:         graph.call_tir @add(
func.func @negative_update_in_branch(%k: !new, %kc: !cache, %vc: !cache, %p: !graph.shape_value<["m"]>, %c: i1) -> (!cache, !cache) {
  %0 = "graph.exp"(%kc) : (!cache) -> !cache
  %1 = scf.if %c -> !cache {
    %2:2 = "graph.nn_kv_append"(%kc, %vc, %k, %k) {position = #graph.shape<["m"]>} : (!cache, !cache, !new, !new) -> (!cache, !cache)
    scf.yield %2#0 : !cache
  } else {
    scf.yield %vc : !cache
  }
  %3 = "graph.add"(%0, %0) : (!cache, !cache) -> !cache
  return %1, %3 : !cache, !cache
}

// -----

!new   = tensor<?x2x8xf32, #graph.shape<["n", 2, 8]>>
!cache = tensor<2x?x8xf32, #graph.shape<[2, "c", 8]>>

// A tensor that is updated twice, or updated and read, would be two outputs, or an input and an
// output, of one kernel.
// CHECK-LABEL: func @negative_updated_twice
// CHECK-NEXT:    graph.call_tir @exp(%arg0)
// CHECK-NEXT:    graph.call_tir_inplace @kv_append(
func.func @negative_updated_twice(%k: !new, %c: !cache {graph.inout = 0 : i64}, %p: !graph.shape_value<["m"]>) -> !cache {
  %0 = "graph.exp"(%k) : (!new) -> !new
  %1:2 = "graph.nn_kv_append"(%c, %c, %0, %k) {position = #graph.shape<["m"]>} : (!cache, !cache, !new, !new) -> (!cache, !cache)
  return %1#0 : !cache
}

// -----

!m = tensor<?x8xf32, #graph.shape<["n", 8]>>

// Nothing is computed twice: a value that is used elsewhere too, by a call or by the return, is
// kept; two products do not share a kernel, nor does one with a reduction.
// CHECK-LABEL: func @negative_uses
// CHECK-NEXT:    graph.call_tir @exp(
// CHECK-NEXT:    graph.call_tir @negative(
// CHECK-NEXT:    graph.call_tir @matmul(
// CHECK-NEXT:    graph.call_tir @matmul(
// CHECK-NEXT:    graph.call_tir @softmax(
// CHECK-NEXT:    return
func.func @negative_uses(%x: !m, %w: tensor<8x8xf32>) -> (!m, !m, !m) {
  %0 = "graph.exp"(%x) : (!m) -> !m
  %1 = "graph.negative"(%0) : (!m) -> !m
  %2 = "graph.matmul"(%x, %w) : (!m, tensor<8x8xf32>) -> !m
  %3 = "graph.matmul"(%2, %w) : (!m, tensor<8x8xf32>) -> !m
  %4 = "graph.nn_softmax"(%3) {axis = -1 : i64} : (!m) -> !m
  return %0, %1, %4 : !m, !m, !m
}

// -----

!m = tensor<?x8xf32, #graph.shape<["n", 8]>>

// Two products whose sum is needed: one of them has it as an epilogue, which reads the other.
// CHECK-LABEL: func @negative_two_products
// CHECK-NEXT:    %[[P:.*]] = graph.call_tir @matmul(%arg1, %arg2)
// CHECK-NEXT:    graph.call @fused_matmul_add(%arg0, %arg2, %[[P]])
// CHECK-NEXT:    return
func.func @negative_two_products(%x: !m, %y: !m, %w: tensor<8x8xf32>) -> !m {
  %0 = "graph.matmul"(%x, %w) : (!m, tensor<8x8xf32>) -> !m
  %1 = "graph.matmul"(%y, %w) : (!m, tensor<8x8xf32>) -> !m
  %2 = "graph.add"(%0, %1) : (!m, !m) -> !m
  return %2 : !m
}

// -----

// A cast checks at run time: groups end at it. Work on another shape is no epilogue.
// CHECK-LABEL: func @negative_cast
// CHECK-NEXT:    graph.call_tir @exp(
// CHECK-NEXT:    graph.match_cast
// CHECK-NEXT:    graph.call_tir @exp_1(
// CHECK-NEXT:    graph.call_tir @matmul(
// CHECK-NEXT:    graph.call_tir @broadcast_to(
func.func @negative_cast(%x: tensor<?x8xf32, #graph.shape<["n", 8]>>, %w: tensor<8x1xf32>) -> tensor<5x8xf32> {
  %0 = "graph.exp"(%x) : (tensor<?x8xf32, #graph.shape<["n", 8]>>) -> tensor<?x8xf32, #graph.shape<["n", 8]>>
  %1 = "graph.match_cast"(%0) : (tensor<?x8xf32, #graph.shape<["n", 8]>>) -> tensor<5x8xf32>
  %2 = "graph.exp"(%1) : (tensor<5x8xf32>) -> tensor<5x8xf32>
  %3 = "graph.matmul"(%2, %w) : (tensor<5x8xf32>, tensor<8x1xf32>) -> tensor<5x1xf32>
  %4 = "graph.broadcast_to"(%3) {shape = #graph.shape<[5, 8]>} : (tensor<5x1xf32>) -> tensor<5x8xf32>
  return %4 : tensor<5x8xf32>
}
