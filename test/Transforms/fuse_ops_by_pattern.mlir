// RUN: relax-opt %s --pass-pipeline="relax-fuse-ops-by-pattern{match='blas.relu = nn_relu(matmul(%x, %w)); blas.dense = add(matmul(%x, %w), const); own.cast = broadcast_to(exp(_)); own.sum = subtract(exp(%x), %y)'}" --pretty | FileCheck %s
// RUN: relax-opt %s --pass-pipeline="relax-fuse-ops-by-pattern{match='blas.relu = nn_relu(matmul(%x, %w)); blas.dense = add(matmul(%x, %w), const); own.cast = broadcast_to(exp(_)); own.sum = subtract(exp(%x), %y)'}" --pretty 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: relax-opt %s --pass-pipeline="relax-fuse-ops-by-pattern{functions=dense match='blas.dense = add(matmul(%x, %w), const)' bind-constants=false annotate-codegen}" --pretty 2>&1 | FileCheck %s --check-prefix=MARKED
// RUN: relax-opt %s --load-passes=%ROOT/test/Transforms/Inputs/registered_patterns.py --pass-pipeline="relax-fuse-ops-by-pattern{patterns=test.narrow}" --pretty 2>&1 | FileCheck %s --check-prefix=NAMED
// RUN: relax-opt %s --pass-pipeline="relax-fuse-ops-by-pattern{match='blas.relu = nn_relu(matmul(%x, %w)); blas.dense = add(matmul(%x, %w), const); own.cast = broadcast_to(exp(_)); own.sum = subtract(exp(%x), %y)'},relax-inline-functions" --check-equivalent-after-each | FileCheck %s --check-prefix=INLINED
// RUN: exits 2 relax-opt %s --pass-pipeline="relax-fuse-ops-by-pattern{patterns=no.such}" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: exits 2 relax-opt %s --relax-fuse-ops-by-pattern 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: exits 2 relax-opt %s --pass-pipeline="relax-fuse-ops-by-pattern{match='a = matmul('}" 2>&1 | FileCheck %s --check-prefix=TEXT
// UNKNOWN: relax-opt: pass 'relax-fuse-ops-by-pattern': no pattern 'no.such' is registered
// NONE: expects patterns: match='name = pattern', or patterns=NAME
// TEXT: pattern ' matmul(': expects a pattern at column 9, but got the end
// INLINED-NOT: graph.call

!x = tensor<?x64xf32, #graph.shape<["n", 64]>>
!y = tensor<?x32xf32, #graph.shape<["n", 32]>>
!w = tensor<64x32xf32>
!r = tensor<32xf32>

// Two groups share a function; a result that others use, before the group's end too, is one more.
// CHECK-LABEL: func @dense(
// CHECK-NEXT:    %0 = graph.call @blas_dense(%arg0, %arg1)
// CHECK-NEXT:    %1, %2 = graph.call @blas_dense_1(%0, %arg2) : tensor<n x 64 x f32>, tensor<n x 64 x f32>
// CHECK-NEXT:    %3 = graph.exp(%1)
// CHECK-NEXT:    %4 = graph.call @blas_dense(%arg0, %arg1)
// CHECK-NEXT:    return %3, %2, %4

// MARKED-LABEL: func @dense(
// MARKED-NEXT:    %0 = constant
// MARKED:         graph.call @blas_dense(%arg0, %arg1, %0)
// MARKED: func private @blas_dense(%arg0: tensor<n x 64 x f32>, %arg1: tensor<64 x 32 x f32>, %arg2: tensor<32 x f32>)
// MARKED-SAME: {graph.codegen="blas", graph.composite="blas.dense"}

// The check of the registered pattern refuses products of 64 columns.
// NAMED-LABEL: func @dense(
// NAMED:         graph.call @test_narrow(
// NAMED:         graph.matmul
// NAMED:         graph.call @test_narrow(
func.func @dense(%x: !x, %w: !w, %v: tensor<32x64xf32>) -> (tensor<?x64xf32, #graph.shape<["n", 64]>>, tensor<?x64xf32, #graph.shape<["n", 64]>>, !y) {
  %b = arith.constant dense<1.0> : !r
  %c = arith.constant dense<2.0> : tensor<64xf32>
  %0 = "graph.matmul"(%x, %w) : (!x, !w) -> !y
  %1 = "graph.add"(%0, %b) : (!y, !r) -> !y
  %2 = "graph.matmul"(%1, %v) : (!y, tensor<32x64xf32>) -> !x
  %3 = "graph.exp"(%2) : (!x) -> !x
  %4 = "graph.add"(%2, %c) : (!x, tensor<64xf32>) -> !x
  %5 = "graph.matmul"(%x, %w) : (!x, !w) -> !y
  %6 = "graph.add"(%5, %b) : (!y, !r) -> !y
  return %3, %4, %6 : !x, !x, !y
}

// Groups that differ in what others use are two functions.
// CHECK-LABEL: func @outputs(
// CHECK-NEXT:    %0, %1 = graph.call @own_sum_1(%arg0, %arg1)
// CHECK-NEXT:    %2 = graph.call @own_sum(%arg0, %arg1)
// CHECK-NEXT:    return %1, %2, %0
func.func @outputs(%x: !r, %y: !r) -> (!r, !r, !r) {
  %0 = "graph.exp"(%x) : (!r) -> !r
  %1 = "graph.subtract"(%0, %y) : (!r, !r) -> !r
  %2 = "graph.exp"(%x) : (!r) -> !r
  %3 = "graph.subtract"(%2, %y) : (!r, !r) -> !r
  return %1, %3, %0 : !r, !r, !r
}

// A symbol that no operand binds is passed; regions are looked into.
// CHECK-LABEL: func @symbols(
// CHECK:         scf.if
// CHECK-NEXT:      %[[S:.*]] = graph.make_shape() {{.*}} : shape<m>
// CHECK-NEXT:      graph.call @own_cast(%arg0, %[[S]]) : tensor<m x 4 x f32>
func.func @symbols(%x: tensor<4xf32>, %c: i1, %o: tensor<?x4xf32, #graph.shape<["m", 4]>>) -> tensor<?x4xf32, #graph.shape<["m", 4]>> {
  %r = scf.if %c -> tensor<?x4xf32, #graph.shape<["m", 4]>> {
    %0 = "graph.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = "graph.broadcast_to"(%0) {shape = #graph.shape<["m", 4]>} : (tensor<4xf32>) -> tensor<?x4xf32, #graph.shape<["m", 4]>>
    scf.yield %1 : tensor<?x4xf32, #graph.shape<["m", 4]>>
  } else {
    scf.yield %o : tensor<?x4xf32, #graph.shape<["m", 4]>>
  }
  return %r : tensor<?x4xf32, #graph.shape<["m", 4]>>
}

// The logarithm needs what the call would return, and computes what it would take.
// REMARK: remark: 'own.sum' matches 'graph.subtract', but 'graph.log' computes an operand from one of its results
// CHECK-LABEL: func @negative_cycle(
// CHECK-NOT:     graph.call
// CHECK:         return
func.func @negative_cycle(%x: !r) -> !r {
  %0 = "graph.exp"(%x) : (!r) -> !r
  %1 = "graph.log"(%0) : (!r) -> !r
  %2 = "graph.subtract"(%0, %1) : (!r, !r) -> !r
  return %2 : !r
}

// What uses a result before the group's last op follows the call, unless it has to stay.
// CHECK-LABEL: func @late(
// CHECK-NEXT:    %0 = graph.log(%arg0)
// CHECK-NEXT:    %1, %2 = graph.call @own_sum_1(%arg0, %0)
// CHECK-NEXT:    %3 = graph.negative(%1)
// CHECK-NEXT:    return %2, %3
func.func @late(%x: !r) -> (!r, !r) {
  %0 = "graph.exp"(%x) : (!r) -> !r
  %1 = "graph.negative"(%0) : (!r) -> !r
  %2 = "graph.log"(%x) : (!r) -> !r
  %3 = "graph.subtract"(%0, %2) : (!r, !r) -> !r
  return %3, %1 : !r, !r
}

// The ops of a match in two blocks, others' patterns, and other operands are no group.
// CHECK-LABEL: func @negative_blocks(
// CHECK-NOT:     graph.call
// CHECK:         return
func.func @negative_blocks(%x: !x, %w: !w, %c: i1, %b: !r) -> !y {
  %0 = "graph.matmul"(%x, %w) : (!x, !w) -> !y
  %1 = scf.if %c -> !y {
    %2 = "graph.nn_relu"(%0) : (!y) -> !y
    scf.yield %2 : !y
  } else {
    %2 = "graph.add"(%0, %b) : (!y, !r) -> !y
    scf.yield %2 : !y
  }
  return %1 : !y
}
