// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-inline-functions{max-ops=1})' --pretty | FileCheck %s

// What is called twice and large is called; what is small, called once, or of unknown dims is not.
// CHECK-LABEL: func @main(
// CHECK-NEXT:    graph.call @large(
// CHECK-NEXT:    graph.call @large(
// CHECK-NEXT:    graph.exp(
// CHECK-NEXT:    graph.exp(
// CHECK-NEXT:    graph.negative(
// CHECK-NEXT:    graph.negative(
// CHECK-NEXT:    graph.negative(
// CHECK:         graph.abs(
// CHECK:         graph.abs(
// CHECK-LABEL: func private @large(
// CHECK-SAME:    graph.noinline
// CHECK-NOT:   func private
!n = tensor<?xf32, #graph.shape<["n"]>>
func.func @main(%x: !n) -> tensor<?xf32> {
  %0 = "graph.call"(%x) {callee = @large, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (!n) -> !n
  %1 = "graph.call"(%0) {callee = @large, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (!n) -> !n
  %2 = "graph.call"(%1) {callee = @small, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (!n) -> !n
  %3 = "graph.call"(%2) {callee = @small, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (!n) -> !n
  %4 = "graph.call"(%3) {callee = @once, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (!n) -> !n
  %5 = "graph.call"(%4) {callee = @unknown, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (!n) -> tensor<?xf32>
  %6 = "graph.call"(%4) {callee = @unknown, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (!n) -> tensor<?xf32>
  return %6 : tensor<?xf32>
}
func.func private @large(%x: !n) -> !n {
  %0 = "graph.exp"(%x) : (!n) -> !n
  %1 = "graph.exp"(%0) : (!n) -> !n
  return %1 : !n
}
func.func private @small(%x: !n) -> !n {
  %0 = "graph.exp"(%x) : (!n) -> !n
  return %0 : !n
}
func.func private @once(%x: !n) -> !n {
  %0 = "graph.negative"(%x) : (!n) -> !n
  %1 = "graph.negative"(%0) : (!n) -> !n
  %2 = "graph.negative"(%1) : (!n) -> !n
  return %2 : !n
}
func.func private @unknown(%x: !n) -> tensor<?xf32> {
  %0 = "graph.abs"(%x) : (!n) -> !n
  %1 = "graph.match_cast"(%0) : (!n) -> tensor<?xf32>
  return %1 : tensor<?xf32>
}
