// RUN: relax-opt %s --split-input-file --pass-pipeline='relax-legalize-ops,relax-use-inplace-calls,symbol-dce' --pretty | FileCheck %s

!x = tensor<?x8xf32, #graph.shape<["n", 8]>>
!w = tensor<8x8xf32>

// What calls return is written over where it is not used later. Calls of one kernel have one copy.
// CHECK-LABEL: func @chain(
// CHECK-NEXT:    %0 = graph.call_tir @matmul(%arg0, %arg1)
// CHECK-NEXT:    %1 = graph.call_tir_inplace @exp_inplace(%0) {inplace_indices=array<i64: 0>}
// CHECK-NEXT:    %2 = graph.call_tir_inplace @add_inplace(%arg0, %1) {inplace_indices=array<i64: 1>}
// CHECK-NEXT:    %3 = graph.call_tir_inplace @exp_inplace(%2) {inplace_indices=array<i64: 0>}
// CHECK-NEXT:    return %3
// CHECK-NOT:   func private @exp(
// CHECK-LABEL: func private @exp_inplace(%arg0: tensor<n x 8 x f32>)
// CHECK:         linalg.generic(%0) {indexing_maps=[affine_map<(d0, d1) -> (d0, d1)>]
// CHECK-LABEL: func private @add_inplace(%arg0: tensor<n x 8 x f32>, %arg1: tensor<n x 8 x f32>)
// CHECK:         linalg.generic(%0, %1)
func.func @chain(%x: !x, %w: !w) -> !x {
  %0 = "graph.matmul"(%x, %w) : (!x, !w) -> !x
  %1 = "graph.exp"(%0) : (!x) -> !x
  %2 = "graph.add"(%x, %1) : (!x, !x) -> !x
  %3 = "graph.exp"(%2) : (!x) -> !x
  return %3 : !x
}

// -----

!x = tensor<?x8xf32, #graph.shape<["n", 8]>>
!s = tensor<8x8xf32>
!i = tensor<8x8xi32>

// An argument, what is used later, what is read elsewhere than it is written, or by indices.
// CHECK-LABEL: func @negative_reads(
// CHECK-NEXT:    %0 = graph.call_tir @exp(%arg0)
// CHECK-NEXT:    %1 = graph.call_tir @negative(%0)
// CHECK-NEXT:    %2 = graph.call_tir @permute_dims(%0)
// CHECK-NEXT:    %3 = graph.call_tir @gather_elements(%2, %arg1)
// CHECK-NEXT:    return %1, %3
func.func @negative_reads(%x: !s, %i: !i) -> (!s, !s) {
  %0 = "graph.exp"(%x) : (!s) -> !s
  %1 = "graph.negative"(%0) : (!s) -> !s
  %2 = "graph.permute_dims"(%0) {axes = array<i64: 1, 0>} : (!s) -> !s
  %3 = "graph.gather_elements"(%2, %i) {axis = 0 : i64} : (!s, !i) -> !s
  return %1, %3 : !s, !s
}

// Squares read one operand twice; a sum is no element-wise kernel.
// CHECK-LABEL: func @negative_nests(
// CHECK-NEXT:    %0 = graph.call_tir @exp{{.*}}(%arg0)
// CHECK-NEXT:    %1 = graph.call_tir @multiply(%0, %0)
// CHECK-NEXT:    %2 = graph.call_tir @softmax{{.*}}(%1)
func.func @negative_nests(%x: !x) -> !x {
  %0 = "graph.exp"(%x) : (!x) -> !x
  %1 = "graph.multiply"(%0, %0) : (!x, !x) -> !x
  %2 = "graph.nn_softmax"(%1) {axis = -1 : i64} : (!x) -> !x
  return %2 : !x
}

// Each round of a loop needs what is made before it.
// CHECK-LABEL: func @negative_loop(
// CHECK:         graph.call_tir @exp
// CHECK:         scf.for
// CHECK:           graph.call_tir @negative
// CHECK-NEXT:      graph.call_tir_inplace @add_inplace{{.*}} {inplace_indices=array<i64: 1>}
func.func @negative_loop(%x: !s) -> !s {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %three = arith.constant 3 : index
  %0 = "graph.exp"(%x) : (!s) -> !s
  %1 = scf.for %i = %zero to %three step %one iter_args(%carried = %x) -> !s {
    %2 = "graph.negative"(%0) : (!s) -> !s
    %3 = "graph.add"(%carried, %2) : (!s, !s) -> !s
    scf.yield %3 : !s
  }
  return %1 : !s
}
