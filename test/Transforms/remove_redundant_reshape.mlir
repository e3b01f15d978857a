// RUN: relax-opt %s --split-input-file --relax-remove-redundant-reshape --pretty | FileCheck %s

!x = tensor<?x4xf32, #graph.shape<["n", 4]>>
!e = tensor<1x?x4xf32, #graph.shape<[1, "n", 4]>>
!f = tensor<?xf32, #graph.shape<["4*n"]>>
!h = tensor<?x2xf32, #graph.shape<["2*n", 2]>>

// CHECK-LABEL: func @chain(
// CHECK-NEXT:    %0 = graph.reshape(%arg0) {shape=#graph.shape<["2*n", 2]>} : tensor<2*n x 2 x f32>
// CHECK-NEXT:    return %0
func.func @chain(%x: !x) -> !h {
  %0 = "graph.expand_dims"(%x) {axes = array<i64: 0>} : (!x) -> !e
  %1 = "graph.reshape"(%0) {shape = #graph.shape<["4*n"]>} : (!e) -> !f
  %2 = "graph.reshape"(%1) {shape = #graph.shape<["2*n", 2]>} : (!f) -> !h
  return %2 : !h
}

// A chain that comes back is its source.
// CHECK-LABEL: func @round(
// CHECK-NEXT:    return %arg0
func.func @round(%x: !x) -> !x {
  %0 = "graph.expand_dims"(%x) {axes = array<i64: 0>} : (!x) -> !e
  %1 = "graph.squeeze"(%0) {axes = array<i64: 0>} : (!e) -> !x
  return %1 : !x
}

// What else uses a step keeps it.
// CHECK-LABEL: func @negative_used(
// CHECK-NEXT:    %0 = graph.reshape(%arg0) {{.*}} : tensor<4*n x f32>
// CHECK-NEXT:    %1 = graph.reshape(%arg0) {{.*}} : tensor<2*n x 2 x f32>
// CHECK-NEXT:    return %0, %1
func.func @negative_used(%x: !x) -> (!f, !h) {
  %0 = "graph.reshape"(%x) {shape = #graph.shape<["4*n"]>} : (!x) -> !f
  %1 = "graph.reshape"(%0) {shape = #graph.shape<["2*n", 2]>} : (!f) -> !h
  return %0, %1 : !f, !h
}

// -----

!n = tensor<?xf32, #graph.shape<["n"]>>
!m = tensor<?xf32, #graph.shape<["m"]>>

// A step that is refused where n and m differ stays.
// CHECK-LABEL: func @negative_unproved(
// CHECK-NEXT:    %0 = graph.reshape(%arg0) {{.*}} : tensor<m x f32>
// CHECK-NEXT:    %1 = graph.reshape(%0) {{.*}} : tensor<n x f32>
// CHECK-NEXT:    return %1
func.func @negative_unproved(%x: !n, %y: !m) -> !n {
  %0 = "graph.reshape"(%x) {shape = #graph.shape<["m"]>} : (!n) -> !m
  %1 = "graph.reshape"(%0) {shape = #graph.shape<["n"]>} : (!m) -> !n
  return %1 : !n
}

// With a fact it goes; the result keeps the name of its dim.
// CHECK-LABEL: func @fact(
// CHECK-NEXT:    %0 = graph.match_cast(%arg0) : tensor<m x f32>
// CHECK-NEXT:    return %0
func.func @fact(%x: !n, %y: !m) -> !m attributes {graph.facts = ["m == n"]} {
  %0 = "graph.reshape"(%x) {shape = #graph.shape<["m"]>} : (!n) -> !m
  return %0 : !m
}
