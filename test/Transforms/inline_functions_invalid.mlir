// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-inline-functions

#in1  = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
func.func @negative_recursion(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "graph.call"(%x) {callee = @other, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @other(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'graph.call' op calls '@negative_recursion' recursively, which cannot be inlined}}
  %0 = "graph.call"(%x) {callee = @negative_recursion, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
