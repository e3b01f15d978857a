// RUN: relax-compile %s --emit=mlir-fuse-tir | FileCheck %s

// The product of each row with the matrices of two experts: those that were chosen are read where
// they are, and none is copied.

!ids = tensor<?x2xi32, #graph.shape<["n", 2]>>
!x = tensor<?x1x1x24xf32, #graph.shape<["n", 1, 1, 24]>>
!chosen = tensor<?x2x40x24xf32, #graph.shape<["n", 2, 40, 24]>>
!y = tensor<?x2x40xf32, #graph.shape<["n", 2, 40]>>

func.func @main(%x: !x {graph.name = "x"}, %ids: !ids {graph.name = "ids"},
                %experts: tensor<7x40x24xf32> {graph.name = "experts"})
    -> !y attributes {graph.num_inputs = 2 : i64} {
  %0 = "graph.take"(%experts, %ids) {axis = 0 : i64} : (tensor<7x40x24xf32>, !ids) -> !chosen
  %1 = "graph.multiply"(%0, %x) : (!chosen, !x) -> !chosen
  %2 = "graph.sum"(%1) {axes = array<i64: 3>, keepdims = false} : (!chosen) -> !y
  return %2 : !y
}

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    callee = @fused_take_multiply_sum
// CHECK-NEXT:    return
