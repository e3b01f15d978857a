// RUN: relax-opt %s --pass-pipeline="relax-fuse-ops-by-pattern{match='blas.dense = add(matmul(%x, %w), %b); blas.relu = nn_relu(_); own.exp = exp(_)'},relax-merge-composite-functions" --pretty | FileCheck %s
// RUN: relax-opt %s --pass-pipeline="relax-fuse-ops-by-pattern{match='blas.dense = add(matmul(%x, %w), %b); blas.relu = nn_relu(_); own.exp = exp(_)'},relax-merge-composite-functions{max-size=1}" --pretty | FileCheck %s --check-prefix=ALONE
// RUN: relax-opt %s --pass-pipeline="relax-fuse-ops-by-pattern{match='blas.dense = add(matmul(%x, %w), %b); blas.relu = nn_relu(_); own.exp = exp(_)'},relax-merge-composite-functions,relax-inline-functions" --check-equivalent-after-each | FileCheck %s --check-prefix=INLINED
// RUN: exits 2 relax-opt %s --pass-pipeline="relax-merge-composite-functions{max-size=0}" 2>&1 | FileCheck %s --check-prefix=SIZE
// SIZE: max-size must be positive, but is 0
// INLINED-NOT: graph.call

!x = tensor<?x8xf32, #graph.shape<["n", 8]>>
!w = tensor<8x8xf32>
!b = tensor<8xf32>

// Three calls become one; another library's is one by itself.
// CHECK-LABEL: func @chain(
// CHECK-NEXT:    %0 = graph.call @blas(
// CHECK-NEXT:    %1 = graph.call @own(%0)
// CHECK-NEXT:    return %1

// ALONE-LABEL: func @chain(
// ALONE-COUNT-3: graph.call @blas
// ALONE-NEXT:    graph.call @own
func.func @chain(%x: !x, %w: !w, %b: !b) -> !x {
  %0 = "graph.matmul"(%x, %w) : (!x, !w) -> !x
  %1 = "graph.add"(%0, %b) : (!x, !b) -> !x
  %2 = "graph.nn_relu"(%1) : (!x) -> !x
  %3 = "graph.matmul"(%2, %w) : (!x, !w) -> !x
  %4 = "graph.add"(%3, %b) : (!x, !b) -> !x
  %5 = "graph.exp"(%4) : (!x) -> !x
  return %5 : !x
}

// The other library computes an operand of the second call from the first one's result.
// CHECK-LABEL: func @negative_cycle(
// CHECK-NEXT:    %0 = graph.call @blas_2(%arg0)
// CHECK-NEXT:    %1 = graph.call @own(%0)
// CHECK-NEXT:    %2 = graph.call @blas_1(%0, %arg1, %1)
// CHECK-NEXT:    return %2
func.func @negative_cycle(%x: !x, %w: !w) -> !x {
  %0 = "graph.nn_relu"(%x) : (!x) -> !x
  %1 = "graph.exp"(%0) : (!x) -> !x
  %2 = "graph.matmul"(%0, %w) : (!x, !w) -> !x
  %3 = "graph.add"(%2, %1) : (!x, !x) -> !x
  return %3 : !x
}

// Both users of the first call are merged with it, though neither needs the other.
// CHECK-LABEL: func @fork(
// CHECK-NEXT:    %0, %1 = graph.call @blas_3(%arg0, %arg1, %arg2)
// CHECK-NEXT:    return %0, %1
func.func @fork(%x: !x, %w: !w, %b: !b) -> (!x, !x) {
  %0 = "graph.nn_relu"(%x) : (!x) -> !x
  %1 = "graph.matmul"(%0, %w) : (!x, !w) -> !x
  %2 = "graph.add"(%1, %b) : (!x, !b) -> !x
  %3 = "graph.nn_relu"(%0) : (!x) -> !x
  return %2, %3 : !x, !x
}

// CHECK: func private @own({{.*}} {graph.codegen="own"}
// CHECK: func private @blas({{.*}} {graph.codegen="blas"}
