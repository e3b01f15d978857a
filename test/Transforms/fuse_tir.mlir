// RUN: relax-opt %s --split-input-file --pass-pipeline='builtin.module(relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir)' | FileCheck %s

// The product reads the weight as it lies, and the sums stay out of memory's sight: they go to a
// new tensor that a schedule can keep in registers; the last loops fill the output.
// CHECK-DAG:   #[[$ROWS:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG:   #[[$WEIGHT:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG:   #[[$SUM:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func.func @matmul_epilogue
// CHECK-NEXT:    "graph.call_tir"(%{{.*}}) {callee = @fused_permute_dims_matmul_add
// CHECK-NEXT:    return
// CHECK-NOT:   func.func private @matmul
// CHECK:       func.func private @fused_permute_dims_matmul_add(%[[W:.*]]: tensor<5x8xf32>, %[[X:.*]]: tensor<?x8xf32, #graph.shape<["n", 8]>>, %[[B:.*]]: tensor<5xf32>, %[[OUT:.*]]: tensor<?x5xf32
// CHECK-SAME:    tir.num_outs = 1 : i64, tir.prim_func
// CHECK-DAG:     %[[PX:.*]] = tensor.cast %[[X]]
// CHECK-DAG:     %[[N:.*]] = tensor.dim %[[X]]
// CHECK:         %[[EMPTY:.*]] = tensor.empty(%[[N]]) : tensor<?x5xf32>
// CHECK:         %[[ZERO:.*]] = linalg.fill
// CHECK-SAME:      outs(%[[EMPTY]]
// CHECK:         %[[SUMS:.*]] = linalg.generic {indexing_maps = [#[[$ROWS]], #[[$WEIGHT]], #[[$SUM]]]
// CHECK-SAME:      ins(%[[PX]], %[[W]]
// CHECK-SAME:      outs(%[[ZERO]]
// CHECK:         linalg.generic
// CHECK-SAME:      ins(%[[SUMS]], %[[B]]
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @matmul_epilogue(%x: tensor<?x8xf32, #graph.shape<["n", 8]>>, %w: tensor<5x8xf32>, %b: tensor<5xf32>) -> tensor<?x5xf32, #graph.shape<["n", 5]>> {
  %0 = "graph.permute_dims"(%w) {axes = array<i64: 1, 0>} : (tensor<5x8xf32>) -> tensor<8x5xf32>
  %1 = "graph.matmul"(%x, %0) : (tensor<?x8xf32, #graph.shape<["n", 8]>>, tensor<8x5xf32>) -> tensor<?x5xf32, #graph.shape<["n", 5]>>
  %2 = "graph.add"(%1, %b) : (tensor<?x5xf32, #graph.shape<["n", 5]>>, tensor<5xf32>) -> tensor<?x5xf32, #graph.shape<["n", 5]>>
  return %2 : tensor<?x5xf32, #graph.shape<["n", 5]>>
}

// -----

// Element-wise loops become one, which fills the output.
// CHECK-LABEL: func.func private @fused_exp_negative
// CHECK-SAME:    (%[[X:.*]]: tensor<7xf32>, %[[OUT:.*]]: tensor<7xf32>)
// CHECK-NEXT:    linalg.generic
// CHECK-SAME:      ins(%[[X]] : tensor<7xf32>) outs(%[[OUT]] : tensor<7xf32>)
// CHECK:           math.exp
// CHECK-NEXT:      arith.negf
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @element_wise(%x: tensor<7xf32>) -> tensor<7xf32> {
  %0 = "graph.exp"(%x) : (tensor<7xf32>) -> tensor<7xf32>
  %1 = "graph.negative"(%0) : (tensor<7xf32>) -> tensor<7xf32>
  return %1 : tensor<7xf32>
}

// -----

!new   = tensor<?x2x8xf32, #graph.shape<["n", 2, 8]>>
!cache = tensor<2x?x8xf32, #graph.shape<[2, "c", 8]>>

// The caches reach the kernel as outputs only; the position, which no tensor shows, as an index.
// CHECK-LABEL: func.func @update
// CHECK:         "graph.call_tir_inplace"(%arg0, %arg2, %arg3, %arg1) {callee = @fused_exp_kv_append, inplace_indices = array<i64: 1, 2>
// CHECK-SAME:      sym_args = #graph.shape<["m"]>
// CHECK-NOT:     graph.make_shape
// CHECK:       func.func private @fused_exp_kv_append(%[[K:.*]]: tensor<?x2x8xf32, #graph.shape<["n", 2, 8]>>, %[[V:.*]]: tensor<?x2x8xf32, #graph.shape<["n", 2, 8]>>, %[[KC:.*]]: tensor<2x?x8xf32, #graph.shape<[2, "c", 8]>>, %[[VC:.*]]: tensor<2x?x8xf32, #graph.shape<[2, "c", 8]>>, %[[M:.*]]: index {tir.sym = "m"})
// CHECK-SAME:    tir.num_outs = 2 : i64
// CHECK-DAG:     %[[PKC:.*]] = tensor.cast %[[KC]]
// CHECK-DAG:     %[[PVC:.*]] = tensor.cast %[[VC]]
// CHECK:         tensor.insert_slice %{{.*}} into %[[PKC]][0, %[[M]], 0]
// CHECK:         tensor.insert_slice %{{.*}} into %[[PVC]][0, %[[M]], 0]
func.func @update(%k: !new, %v: !new, %kc: !cache {graph.inout = 0 : i64}, %vc: !cache {graph.inout = 1 : i64}, %p: !graph.shape_value<["m"]>) -> (!cache, !cache) {
  %0 = "graph.exp"(%k) : (!new) -> !new
  %1:2 = "graph.nn_kv_append"(%kc, %vc, %0, %v) {position = #graph.shape<["m"]>} : (!cache, !cache, !new, !new) -> (!cache, !cache)
  return %1#0, %1#1 : !cache, !cache
}

// -----

#one     = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#two     = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#one_out = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!v = tensor<?xf32, #graph.shape<["n"]>>

// One kernel fresh and twice in place: all three write the output, no temporary.
// CHECK-LABEL: func.func @chain
// CHECK-NEXT:    "graph.call_tir"(%arg0) {callee = @fused_chain
// CHECK:       func.func private @fused_chain
// CHECK-NOT:     tensor.empty
// CHECK:         return
func.func private @double(%out: !v) -> !v attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %p = tensor.cast %out : !v to tensor<?xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%p : tensor<?xf32>) {
  ^bb0(%a: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  %r = tensor.cast %0 : tensor<?xf32> to !v
  return %r : !v
}
func.func private @copy(%x: !v, %out: !v) -> !v attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %px = tensor.cast %x : !v to tensor<?xf32>
  %p = tensor.cast %out : !v to tensor<?xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%px : tensor<?xf32>) outs(%p : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<?xf32>
  %r = tensor.cast %0 : tensor<?xf32> to !v
  return %r : !v
}
func.func private @fused_chain(%x: !v) -> !v attributes {graph.primitive} {
  %0 = "graph.call_tir"(%x) {callee = @copy, sym_args = #graph.shape<[]>, operandSegmentSizes = #one, resultSegmentSizes = #one_out} : (!v) -> !v
  %1 = "graph.call_tir_inplace"(%0) {callee = @double, inplace_indices = array<i64: 0>, sym_args = #graph.shape<[]>, operandSegmentSizes = #one, resultSegmentSizes = #one_out} : (!v) -> !v
  %2 = "graph.call_tir_inplace"(%1) {callee = @double, inplace_indices = array<i64: 0>, sym_args = #graph.shape<[]>, operandSegmentSizes = #one, resultSegmentSizes = #one_out} : (!v) -> !v
  return %2 : !v
}
func.func @chain(%x: !v) -> !v {
  %0 = "graph.call"(%x) {callee = @fused_chain, operandSegmentSizes = #one, resultSegmentSizes = #one_out} : (!v) -> !v
  return %0 : !v
}

// -----

#one     = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#two     = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#one_out = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!x = tensor<?x4xf32, #graph.shape<["n - 1", 4]>>
!y = tensor<?x4xf32, #graph.shape<["2*n", 4]>>

// Extents with arithmetic in them are computed from an index argument.
// CHECK-LABEL: func.func @symbolic_extents
// CHECK:         sym_args = #graph.shape<["k"]>
// CHECK:       func.func private @fused_rows
// CHECK-SAME:    %[[N:[a-z0-9]+]]: index {tir.sym = "n"}
func.func private @rows(%x: !x, %out: !y) -> !y attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  return %out : !y
}
func.func private @twice(%x: !y, %out: !y) -> !y attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %px = tensor.cast %x : !y to tensor<?x4xf32>
  %p = tensor.cast %out : !y to tensor<?x4xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%px : tensor<?x4xf32>) outs(%p : tensor<?x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<?x4xf32>
  %r = tensor.cast %0 : tensor<?x4xf32> to !y
  return %r : !y
}
func.func private @fused_rows(%x: !x, %s: !graph.shape_value<["n"]>) -> !y attributes {graph.primitive} {
  %0 = "graph.call_tir"(%x) {callee = @rows, sym_args = #graph.shape<[]>, operandSegmentSizes = #one, resultSegmentSizes = #one_out} : (!x) -> !y
  %1 = "graph.call_tir"(%0) {callee = @twice, sym_args = #graph.shape<[]>, operandSegmentSizes = #one, resultSegmentSizes = #one_out} : (!y) -> !y
  return %1 : !y
}
func.func @symbolic_extents(%x: tensor<?x4xf32, #graph.shape<["k - 1", 4]>>, %s: !graph.shape_value<["k"]>) -> tensor<?x4xf32, #graph.shape<["2*k", 4]>> {
  %0 = "graph.call"(%x, %s) {callee = @fused_rows, operandSegmentSizes = #two, resultSegmentSizes = #one_out} : (tensor<?x4xf32, #graph.shape<["k - 1", 4]>>, !graph.shape_value<["k"]>) -> tensor<?x4xf32, #graph.shape<["2*k", 4]>>
  return %0 : tensor<?x4xf32, #graph.shape<["2*k", 4]>>
}

// -----

#one     = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#two     = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#one_out = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!v = tensor<?xf32, #graph.shape<["n"]>>

// A shape among the operands is none of the kernel's: the updated tensor is its first operand.
// CHECK-LABEL: func.func @shape_before_update
// CHECK-NEXT:    "graph.call_tir_inplace"(%arg1) {callee = @fused_double, inplace_indices = array<i64: 0>
// CHECK:       func.func private @fused_double(%{{[a-z0-9]+}}: tensor<?xf32, #graph.shape<["n"]>>, %{{[a-z0-9]+}}: index {tir.sym = "n"})
func.func private @double(%out: !v) -> !v attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %p = tensor.cast %out : !v to tensor<?xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%p : tensor<?xf32>) {
  ^bb0(%a: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  %r = tensor.cast %0 : tensor<?xf32> to !v
  return %r : !v
}
func.func private @fused_double(%s: !graph.shape_value<["n"]>, %x: !v) -> !v attributes {graph.primitive} {
  %0 = "graph.call_tir_inplace"(%x) {callee = @double, inplace_indices = array<i64: 0>, sym_args = #graph.shape<[]>, operandSegmentSizes = #one, resultSegmentSizes = #one_out} : (!v) -> !v
  %1 = "graph.call_tir_inplace"(%0) {callee = @double, inplace_indices = array<i64: 0>, sym_args = #graph.shape<[]>, operandSegmentSizes = #one, resultSegmentSizes = #one_out} : (!v) -> !v
  return %1 : !v
}
func.func @shape_before_update(%s: !graph.shape_value<["n"]>, %x: !v {graph.inout = 0 : i64}) -> !v {
  %0 = "graph.call"(%s, %x) {callee = @fused_double, operandSegmentSizes = #two, resultSegmentSizes = #one_out} : (!graph.shape_value<["n"]>, !v) -> !v
  return %0 : !v
}

// -----

// Without a primitive function nothing changes.
// CHECK-LABEL: func.func @negative_single
// CHECK-NEXT:    "graph.call_tir"(%arg0) {callee = @exp
// CHECK:       func.func private @exp
func.func @negative_single(%x: tensor<7xf32>) -> tensor<7xf32> {
  %0 = "graph.exp"(%x) : (tensor<7xf32>) -> tensor<7xf32>
  return %0 : tensor<7xf32>
}

// -----

// Both extents of the detached output are one value, whose maker goes once.
// CHECK-LABEL: func.func @square
// CHECK:       func.func private @fused_take_tile(%{{.*}}, %{{.*}}, %[[OUT:.*]]: tensor<?x?xi1
// CHECK:         %[[PLAIN:.*]] = tensor.cast %[[OUT]]
// CHECK:         linalg.generic
// CHECK-SAME:      outs(%[[PLAIN]]
func.func @square(%x: tensor<?x?xi1, #graph.shape<["n", "m"]>>, %i: tensor<?xi64, #graph.shape<["m"]>>) -> tensor<?x?xi1, #graph.shape<["m", "m"]>> {
  %0 = "graph.take"(%x, %i) {axis = 0 : i64} : (tensor<?x?xi1, #graph.shape<["n", "m"]>>, tensor<?xi64, #graph.shape<["m"]>>) -> tensor<?x?xi1, #graph.shape<["m", "m"]>>
  %1 = "graph.tile"(%0) {repeats = #graph.shape<[1, 1]>} : (tensor<?x?xi1, #graph.shape<["m", "m"]>>) -> tensor<?x?xi1, #graph.shape<["m", "m"]>>
  return %1 : tensor<?x?xi1, #graph.shape<["m", "m"]>>
}
