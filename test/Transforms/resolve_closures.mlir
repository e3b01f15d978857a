// RUN: relax-opt %s --split-input-file --relax-resolve-closures --pretty | FileCheck %s

#in0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!x = tensor<?xf32, #graph.shape<["n"]>>
!k = tensor<?xf32, #graph.shape<["k"]>>
!f = (!x) -> !x
!g = (!x, !x) -> !x

func.func private @scaled(%w: !k, %x: !k) -> !k {
  %0 = "graph.multiply"(%w, %x) : (!k, !k) -> !k
  return %0 : !k
}

// A copy for what it is called with, which takes what that captures; its dims are its own symbols.
// CHECK-LABEL: func private @twice_scaled(
// CHECK-SAME:    %[[W:.*]]: tensor<c x f32>, %[[X:.*]]: tensor<n x f32>)
// CHECK-NEXT:    %[[ONCE:.*]] = graph.call @scaled(%[[W]], %[[X]])
// CHECK-NEXT:    %[[TWICE:.*]] = graph.call @scaled(%[[W]], %[[ONCE]])
// CHECK-NEXT:    return %[[TWICE]]
func.func private @twice(%f: !f, %x: !x) -> !x attributes {graph.noinline} {
  %0 = "graph.invoke_closure"(%f, %x) {operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!f, !x) -> !x
  %1 = "graph.invoke_closure"(%f, %0) {operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!f, !x) -> !x
  return %1 : !x
}

// CHECK-LABEL: func @passed(
// CHECK-SAME:    %[[X:.*]]: tensor<n x f32>, %[[W:.*]]: tensor<n x f32>)
// CHECK-NEXT:    %[[R:.*]] = graph.call @twice_scaled(%[[W]], %[[X]])
// CHECK-NEXT:    return %[[R]]
func.func @passed(%x: !x, %w: !x) -> !x {
  %f = "graph.make_closure"(%w) {callee = @scaled, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!x) -> (!f)
  %0 = "graph.call"(%f, %x) {callee = @twice, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!f, !x) -> !x
  return %0 : !x
}

// -----

#in0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!x = tensor<?xf32, #graph.shape<["n"]>>
!k = tensor<?xf32, #graph.shape<["k"]>>
!f = (!x) -> !x
!g = (!x, !x) -> !x

func.func private @scaled(%w: !k, %x: !k) -> !k {
  %0 = "graph.multiply"(%w, %x) : (!k, !k) -> !k
  return %0 : !k
}

// What returns a function is inlined.
// CHECK-NOT: @curried
func.func private @curried(%w: !x) -> (!f) attributes {graph.noinline} {
  %f = "graph.make_closure"(%w) {callee = @scaled, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!x) -> (!f)
  return %f : !f
}

// CHECK-LABEL: func @returned(
// CHECK-SAME:    %[[X:.*]]: tensor<n x f32>)
// CHECK-NEXT:    %[[R:.*]] = graph.call @scaled(%[[X]], %[[X]])
// CHECK-NEXT:    return %[[R]]
func.func @returned(%x: !x) -> !x {
  %f = "graph.call"(%x) {callee = @curried, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!x) -> (!f)
  %0 = "graph.invoke_closure"(%f, %x) {operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!f, !x) -> !x
  return %0 : !x
}

// -----

#in0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!x = tensor<?xf32, #graph.shape<["n"]>>
!k = tensor<?xf32, #graph.shape<["k"]>>
!f = (!x) -> !x
!g = (!x, !x) -> !x

func.func private @scaled(%w: !k, %x: !k) -> !k {
  %0 = "graph.multiply"(%w, %x) : (!k, !k) -> !k
  return %0 : !k
}

// A branch yields an index of the function that it selects; what makes it is moved in front.
// CHECK-LABEL: func @selected(
// CHECK-SAME:    %[[X:.*]]: tensor<n x f32>, %[[W:.*]]: tensor<n x f32>, %[[C:.*]]: i1)
// CHECK-NEXT:    %[[I:.*]] = scf.if(%[[C]]) : index {
// CHECK:         %[[R:.*]] = scf.index_switch(%[[I]]) {cases=array<i64: 0>} : tensor<n x f32> {
// CHECK-NEXT:      graph.call @scaled(%[[X]], %[[X]])
// CHECK:           graph.call @scaled(%[[W]], %[[X]])
// CHECK:         return %[[R]]
func.func @selected(%x: !x, %w: !x, %c: i1) -> !x {
  %h = scf.if %c -> (!f) {
    %f = "graph.make_closure"(%w) {callee = @scaled, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!x) -> (!f)
    scf.yield %f : !f
  } else {
    %g = "graph.make_closure"(%x) {callee = @scaled, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!x) -> (!f)
    scf.yield %g : !f
  }
  %0 = "graph.invoke_closure"(%h, %x) {operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!f, !x) -> !x
  return %0 : !x
}

// A loop carries the index of a function: of any that the next round may have.
// CHECK-LABEL: func @carried(
// CHECK-SAME:    %[[X:.*]]: tensor<n x f32>, %[[W:.*]]: tensor<n x f32>,
// CHECK-COUNT-2: constant 1 : index
// CHECK-NEXT:    scf.for({{.*}}, %[[X]]) : index, tensor<n x f32>
// CHECK:           %[[R:.*]] = scf.index_switch(%[[I:.*]]) {cases=array<i64: 0>} : tensor<n x f32> {
// CHECK-NEXT:        graph.call @scaled(%[[W]],
// CHECK:             graph.call @scaled(%[[X]],
// CHECK:           %[[NEXT:.*]] = constant 0 : index
// CHECK:           scf.yield(%[[NEXT]], %[[R]])
func.func @carried(%x: !x, %w: !x, %k: index) -> !x {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %f = "graph.make_closure"(%w) {callee = @scaled, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!x) -> !graph.callable
  %l:2 = scf.for %i = %zero to %k step %one iter_args(%a = %f, %s = %x) -> (!graph.callable, !x) {
    %0 = "graph.invoke_closure"(%a, %s) {operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!graph.callable, !x) -> !x
    %g = "graph.make_closure"(%x) {callee = @scaled, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!x) -> !graph.callable
    scf.yield %g, %0 : !graph.callable, !x
  }
  return %l#1 : !x
}
