// RUN: relax-opt %s --split-input-file --relax-dead-code-elimination --pretty | FileCheck %s

!n = tensor<?xf32, #graph.shape<["n"]>>
!m = tensor<?xf32, #graph.shape<["m"]>>

// CHECK-LABEL: func @unused(
// CHECK-NEXT:    %0 = graph.negative(%arg1)
// CHECK-NEXT:    return %0
func.func @unused(%c: i1, %x: !n) -> !n {
  %one = arith.constant dense<1.0> : tensor<f32>
  %0 = "graph.exp"(%x) : (!n) -> !n
  %1 = "graph.add"(%0, %one) : (!n, tensor<f32>) -> !n
  %2 = "graph.negative"(%x) : (!n) -> !n
  %3 = scf.if %c -> !n {
    %4 = "graph.exp"(%1) : (!n) -> !n
    scf.yield %4 : !n
  } else {
    scf.yield %2 : !n
  }
  return %2 : !n
}

// What may be refused stays: an operator whose dims need not agree, a cast, a requirement.
// CHECK-LABEL: func @negative_refused(
// CHECK-NEXT:    graph.add(%arg0, %arg1)
// CHECK-NEXT:    graph.match_cast
// CHECK-NEXT:    graph.require
// CHECK-NEXT:    graph.tensor_to_shape
// CHECK-NEXT:    return %arg0
func.func @negative_refused(%x: !n, %y: !m, %z: tensor<1xi64>) -> !n {
  %0 = "graph.add"(%x, %y) : (!n, !m) -> !n
  %1 = "graph.match_cast"(%y) : (!m) -> tensor<7xf32>
  "graph.require"() {any_of = ["n <= m"], by = "test"} : () -> ()
  %2 = "graph.tensor_to_shape"(%z) : (tensor<1xi64>) -> !graph.shape_value<["?"]>
  return %x : !n
}

// With the fact that they agree it goes.
// CHECK-LABEL: func @stated(
// CHECK-NEXT:    return %arg0
func.func @stated(%x: !n, %y: !m) -> !n attributes {graph.facts = ["m == n"]} {
  %0 = "graph.add"(%x, %y) : (!n, !m) -> !n
  return %x : !n
}

// A branch whose results are used keeps what they need, and nothing else.
// CHECK-LABEL: func @inside(
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      graph.exp
// CHECK-NEXT:      scf.yield
func.func @inside(%c: i1, %x: !n) -> !n {
  %0 = scf.if %c -> !n {
    %1 = "graph.exp"(%x) : (!n) -> !n
    %2 = "graph.negative"(%1) : (!n) -> !n
    scf.yield %1 : !n
  } else {
    scf.yield %x : !n
  }
  return %0 : !n
}

// -----

#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!n = tensor<?xf32, #graph.shape<["n"]>>

// A call of a function that holds a cast may be refused, one of a pure function may not.
// CHECK-LABEL: func @calls(
// CHECK-NEXT:    %0 = graph.call @casts(%arg0)
// CHECK-NEXT:    return %arg0
// CHECK:       func private @casts(
// CHECK-NOT:   func private @pure(
// CHECK-NOT:   func private @unreached(
func.func @calls(%x: !n) -> !n {
  %0 = "graph.call"(%x) {callee = @casts, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> tensor<7xf32>
  %1 = "graph.call"(%x) {callee = @pure, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  return %x : !n
}
func.func private @casts(%x: !n) -> tensor<7xf32> {
  %0 = "graph.match_cast"(%x) : (!n) -> tensor<7xf32>
  return %0 : tensor<7xf32>
}
func.func private @pure(%x: !n) -> !n {
  %0 = "graph.exp"(%x) : (!n) -> !n
  return %0 : !n
}
func.func private @unreached(%x: !n) -> !n {
  %0 = "graph.call"(%x) {callee = @pure, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  return %0 : !n
}
