// RUN: relax-compile %s --emit=mlir-fuse-tir | FileCheck %s
// RUN: relax-compile %s -O0 --emit=mlir-legalize-ops | FileCheck %s --check-prefix=PLAIN

// A two-layer perceptron with a softmax: one compilation for every batch size n.

!x = tensor<?x13xf32, #graph.shape<["n", 13]>>
!h = tensor<?x31xf32, #graph.shape<["n", 31]>>
!y = tensor<?x10xf32, #graph.shape<["n", 10]>>

func.func @main(%x: !x {graph.name = "x"},
                %w1: tensor<13x31xf32> {graph.name = "w1"}, %b1: tensor<31xf32> {graph.name = "b1"},
                %w2: tensor<31x10xf32> {graph.name = "w2"}, %b2: tensor<10xf32> {graph.name = "b2"})
    -> !y attributes {graph.num_inputs = 1 : i64} {
  %0 = "graph.matmul"(%x, %w1) : (!x, tensor<13x31xf32>) -> !h
  %1 = "graph.add"(%0, %b1) : (!h, tensor<31xf32>) -> !h
  %2 = "graph.nn_gelu"(%1) : (!h) -> !h
  %3 = "graph.matmul"(%2, %w2) : (!h, tensor<31x10xf32>) -> !y
  %4 = "graph.add"(%3, %b2) : (!y, tensor<10xf32>) -> !y
  %5 = "graph.nn_softmax"(%4) {axis = -1 : i64} : (!y) -> !y
  return %5 : !y
}

// Bias and activation are computed on the blocks of the product.
// CHECK-LABEL: func.func @main
// CHECK:         callee = @fused_matmul_add_gelu
// CHECK:         callee = @fused_matmul{{.*}}add
// CHECK:         callee = @softmax
// CHECK-NEXT:    return

// PLAIN-LABEL: func.func @main
// PLAIN-COUNT-6: "graph.call_tir"
// PLAIN-NEXT:    return
