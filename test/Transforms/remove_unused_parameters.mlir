// RUN: relax-opt %s --split-input-file --relax-remove-unused-parameters --pretty | FileCheck %s

#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!n = tensor<?xf32, #graph.shape<["n"]>>
!m = tensor<?xf32, #graph.shape<["m"]>>

// f only passes on what g does not use.
// CHECK-LABEL: func @main(
// CHECK-NEXT:    %0 = graph.call @f(%arg1) : tensor<m x f32>
// CHECK-LABEL: func private @f(%arg0: tensor<n x f32>)
// CHECK-NEXT:    %0 = graph.call @g(%arg0) : tensor<n x f32>
// CHECK-LABEL: func private @g(%arg0: tensor<n x f32>)
func.func @main(%x: !n, %y: !m) -> !m {
  %0 = "graph.call"(%x, %y) {callee = @f, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!n, !m) -> !m
  return %0 : !m
}
func.func private @f(%x: !m, %y: !n) -> !n {
  %0 = "graph.call"(%x, %y) {callee = @g, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!m, !n) -> !n
  return %0 : !n
}
func.func private @g(%x: !m, %y: !n) -> !n {
  %0 = "graph.exp"(%y) : (!n) -> !n
  return %0 : !n
}

// -----

#in3 = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!n = tensor<?xf32, #graph.shape<["n"]>>
!m = tensor<?xf32, #graph.shape<["m"]>>
!k = tensor<?xf32, #graph.shape<["k"]>>

// What shows a symbol that the body uses stays, and so does what has to be as long as another
// argument, where that is not known.
// CHECK-LABEL: func @negative_needed(
// CHECK-NEXT:    graph.call @f(%arg0, %arg1, %arg2)
// CHECK-NEXT:    graph.call @f(%arg0, %arg1, %arg1)
func.func @negative_needed(%x: !n, %y: !m, %z: !k) -> (!n, !n) {
  %0 = "graph.call"(%x, %y, %z) {callee = @f, operandSegmentSizes = #in3, resultSegmentSizes = #out1} : (!n, !m, !k) -> !n
  %1 = "graph.call"(%x, %y, %y) {callee = @f, operandSegmentSizes = #in3, resultSegmentSizes = #out1} : (!n, !m, !m) -> !n
  return %0, %1 : !n, !n
}
func.func private @f(%x: !n, %y: !m, %z: !m) -> !n {
  %one = arith.constant dense<1.0> : tensor<f32>
  %0 = "graph.full"(%one) {shape = #graph.shape<["m"]>} : (tensor<f32>) -> !m
  %1 = "graph.sum"(%0) {axes = array<i64: 0>, keepdims = false} : (!m) -> tensor<f32>
  %2 = "graph.add"(%x, %1) : (!n, tensor<f32>) -> !n
  return %2 : !n
}

// -----

#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!k = tensor<?xf32, #graph.shape<["k"]>>
!k5 = tensor<?xf32, #graph.shape<["k + 5"]>>
!m = tensor<?xf32, #graph.shape<["m"]>>
!n3 = tensor<?xf32, #graph.shape<["n + 3"]>>

// Of fewer than 3 elements, a call is refused.
// CHECK-LABEL: func @negative_may_be_short(
// CHECK-NEXT:    graph.call @f(%arg0, %arg1)
func.func @negative_may_be_short(%x: !k, %y: !m) -> !m {
  %0 = "graph.call"(%x, %y) {callee = @f, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!k, !m) -> !m
  return %0 : !m
}
func.func private @f(%x: !n3, %y: !m) -> !m {
  %0 = "graph.exp"(%y) : (!m) -> !m
  return %0 : !m
}
// CHECK-LABEL: func @is_long(
// CHECK-NEXT:    graph.call @g(%arg1)
func.func @is_long(%x: !k5, %y: !m) -> !m {
  %0 = "graph.call"(%x, %y) {callee = @g, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!k5, !m) -> !m
  return %0 : !m
}
func.func private @g(%x: !n3, %y: !m) -> !m {
  %0 = "graph.exp"(%y) : (!m) -> !m
  return %0 : !m
}
