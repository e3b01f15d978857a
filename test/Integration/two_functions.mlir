// RUN: relax-compile %s --emit=mlir-inline-functions | FileCheck %s

// Two entry functions that share a graph function and a weight's shape.

!x = tensor<?x5xf64, #graph.shape<["n", 5]>>
!s = tensor<?x5xf64, #graph.shape<["k", 5]>>
#two_ins = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#one_out = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>

func.func private @scaled(%x: !s, %w: tensor<5xf64>) -> !s {
  %0 = "graph.multiply"(%x, %w) : (!s, tensor<5xf64>) -> !s
  return %0 : !s
}

func.func @once(%x: !x {graph.name = "x"}, %w: tensor<5xf64> {graph.name = "w"}) -> !x {
  %0 = "graph.call"(%x, %w) {callee = @scaled, operandSegmentSizes = #two_ins, resultSegmentSizes = #one_out}
      : (!x, tensor<5xf64>) -> !x
  return %0 : !x
}

func.func @twice(%x: !x {graph.name = "x"}, %w: tensor<5xf64> {graph.name = "w"}) -> !x {
  %0 = "graph.call"(%x, %w) {callee = @scaled, operandSegmentSizes = #two_ins, resultSegmentSizes = #one_out}
      : (!x, tensor<5xf64>) -> !x
  %1 = "graph.call"(%0, %w) {callee = @scaled, operandSegmentSizes = #two_ins, resultSegmentSizes = #one_out}
      : (!x, tensor<5xf64>) -> !x
  return %1 : !x
}

// CHECK-LABEL:   func.func @once
// CHECK-COUNT-1:   "graph.multiply"
// CHECK-NEXT:      return
// CHECK-LABEL:   func.func @twice
// CHECK-COUNT-2:   "graph.multiply"
// CHECK-NEXT:      return
// CHECK-NOT:     graph.call
