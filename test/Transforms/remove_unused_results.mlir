// RUN: relax-opt %s --split-input-file --relax-remove-unused-results --pretty | FileCheck %s

#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>
!n = tensor<?xf32, #graph.shape<["n"]>>

// Nothing uses the first result of f, so neither that of g, which it is.
// CHECK-LABEL: func @main(
// CHECK-NEXT:    %0 = graph.call @f(%arg0) : tensor<n x f32>
// CHECK-NEXT:    return %0
// CHECK-LABEL: func private @f(%arg0: tensor<n x f32>) -> tensor<n x f32>
// CHECK-NEXT:    %0 = graph.call @g(%arg0) : tensor<n x f32>
// CHECK-NEXT:    return %0
// CHECK-LABEL: func private @g(%arg0: tensor<n x f32>) -> tensor<n x f32>
// CHECK-NEXT:    %0 = graph.negative(%arg0)
// CHECK-NEXT:    return %0
func.func @main(%x: !n) -> !n {
  %0, %1 = "graph.call"(%x) {callee = @f, operandSegmentSizes = #in1, resultSegmentSizes = #out2} : (!n) -> (!n, !n)
  return %1 : !n
}
func.func private @f(%x: !n) -> (!n, !n) {
  %0, %1 = "graph.call"(%x) {callee = @g, operandSegmentSizes = #in1, resultSegmentSizes = #out2} : (!n) -> (!n, !n)
  return %0, %1 : !n, !n
}
func.func private @g(%x: !n) -> (!n, !n) {
  %0 = "graph.exp"(%x) : (!n) -> !n
  %1 = "graph.negative"(%x) : (!n) -> !n
  return %0, %1 : !n, !n
}

// -----

#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>
!n = tensor<?xf32, #graph.shape<["n"]>>

// Each result of f is used by some call; what is public stays.
// CHECK-LABEL: func @negative_used(
// CHECK-NEXT:    %0, %1 = graph.call @f(%arg0)
// CHECK-NEXT:    %2, %3 = graph.call @f(%1)
// CHECK-NEXT:    %4, %5 = graph.call @negative_public(%2)
func.func @negative_used(%x: !n) -> !n {
  %0, %1 = "graph.call"(%x) {callee = @f, operandSegmentSizes = #in1, resultSegmentSizes = #out2} : (!n) -> (!n, !n)
  %2, %3 = "graph.call"(%1) {callee = @f, operandSegmentSizes = #in1, resultSegmentSizes = #out2} : (!n) -> (!n, !n)
  %4, %5 = "graph.call"(%2) {callee = @negative_public, operandSegmentSizes = #in1, resultSegmentSizes = #out2} : (!n) -> (!n, !n)
  return %4 : !n
}
func.func private @f(%x: !n) -> (!n, !n) {
  %0 = "graph.exp"(%x) : (!n) -> !n
  return %0, %x : !n, !n
}
func.func @negative_public(%x: !n) -> (!n, !n) {
  return %x, %x : !n, !n
}

// -----

#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>
!c = tensor<8xf32>

// An argument that is updated in place is told the new number of its result, and stays.
// CHECK-LABEL: func @updates(
// CHECK-NEXT:    %0 = graph.call @update(%arg0, %arg1) : tensor<8 x f32>
// CHECK-LABEL: func private @update(
// CHECK-NEXT:    %0 = graph.add(%arg0, %arg1)
// CHECK-NEXT:    return %0
func.func @updates(%c: !c, %x: !c) -> !c {
  %0, %1 = "graph.call"(%c, %x) {callee = @update, operandSegmentSizes = #in2, resultSegmentSizes = #out2} : (!c, !c) -> (!c, !c)
  return %c : !c
}
func.func private @update(%c: !c {graph.inout = 1 : i64}, %x: !c) -> (!c, !c) attributes {graph.noinline} {
  %0 = "graph.exp"(%x) : (!c) -> !c
  %1 = "graph.add"(%c, %x) : (!c, !c) -> !c
  return %0, %1 : !c, !c
}
