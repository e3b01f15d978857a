// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-resolve-kinds

#in0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
func.func @negative_other_tuple(%k: index) {
  %0 = "graph.tuple"(%k, %k) {operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (index, index) -> tuple<index, index>
  %1 = "graph.match_cast"(%0) : (tuple<index, index>) -> !graph.any_tuple
  // expected-error @below {{'graph.match_cast' op asserts 'tuple<index>', which 'tuple<index, index>' can never be}}
  %2 = "graph.match_cast"(%1) : (!graph.any_tuple) -> tuple<index>
  return
}

// -----

func.func @negative_other_elements(%x: tensor<4xf32>) {
  %0 = "graph.match_cast"(%x) : (tensor<4xf32>) -> tensor<4x!graph.any_element>
  // expected-error @below {{'graph.match_cast' op asserts 'tensor<4xf64>', which 'tensor<4xf32>' can never be}}
  %1 = "graph.match_cast"(%0) : (tensor<4x!graph.any_element>) -> tensor<4xf64>
  return
}

// -----

#in0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
func.func @negative_arguments(%x: tensor<4xf32>, %k: index) {
  %f = "graph.make_closure"() {callee = @same, operandSegmentSizes = #in0, resultSegmentSizes = #out1} : () -> !graph.callable
  // expected-error @below {{'graph.invoke_closure' op has 2 operands and 1 results, but the function takes 1 and returns 1}}
  %0 = "graph.invoke_closure"(%f, %x, %k) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = #out1} : (!graph.callable, tensor<4xf32>, index) -> !graph.object
  return
}
func.func private @same(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

#in0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
func.func @negative_kind_of_argument(%k: index) {
  %f = "graph.make_closure"() {callee = @same, operandSegmentSizes = #in0, resultSegmentSizes = #out1} : () -> !graph.callable
  // expected-error @below {{'graph.invoke_closure' op passes operand 0, which is 'index' instead of 'tensor<4xf32>'}}
  %0 = "graph.invoke_closure"(%f, %k) {operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!graph.callable, index) -> !graph.object
  return
}
func.func private @same(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

#in0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
func.func @negative_result(%x: tensor<4xf32>) {
  %t = "graph.tuple"(%x) {operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tuple<tensor<4xf32>>
  // expected-error @below {{'graph.call' op has a result '!graph.callable', which is 'tuple<tensor<?xf32>>'}}
  %0 = "graph.call"(%t) {callee = @any, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tuple<tensor<4xf32>>) -> !graph.callable
  return
}
func.func private @any(%x: !graph.object) -> !graph.object {
  return %x : !graph.object
}

// -----

// Each call passes a tuple of what it got.
#in0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
func.func @negative_ever_new_kinds(%k: index) {
  %t = "graph.tuple"(%k) {operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (index) -> tuple<index>
  %0 = "graph.call"(%t) {callee = @nested, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tuple<index>) -> !graph.object
  return
}
func.func private @nested(%x: !graph.object) -> !graph.object {
  %t = "graph.tuple"(%x) {operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!graph.object) -> tuple<!graph.object>
  // expected-error @below {{'graph.call' op calls '@nested}}
  %0 = "graph.call"(%t) {callee = @nested, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tuple<!graph.object>) -> !graph.object
  return %0 : !graph.object
}
