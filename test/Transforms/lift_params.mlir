// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-lift-params' | FileCheck %s

// CHECK-LABEL: func.func @main_params
// CHECK-SAME:    (%[[A:[a-z0-9]*]]: tensor<4xf32> {graph.name = "a"}, %[[B:[a-z0-9]*]]: tensor<4xf32> {graph.name = "b"})
// CHECK-NEXT:    %[[E:.*]] = "graph.call_tir"(%[[B]]) {callee = @exp
// CHECK-NEXT:    return %[[A]], %[[E]]
// CHECK-LABEL: func.func @main_params_0
// CHECK-SAME:    (%[[B:[a-z0-9]*]]: tensor<4xf32> {graph.name = "b"})
// CHECK-NEXT:    %[[E:.*]] = "graph.call_tir"(%[[B]]) {callee = @exp
// CHECK-NEXT:    return %[[E]] :
// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %[[X:[a-z0-9]*]]: tensor<4xf32> {graph.name = "x"}
// CHECK-SAME:    %[[PA:[a-z0-9]*]]: tensor<4xf32> {graph.made_from = array<i64: 0>, graph.name = "a"}
// CHECK-SAME:    %[[PE:[a-z0-9]*]]: tensor<4xf32> {graph.made_by = "main_params_0", graph.made_from = array<i64: 1>, graph.name = "b.exp"})
// CHECK-SAME:    graph.num_inputs = 1
// CHECK-NOT:     @exp
// CHECK:         %[[S:.*]] = "graph.call_tir"(%[[X]], %[[PA]]) {callee = @add
// CHECK:         "graph.call_tir"(%[[S]], %[[PE]]) {callee = @add
func.func @main(%x: tensor<4xf32> {graph.name = "x"}, %a: tensor<4xf32> {graph.name = "a"}, %b: tensor<4xf32> {graph.name = "b"})
    -> tensor<4xf32> attributes {graph.num_inputs = 1 : i64} {
  %0 = "graph.exp"(%b) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "graph.add"(%x, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = "graph.add"(%1, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// CHECK-LABEL: func.func @negative_depends_on_input
// CHECK:         "graph.call_tir"{{.*}}callee = @add
func.func @negative_depends_on_input(%x: tensor<4xf32>, %a: tensor<4xf32>) -> tensor<4xf32>
    attributes {graph.num_inputs = 1 : i64} {
  %0 = "graph.add"(%x, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// What is made of constants is a parameter too, and what shows a symbol stays one. Facts of
// parameters hold where they are read.
// CHECK-LABEL: func.func @known_params(
// CHECK-SAME:    %[[V:[a-z0-9]*]]: tensor<?xf32
// CHECK-SAME:    graph.facts = ["n <= 8"]
// CHECK-NEXT:    "graph.require"() {any_of = ["n == 4", "n == 8"]
// CHECK-NEXT:    %[[C:.*]] = arith.constant
// CHECK-NEXT:    %[[E:.*]] = "graph.call_tir"(%[[C]]) {callee = @exp
// CHECK-NEXT:    %[[M:.*]] = "graph.call_tir"(%[[V]]) {callee = @max
// CHECK-NEXT:    return %[[V]], %[[E]], %[[M]]
// CHECK-LABEL: func.func @known(
// CHECK-SAME:    graph.name = "arg1"
// CHECK-SAME:    graph.name = "constant.exp
// CHECK-SAME:    graph.name = "arg1.max
// CHECK-NEXT:    "graph.require"
// CHECK-NEXT:    "graph.call_tir"(%{{.*}}) {callee = @broadcast_to
!n = tensor<?xf32, #graph.shape<["n"]>>
func.func @known(%x: tensor<f32>, %v: !n) -> (tensor<2xf32>, tensor<f32>, !n)
    attributes {graph.num_inputs = 1 : i64, graph.facts = ["n <= 8"]} {
  "graph.require"() {any_of = ["n == 4", "n == 8"], by = "@f"} : () -> ()
  %c = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0 = "graph.exp"(%c) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = "graph.max"(%v) {axes = array<i64: 0>, keepdims = false} : (!n) -> tensor<f32>
  %2 = "graph.broadcast_to"(%x) {shape = #graph.shape<["n"]>} : (tensor<f32>) -> !n
  return %0, %1, %2 : tensor<2xf32>, tensor<f32>, !n
}

// CHECK-LABEL: func.func @stays_params(
// CHECK-NEXT:    %[[E:.*]] = "graph.call_tir"(%{{.*}}) {callee = @exp
// CHECK-NEXT:    return %{{.*}}, %[[E]]
// CHECK-LABEL: func.func @stays(
// CHECK-NEXT:    "graph.call_tir"(%{{.*}}) {callee = @exp
// CHECK-NEXT:    return
func.func @stays(%x: tensor<4xf32>, %a: tensor<4xf32> {graph.no_lift}, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    attributes {graph.num_inputs = 1 : i64} {
  %0 = "graph.exp"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "graph.exp"(%b) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
