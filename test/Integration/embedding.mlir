// RUN: relax-compile %s -O1 -o %t.so
// RUN: relax-run %t.so --input 0,10,3 --input ones:11x7xf32 | FileCheck %s
// RUN: relax-run --interpret %s --input 0,10,3 --input ones:11x7xf32 | FileCheck %s

// Mixed element types: a lookup, a comparison, a choice, a position.

!ids   = tensor<?xi32, #graph.shape<["n"]>>
!rows  = tensor<?x7xf32, #graph.shape<["n", 7]>>
!mask  = tensor<?x7xi1, #graph.shape<["n", 7]>>
!best  = tensor<?xi64, #graph.shape<["n"]>>
!halfs = tensor<?x7xf16, #graph.shape<["n", 7]>>

func.func @main(%ids: !ids {graph.name = "ids"}, %table: tensor<11x7xf32> {graph.name = "table"})
    -> (!best, !mask, !halfs) {
  %zero = arith.constant dense<0.0> : tensor<f32>
  %0 = "graph.take"(%table, %ids) {axis = 0 : i64} : (tensor<11x7xf32>, !ids) -> !rows
  %1 = "graph.greater"(%0, %zero) : (!rows, tensor<f32>) -> !mask
  %2 = "graph.where"(%1, %0, %zero) : (!mask, !rows, tensor<f32>) -> !rows
  %3 = "graph.argmax"(%2) {axis = -1 : i64, keepdims = false} : (!rows) -> !best
  %4 = "graph.astype"(%2) {dtype = f16} : (!rows) -> !halfs
  return %3, %1, %4 : !best, !mask, !halfs
}

// CHECK:      result 0: 3xi64
// CHECK-NEXT: [0 0 0]
// CHECK-NEXT: result 1: 3x7xi1
// CHECK:      result 2: 3x7xf16
