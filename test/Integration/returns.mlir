// RUN: relax-compile %s -O0 -o %t.so
// RUN: relax-run %t.so --input ones:1x4xf32 | FileCheck %s
// RUN: relax-run --interpret %s --input ones:1x4xf32 | FileCheck %s

// What a function returns: an argument, a constant, one value twice, a view of another result.

!x = tensor<?x4xf32, #graph.shape<["n", 4]>>
!f = tensor<?xf32, #graph.shape<["4*n"]>>

func.func @main(%x: !x {graph.name = "x"}) -> (!x, tensor<2xi32>, !x, !x, !f) {
  %c = arith.constant dense<[3, -5]> : tensor<2xi32>
  %0 = "graph.negative"(%x) : (!x) -> !x
  %1 = "graph.reshape"(%0) {shape = #graph.shape<["4*n"]>} : (!x) -> !f
  return %x, %c, %0, %0, %1 : !x, tensor<2xi32>, !x, !x, !f
}

// CHECK:      result 0: 1x4xf32
// CHECK-NEXT: {{\[\[1. 1. 1. 1.\]\]}}
// CHECK-NEXT: result 1: 2xi32
// CHECK-NEXT: [ 3 -5]
// CHECK-NEXT: result 2: 1x4xf32
// CHECK-NEXT: {{\[\[-1. -1. -1. -1.\]\]}}
// CHECK-NEXT: result 3: 1x4xf32
// CHECK-NEXT: {{\[\[-1. -1. -1. -1.\]\]}}
// CHECK-NEXT: result 4: 4xf32
// CHECK-NEXT: [-1. -1. -1. -1.]
