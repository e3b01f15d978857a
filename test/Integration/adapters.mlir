// RUN: relax-compile %s --emit=mlir-fuse-tir | FileCheck %s

// What the adapter of each row adds to a product: the matrices of its index are read where they are,
// and no copy of them is made for each row.

!ids = tensor<?xi32, #graph.shape<["n"]>>
!x = tensor<?x24xf32, #graph.shape<["n", 24]>>
!h = tensor<?x3xf32, #graph.shape<["n", 3]>>
!y = tensor<?x40xf32, #graph.shape<["n", 40]>>

func.func @main(%product: !y {graph.name = "product"}, %x: !x {graph.name = "x"},
                %adapters: !ids {graph.name = "adapters"},
                %a: tensor<5x3x24xf32> {graph.name = "a"},
                %b: tensor<5x3x40xf32> {graph.name = "b"})
    -> !y attributes {graph.num_inputs = 3 : i64} {
  %0 = "graph.expand_dims"(%x) {axes = array<i64: 1>}
      : (!x) -> tensor<?x1x24xf32, #graph.shape<["n", 1, 24]>>
  %1 = "graph.take"(%a, %adapters) {axis = 0 : i64}
      : (tensor<5x3x24xf32>, !ids) -> tensor<?x3x24xf32, #graph.shape<["n", 3, 24]>>
  %2 = "graph.multiply"(%1, %0)
      : (tensor<?x3x24xf32, #graph.shape<["n", 3, 24]>>, tensor<?x1x24xf32, #graph.shape<["n", 1, 24]>>)
      -> tensor<?x3x24xf32, #graph.shape<["n", 3, 24]>>
  %3 = "graph.sum"(%2) {axes = array<i64: 2>, keepdims = false}
      : (tensor<?x3x24xf32, #graph.shape<["n", 3, 24]>>) -> !h
  %4 = "graph.expand_dims"(%3) {axes = array<i64: 2>}
      : (!h) -> tensor<?x3x1xf32, #graph.shape<["n", 3, 1]>>
  %5 = "graph.take"(%b, %adapters) {axis = 0 : i64}
      : (tensor<5x3x40xf32>, !ids) -> tensor<?x3x40xf32, #graph.shape<["n", 3, 40]>>
  %6 = "graph.multiply"(%5, %4)
      : (tensor<?x3x40xf32, #graph.shape<["n", 3, 40]>>, tensor<?x3x1xf32, #graph.shape<["n", 3, 1]>>)
      -> tensor<?x3x40xf32, #graph.shape<["n", 3, 40]>>
  %7 = "graph.sum"(%6) {axes = array<i64: 1>, keepdims = false}
      : (tensor<?x3x40xf32, #graph.shape<["n", 3, 40]>>) -> !y
  %8 = "graph.add"(%product, %7) : (!y, !y) -> !y
  return %8 : !y
}

// CHECK-LABEL: func.func @main
// CHECK-NOT:     callee = @take
// CHECK:         callee = @fused_take_multiply_sum
// CHECK-NOT:     callee = @take
// CHECK:         callee = @fused_take_multiply_sum_1
// CHECK:         callee = @add
// CHECK-NEXT:    return
