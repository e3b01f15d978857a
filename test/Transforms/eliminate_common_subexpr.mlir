// RUN: relax-opt %s --split-input-file --relax-eliminate-common-subexpr --pretty | FileCheck %s

!n = tensor<?xf32, #graph.shape<["n"]>>

// CHECK-LABEL: func @twice(
// CHECK-NEXT:    %0 = graph.exp(%arg0)
// CHECK-NEXT:    %1 = graph.add(%0, %arg0)
// CHECK-NEXT:    %2 = graph.multiply(%1, %1)
// CHECK-NEXT:    return %2
func.func @twice(%x: !n) -> !n {
  %0 = "graph.exp"(%x) : (!n) -> !n
  %1 = "graph.add"(%0, %x) : (!n, !n) -> !n
  %2 = "graph.exp"(%x) : (!n) -> !n
  %3 = "graph.add"(%2, %x) : (!n, !n) -> !n
  %4 = "graph.multiply"(%1, %3) : (!n, !n) -> !n
  return %4 : !n
}

// Other attributes, and operands in another order, are other ops.
// CHECK-LABEL: func @negative_other(
// CHECK-COUNT-2: graph.sum
// CHECK-COUNT-2: graph.subtract
func.func @negative_other(%x: tensor<4x4xf32>, %y: !n) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "graph.sum"(%x) {axes = array<i64: 0>, keepdims = false} : (tensor<4x4xf32>) -> tensor<4xf32>
  %1 = "graph.sum"(%x) {axes = array<i64: 1>, keepdims = false} : (tensor<4x4xf32>) -> tensor<4xf32>
  %2 = "graph.subtract"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = "graph.subtract"(%1, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2, %3 : tensor<4xf32>, tensor<4xf32>
}

// -----

!u = tensor<?xf32>
!k = tensor<?xf32, #graph.shape<["k"]>>

// A cast changes no value; what follows keeps its annotation.
// CHECK-LABEL: func @casts(
// CHECK-NEXT:    %0 = graph.exp(%arg0) : tensor<? x f32>
// CHECK-NEXT:    %1 = graph.match_cast(%arg0) : tensor<k x f32>
// CHECK-NEXT:    %2 = graph.match_cast(%0) : tensor<k x f32>
// CHECK-NEXT:    %3 = graph.add(%2, %1) : tensor<k x f32>
// CHECK-NEXT:    return %0, %3
func.func @casts(%x: !u) -> (!u, !k) {
  %0 = "graph.exp"(%x) : (!u) -> !u
  %1 = "graph.match_cast"(%x) : (!u) -> !k
  %2 = "graph.exp"(%1) : (!k) -> !k
  %3 = "graph.match_cast"(%x) : (!u) -> !k
  %4 = "graph.add"(%2, %3) : (!k, !k) -> !k
  return %0, %4 : !u, !k
}

// -----

!n = tensor<?xf32, #graph.shape<["n"]>>

// A region sees what is before it; nothing outside sees what is in it.
// CHECK-LABEL: func @regions(
// CHECK-NEXT:    %0 = graph.exp(%arg1)
// CHECK-NEXT:    %1 = scf.if(%arg0) : tensor<n x f32> {
// CHECK-NEXT:      %2 = graph.negative(%0)
// CHECK-NEXT:      scf.yield(%2)
// CHECK-NEXT:    } {
// CHECK-NEXT:      %3 = graph.negative(%arg1)
// CHECK-NEXT:      scf.yield(%3)
// CHECK-NEXT:    }
// CHECK-NEXT:    %4 = graph.negative(%0)
func.func @regions(%c: i1, %x: !n) -> (!n, !n) {
  %0 = "graph.exp"(%x) : (!n) -> !n
  %1 = scf.if %c -> !n {
    %3 = "graph.exp"(%x) : (!n) -> !n
    %4 = "graph.negative"(%3) : (!n) -> !n
    scf.yield %4 : !n
  } else {
    %3 = "graph.negative"(%x) : (!n) -> !n
    scf.yield %3 : !n
  }
  %2 = "graph.negative"(%0) : (!n) -> !n
  return %1, %2 : !n, !n
}

// -----

#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>
!n = tensor<?xf32, #graph.shape<["n"]>>

// Calls of one function with the same arguments.
// CHECK-LABEL: func @calls(
// CHECK-NEXT:    %0 = graph.call @f(%arg0)
// CHECK-NEXT:    %1 = graph.add(%0, %0)
func.func @calls(%x: !n) -> !n {
  %0 = "graph.call"(%x) {callee = @f, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  %1 = "graph.call"(%x) {callee = @f, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  %2 = "graph.add"(%0, %1) : (!n, !n) -> !n
  return %2 : !n
}
func.func private @f(%x: !n) -> !n {
  %0 = "graph.exp"(%x) : (!n) -> !n
  return %0 : !n
}

// A function that prints, or calls one that does, is called as often as it was.
// CHECK-LABEL: func @negative_effects(
// CHECK-NEXT:    graph.call @outer(%arg0)
// CHECK-NEXT:    graph.call @outer(%arg0)
// CHECK-LABEL: func private @outer(
func.func @negative_effects(%x: !n) -> (!n, !n) {
  %0 = "graph.call"(%x) {callee = @outer, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  %1 = "graph.call"(%x) {callee = @outer, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  return %0, %1 : !n, !n
}
func.func private @outer(%x: !n) -> !n {
  %0 = "graph.call"(%x) {callee = @prints, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  return %0 : !n
}
func.func private @prints(%x: !n) -> !n {
  "graph.print"(%x) {format = "{}", operandSegmentSizes = #in1, resultSegmentSizes = #out0} : (!n) -> ()
  return %x : !n
}

// What refuses a call does so the first time; a recursion is called once.
// CHECK-LABEL: func @refusals(
// CHECK-NEXT:    %0 = graph.call @falls(%arg0, %arg1)
// CHECK-NEXT:    return %0, %0
func.func @refusals(%x: !n, %k: index) -> (!n, !n) {
  %0 = "graph.call"(%x, %k) {callee = @falls, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!n, index) -> !n
  %1 = "graph.call"(%x, %k) {callee = @falls, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!n, index) -> !n
  return %0, %1 : !n, !n
}
func.func private @falls(%x: !n, %k: index) -> !n {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %c = arith.cmpi sgt, %k, %zero : index
  %r = scf.if %c -> !n {
    %less = arith.subi %k, %one : index
    "graph.assert"(%c) {format = "never", operandSegmentSizes = #in1, resultSegmentSizes = #out0} : (i1) -> ()
    %0 = "graph.call"(%x, %less) {callee = @falls, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!n, index) -> !n
    scf.yield %0 : !n
  } else {
    scf.yield %x : !n
  }
  return %r : !n
}
