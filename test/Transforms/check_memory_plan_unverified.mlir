// RUN: relax-opt %s --relax-check-memory-plan | FileCheck %s

// The pass takes what relax-verify has not seen: operand 1 is none.
// CHECK-LABEL: func.func @no_such_operand
func.func @no_such_operand(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "graph.call_tir_inplace"(%x) {callee = @k, inplace_indices = array<i64: 1>, sym_args = #graph.shape<[]>, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
