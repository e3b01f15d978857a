// RUN: relax-opt %s --pretty | FileCheck %s --check-prefix=BEFORE
// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,symbol-dce' --check-equivalent-after-each --pretty | FileCheck %s
// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,symbol-dce' --check-equivalent-after-each --pretty | FileCheck %s --check-prefix=MERGED

// A function that is made of a region takes 2*n rows, from which its parameter alone tells n; where
// no parameter does, a shape is passed along (paper Figure 8). Merged, it is an index of the kernel.

!rows = tensor<?x4xf32, #graph.shape<["2*n", 4]>>
!flat = tensor<?xf32, #graph.shape<["8*n"]>>
!square = tensor<?x?xf32, #graph.shape<["n", "n"]>>

// BEFORE-LABEL: func @expression(%arg0: tensor<2*n x 4 x f32>)
// BEFORE-NEXT:    graph.exp
// BEFORE-NEXT:    graph.negative

// CHECK-LABEL: func @expression(
// CHECK-NEXT:    %0 = graph.call @fused_exp_negative(%arg0) : tensor<2*n x 4 x f32>
func.func @expression(%x: !rows) -> !rows {
  %0 = "graph.exp"(%x) : (!rows) -> !rows
  %1 = "graph.negative"(%0) : (!rows) -> !rows
  return %1 : !rows
}

// BEFORE-LABEL: func @extra_shape(
// BEFORE-NEXT:    graph.full
// BEFORE-NEXT:    graph.triu

// CHECK-LABEL: func @extra_shape(
// CHECK-NEXT:    %[[N:.*]] = graph.make_shape() {{.*}} : shape<n>
// CHECK-NEXT:    graph.call @fused_full_triu(%arg1, %[[N]]) : tensor<n x n x f32>
func.func @extra_shape(%s: !graph.shape_value<["n"]>, %v: tensor<f32>) -> !square {
  %0 = "graph.full"(%v) {shape = #graph.shape<["n", "n"]>} : (tensor<f32>) -> !square
  %1 = "graph.triu"(%0) {k = 0 : i64} : (!square) -> !square
  return %1 : !square
}

// CHECK:       func private @fused_exp_negative(%arg0: tensor<2*n x 4 x f32>) -> tensor<2*n x 4 x f32>
// CHECK:       func private @fused_full_triu(%arg0: tensor<f32>, %arg1: shape<n>) -> tensor<n x n x f32>

// MERGED-LABEL: func @extra_shape(
// MERGED:         graph.call_tir @fused_full_triu(%arg1; n) : tensor<n x n x f32>
// MERGED:       func private @fused_full_triu(%arg0: tensor<f32>, %arg1: tensor<n x n x f32>, %arg2: index)
