// RUN: relax-opt %s --split-input-file --relax-flatten-tuples | FileCheck %s
// RUN: relax-opt %s --split-input-file --relax-dead-code-elimination | FileCheck %s --check-prefix=AUTO

// Arguments become their elements, in place if the tuple is; users keep what they pass.
// CHECK-LABEL: func.func @arguments
// CHECK-SAME:    (%[[X:.*]]: f32, %[[A:.*]]: tensor<4xf32> {graph.inout = 1 : i64, graph.name = "t.0"}, %[[B:.*]]: tensor<5xi32> {graph.inout = 2 : i64, graph.name = "t.1.0"}, %[[Y:.*]]: index)
// CHECK-SAME:    -> (f32, tensor<4xf32>, tensor<5xi32>)
// CHECK-SAME:    graph.argument_tree = [0, [1, [2]], 3], graph.num_inputs = 3 : i64, graph.result_tree = [0, [1, [2]]]
// CHECK-NEXT:    return %[[X]], %[[A]], %[[B]] : f32, tensor<4xf32>, tensor<5xi32>
// AUTO-LABEL: func.func @arguments
// AUTO-NEXT:     return %{{.*}}, %{{.*}}, %{{.*}} : f32, tensor<4xf32>, tensor<5xi32>
!t = tuple<tensor<4xf32>, tuple<tensor<5xi32>>>
func.func @arguments(%x: f32, %t: !t {graph.inout = 1 : i64, graph.name = "t"}, %y: index) -> (f32, !t)
    attributes {graph.num_inputs = 2 : i64} {
  %0 = "graph.tuple_get"(%t) {index = 0 : i64} : (!t) -> tensor<4xf32>
  %1 = "graph.tuple_get"(%t) {index = 1 : i64} : (!t) -> tuple<tensor<5xi32>>
  %2 = "graph.tuple"(%0, %1) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf32>, tuple<tensor<5xi32>>) -> !t
  return %x, %2 : f32, !t
}

// -----

// Private functions have no users to remember; a call passes elements, and gets them.
// CHECK-LABEL: func.func @calls
// CHECK-NEXT:    %[[R:.*]]:2 = "graph.call"(%arg1, %arg0, %arg0) {{.*}} : (index, f32, f32) -> (index, f32)
// CHECK-NEXT:    return %[[R]]#0 : index
// CHECK-LABEL: func.func private @callee(%arg0: index, %arg1: f32, %arg2: f32) -> (index, f32) {
// CHECK-NEXT:    return %arg0, %arg2 : index, f32
!p = tuple<f32, f32>
!r = tuple<index, tuple<f32>>
func.func @calls(%x: f32, %k: index) -> index {
  %0 = "graph.tuple"(%x, %x) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32, f32) -> !p
  %1 = "graph.call"(%k, %0) {callee = @callee, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (index, !p) -> !r
  %2 = "graph.tuple_get"(%1) {index = 0 : i64} : (!r) -> index
  return %2 : index
}
func.func private @callee(%k: index, %p: !p) -> !r {
  %0 = "graph.tuple_get"(%p) {index = 1 : i64} : (!p) -> f32
  %1 = "graph.tuple"(%0) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> tuple<f32>
  %2 = "graph.tuple"(%k, %1) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (index, tuple<f32>) -> !r
  return %2 : !r
}

// -----

// Loops carry, and branches yield, elements; what holds no tuple stays.
// CHECK-LABEL: func.func @control
// CHECK:         %[[F:.*]]:3 = scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}, %[[C:.*]] = %{{.*}}) -> (f32, index, f32) {
// CHECK:           %[[I:.*]]:2 = scf.if %{{.*}} -> (index, f32) {
// CHECK-NEXT:        scf.yield %[[B]], %[[C]] : index, f32
// CHECK-NEXT:      } else {
// CHECK-NEXT:        scf.yield %[[B]], %[[A]] : index, f32
// CHECK:           scf.yield %[[A]], %[[I]]#0, %[[I]]#1 : f32, index, f32
// CHECK:         %[[W:.*]]:2 = scf.while (%{{.*}} = %[[F]]#1, %{{.*}} = %[[F]]#2) : (index, f32) -> (index, f32) {
// CHECK:           scf.condition(%{{.*}}) %{{.*}}, %{{.*}} : index, f32
// CHECK:         ^bb0(%[[J:.*]]: index, %[[D:.*]]: f32):
// CHECK-NEXT:      scf.yield %[[J]], %[[D]] : index, f32
// CHECK:         return %[[W]]#1 : f32
!s = tuple<index, f32>
func.func @control(%t: !s, %x: f32, %c: i1, %k: index) -> f32 {
  %0:2 = scf.for %i = %k to %k step %k iter_args(%a = %x, %b = %t) -> (f32, !s) {
    %1 = scf.if %c -> !s {
      scf.yield %b : !s
    } else {
      %2 = "graph.tuple_get"(%b) {index = 0 : i64} : (!s) -> index
      %3 = "graph.tuple"(%2, %a) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (index, f32) -> !s
      scf.yield %3 : !s
    }
    scf.yield %a, %1 : f32, !s
  }
  %4 = scf.while (%a = %0#1) : (!s) -> !s {
    scf.condition(%c) %a : !s
  } do {
  ^bb(%a: !s):
    scf.yield %a : !s
  }
  %5 = "graph.tuple_get"(%4) {index = 1 : i64} : (!s) -> f32
  return %5 : f32
}

// -----

// CHECK-LABEL: func.func @negative_no_tuple(%arg0: f32) -> f32 {
// CHECK-NEXT:    return %arg0 : f32
func.func @negative_no_tuple(%x: f32) -> f32 {
  return %x : f32
}

// -----

// A cast of a tuple is one of each element; those that bind symbols by themselves come first.
// CHECK-LABEL: func.func @cast
// CHECK-SAME:    (%[[X:.*]]: tensor<?xf32>, %[[S:.*]]: !graph.shape_value<["?", "?"]>)
// CHECK:         %[[T:.*]] = "graph.match_cast"(%[[S]]){{.*}} -> !graph.shape_value<["m", "n"]>
// CHECK:         %[[Y:.*]] = "graph.match_cast"(%[[X]]){{.*}} -> tensor<?xf32, #graph.shape<["m*n"]>>
// CHECK:         return %[[Y]]
!product = tensor<?xf32, #graph.shape<["m*n"]>>
func.func @cast(%t: tuple<tensor<?xf32>, !graph.shape_value<["?", "?"]>>) -> !product {
  %0 = "graph.match_cast"(%t) : (tuple<tensor<?xf32>, !graph.shape_value<["?", "?"]>>)
      -> tuple<!product, !graph.shape_value<["m", "n"]>>
  %1 = "graph.tuple_get"(%0) {index = 0 : i64}
      : (tuple<!product, !graph.shape_value<["m", "n"]>>) -> !product
  return %1 : !product
}
