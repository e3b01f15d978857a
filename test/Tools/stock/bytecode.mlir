// Bytecode of tensor programs and constants, read by a tool that knows our dialects from their IRDL, or not at all.
// RUN: relax-opt %s -o %t.mlir --relax-infer-shapes --relax-legalize-ops
// RUN: relax-opt %t.mlir --emit-bytecode -o %t.bc
// RUN: cat %ROOT/dialects/irdl/graph.mlir %ROOT/dialects/irdl/lib.mlir %ROOT/dialects/irdl/tir.mlir > %t.irdl

// RUN: bindings-opt --irdl-file=%t.irdl %t.bc -o %t.read.mlir
// RUN: relax-opt %t.read.mlir | diff - %t.mlir
// RUN: not bindings-opt %t.bc 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: attribute created with unregistered dialect

// RUN: FileCheck %s < %t.read.mlir
// CHECK: func.func @main
// CHECK: dense_resource<weights>
// CHECK: graph.call_tir
// CHECK: linalg.generic
// CHECK: weights: "0x

!x = tensor<?x4xf32, #graph.shape<["n", 4]>>
func.func @main(%x: !x {graph.name = "x"}) -> !x attributes {graph.facts = ["n <= 100"]} {
  %w = arith.constant dense_resource<weights> : tensor<4xf32>
  %0 = "graph.add"(%x, %w) : (!x, tensor<4xf32>) -> !x
  %1 = "graph.nn_silu"(%0) : (!x) -> !x
  return %1 : !x
}

{-#
  dialect_resources: {
    builtin: {
      weights: "0x080000000000803F0000004000004040000080C0"
    }
  }
#-}
