// RUN: relax-opt %s --pretty | FileCheck %s

// CHECK:      func @main(%arg0: tensor<n x 4 x f32>) -> tensor<n x 2 x f32>  facts n <= 2048, n mod 16 == 0 {
// CHECK-NEXT:   %0 = constant dense<1.000000e+00> : tensor<4 x 2 x f32>
// CHECK-NEXT:   %1 = graph.matmul(%arg0, %0) : tensor<n x 2 x f32>
// CHECK-NEXT:   %2 = graph.call_tir @k(%1) : tensor<n x 2 x f32>
// CHECK-NEXT:   return %2
// CHECK-NEXT: }
func.func @main(%x: tensor<?x4xf32, #graph.shape<["n", 4]>>) -> tensor<?x2xf32, #graph.shape<["n", 2]>>
    attributes {graph.facts = ["n <= 2048", "n mod 16 == 0"]} {
  %w = arith.constant dense<1.0> : tensor<4x2xf32>
  %0 = "graph.matmul"(%x, %w) : (tensor<?x4xf32, #graph.shape<["n", 4]>>, tensor<4x2xf32>) -> tensor<?x2xf32, #graph.shape<["n", 2]>>
  %1 = "graph.call_tir"(%0) {callee = @k, sym_args = #graph.shape<[]>,
      operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>,
      resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>}
      : (tensor<?x2xf32, #graph.shape<["n", 2]>>) -> tensor<?x2xf32, #graph.shape<["n", 2]>>
  return %1 : tensor<?x2xf32, #graph.shape<["n", 2]>>
}

// Regions nest; a declaration has no body.
// CHECK:      func private @declared(i32) -> i32
func.func private @declared(%x: i32) -> i32

// CHECK:      func @branch(%arg0: i1, %arg1: tensor<*xf32>) -> tensor<*xf32> {
// CHECK-NEXT:   %0 = scf.if(%arg0) : tensor<*xf32> {
// CHECK-NEXT:     scf.yield(%arg1)
// CHECK-NEXT:   } {
// CHECK-NEXT:     scf.yield(%arg1)
// CHECK-NEXT:   }
// CHECK-NEXT:   return %0
func.func @branch(%c: i1, %x: tensor<*xf32>) -> tensor<*xf32> {
  %0 = scf.if %c -> tensor<*xf32> {
    scf.yield %x : tensor<*xf32>
  } else {
    scf.yield %x : tensor<*xf32>
  }
  return %0 : tensor<*xf32>
}

func.func private @k(%x: tensor<?x2xf32, #graph.shape<["n", 2]>>, %out: tensor<?x2xf32, #graph.shape<["n", 2]>>)
    -> tensor<?x2xf32, #graph.shape<["n", 2]>> attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  return %x : tensor<?x2xf32, #graph.shape<["n", 2]>>
}

// CHECK:      func @required(%arg0: tensor<n x f32>) {
// CHECK-NEXT:   graph.require n == 1 or n == 4  by graph.add
func.func @required(%x: tensor<?xf32, #graph.shape<["n"]>>) {
  "graph.require"() {any_of = ["n == 1", "n == 4"], by = "graph.add"} : () -> ()
  return
}

// What cannot be read as a shape is shown as it is written.
// CHECK:      func private @malformed(tensor<?xf32, #graph.shape<["n +"]>>, shape<n, 4>, tensor<? x 4 x f32>)
func.func private @malformed(tensor<?xf32, #graph.shape<["n +"]>>, !graph.shape_value<["n", 4]>, tensor<?x4xf32>)
