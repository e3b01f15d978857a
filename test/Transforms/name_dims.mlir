// RUN: relax-opt %s --split-input-file --relax-name-dims --relax-verify --pretty | FileCheck %s

// An unknown dim of an argument gets a name of its own, and operators are deduced from there.
// CHECK-LABEL: func @arguments(%arg0: tensor<x_0_1 x 4 x f32>, %arg1: tensor<x_0 x f32>, %arg2: shape<arg2_0, 2>)
// CHECK-SAME:      -> tensor<x_0_1 x 4 x f32>, tensor<x_0 x f32>
// CHECK-NEXT:    graph.exp(%arg0) : tensor<x_0_1 x 4 x f32>
// CHECK-NEXT:    graph.exp(%arg1) : tensor<x_0 x f32>
func.func @arguments(%x: tensor<?x4xf32> {graph.name = "x"}, %y: tensor<?xf32, #graph.shape<["x_0"]>>, %s: !graph.shape_value<["?", 2]>) -> (tensor<?x?xf32>, tensor<?xf32>) {
  %0 = "graph.exp"(%x) : (tensor<?x4xf32>) -> tensor<?x?xf32>
  %1 = "graph.exp"(%y) : (tensor<?xf32, #graph.shape<["x_0"]>>) -> tensor<?xf32>
  return %0, %1 : tensor<?x?xf32>, tensor<?xf32>
}

// -----

// Dims that broadcast at run time have an expression; a cast that says nothing goes.
// CHECK-LABEL: func @broadcast(%arg0: tensor<arg0_0 x f32>, %arg1: tensor<arg1_0 x f32>)
// CHECK-NEXT:    %0 = graph.add(%arg0, %arg1) : tensor<max(arg0_0, arg1_0)*min(arg0_0, arg1_0, 1) x f32>
// CHECK-NEXT:    return %0
func.func @broadcast(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %0 = "graph.add"(%x, %y) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %1 = "graph.match_cast"(%0) : (tensor<?xf32>) -> tensor<?xf32>
  return %1 : tensor<?xf32>
}

// -----

// What a region yields, or a loop carries, is bound where it appears.
// CHECK-LABEL: func @regions(
// CHECK:         %[[IF:.*]] = scf.if(%arg0) : tensor<? x f32>
// CHECK:         %[[BOUND:.*]] = graph.match_cast(%[[IF]]) : tensor<if_0 x f32>
// CHECK:         %[[START:.*]] = graph.match_cast(%[[BOUND]]) : tensor<? x f32>
// CHECK:         %[[FOR:.*]] = scf.for(%{{.*}}, %[[START]]) : tensor<? x f32> {
// CHECK-NEXT:    ^0(%{{.*}}: index, %[[ARG:.*]]: tensor<? x f32>):
// CHECK-NEXT:      %[[CARRIED:.*]] = graph.match_cast(%[[ARG]]) : tensor<for_0 x f32>
// CHECK-NEXT:      %[[NEXT:.*]] = graph.concat(%[[CARRIED]], %[[CARRIED]]) {{.*}} : tensor<2*for_0 x f32>
// CHECK-NEXT:      %[[YIELD:.*]] = graph.match_cast(%[[NEXT]]) : tensor<? x f32>
// CHECK-NEXT:      scf.yield(%[[YIELD]])
// CHECK:         graph.match_cast(%[[FOR]]) : tensor<for_0_1 x f32>
// CHECK-NEXT:    graph.exp(%{{.*}}) : tensor<for_0_1 x f32>
func.func @regions(%c: i1, %n: index, %x: tensor<?xf32>, %y: tensor<?xf32>) {
  %0 = scf.if %c -> tensor<?xf32> {
    scf.yield %x : tensor<?xf32>
  } else {
    scf.yield %y : tensor<?xf32>
  }
  %zero = arith.constant 0 : index
  %1 = scf.for %i = %zero to %n step %n iter_args(%a = %0) -> tensor<?xf32> {
    %b = "graph.concat"(%a, %a) {axis = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    scf.yield %b : tensor<?xf32>
  }
  %2 = "graph.exp"(%1) : (tensor<?xf32>) -> tensor<?xf32>
  return
}

// -----

#in1  = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
// A call passes what the parameters say, and what nothing tells of its results is bound behind it.
// CHECK-LABEL: func @caller(%arg0: tensor<arg0_0 x f32>) -> tensor<k x f32>
// CHECK-NEXT:    %0 = graph.match_cast(%arg0) : tensor<2*n x f32>
// CHECK-NEXT:    %1 = graph.call @callee(%0) : tensor<? x f32>
// CHECK-NEXT:    %2 = graph.match_cast(%1) : tensor<k x f32>
// CHECK-NEXT:    %3 = graph.exp(%2) : tensor<k x f32>
// CHECK-NEXT:    %4 = graph.match_cast(%3) : tensor<2*n_1 x f32>
// CHECK-NEXT:    %5 = graph.call @callee(%4) : tensor<? x f32>
// CHECK-NEXT:    %6 = graph.match_cast(%5) : tensor<callee_0 x f32>
// CHECK-NEXT:    %7 = graph.exp(%6) : tensor<callee_0 x f32>
// CHECK-LABEL: func private @callee(%arg0: tensor<2*n x f32>) -> tensor<j x f32>
func.func @caller(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = "graph.call"(%x) {callee = @callee, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<?xf32>) -> tensor<?xf32>
  %1 = "graph.match_cast"(%0) : (tensor<?xf32>) -> tensor<?xf32, #graph.shape<["k"]>>
  %2 = "graph.exp"(%1) : (tensor<?xf32, #graph.shape<["k"]>>) -> tensor<?xf32>
  %3 = "graph.call"(%2) {callee = @callee, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<?xf32>) -> tensor<?xf32>
  %4 = "graph.exp"(%3) : (tensor<?xf32>) -> tensor<?xf32>
  return %2 : tensor<?xf32>
}
func.func private @callee(%x: tensor<?xf32, #graph.shape<["2*n"]>>) -> tensor<?xf32> attributes {graph.noinline} {
  %0 = "graph.match_cast"(%x) : (tensor<?xf32, #graph.shape<["2*n"]>>) -> tensor<*xf32>
  %1 = "graph.match_cast"(%0) : (tensor<*xf32>) -> tensor<?xf32, #graph.shape<["j"]>>
  %2 = "graph.match_cast"(%1) : (tensor<?xf32, #graph.shape<["j"]>>) -> tensor<?xf32>
  return %2 : tensor<?xf32>
}

// -----

#in1  = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
// Functions that call each other know the names of each other's arguments.
// CHECK-LABEL: func @ping(%arg0: tensor<arg0_0 x f32>)
// CHECK-NEXT:    graph.match_cast(%arg0) : tensor<2*p x f32>
// CHECK-NEXT:    graph.call @pong
// CHECK-LABEL: func private @pong(%arg0: tensor<2*p x f32>)
// CHECK-NEXT:    graph.call @ping(%arg0)
func.func @ping(%x: tensor<?xf32>) {
  "graph.call"(%x) {callee = @pong, operandSegmentSizes = #in1, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<?xf32>) -> ()
  return
}
func.func private @pong(%x: tensor<?xf32>) {
  "graph.call"(%x) {callee = @ping, operandSegmentSizes = #in1, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<?xf32>) -> ()
  %0 = "graph.match_cast"(%x) : (tensor<?xf32>) -> tensor<?xf32, #graph.shape<["2*p"]>>
  return
}

// -----

// What becomes an object is known all the same.
// CHECK-LABEL: func @objects(%arg0: tensor<4 x f32>) -> tensor<4 x f32>, tensor<4 x f32>
// CHECK-NEXT:    return %arg0, %arg0
func.func @objects(%x: tensor<4xf32>) -> (tensor<?xf32>, !graph.object) {
  %0 = "graph.match_cast"(%x) : (tensor<4xf32>) -> !graph.object
  %1 = "graph.match_cast"(%0) : (!graph.object) -> tensor<?xf32>
  return %1, %0 : tensor<?xf32>, !graph.object
}

// -----

// The cast that names a dim of an argument names the argument's, if it always runs; one that
// comes later asserts.
// CHECK-LABEL: func @casts(%arg0: i1, %arg1: tensor<k x 2*j x f32>, %arg2: tensor<y_0 x f32>)
// CHECK-NEXT:    graph.match_cast(%arg2) : tensor<k x f32>
// CHECK-NEXT:    graph.exp(%arg1) : tensor<k x 2*j x f32>
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      graph.match_cast(%arg2) : tensor<i x f32>
func.func @casts(%c: i1, %x: tensor<?x?xf32>, %y: tensor<?xf32> {graph.name = "y"}) {
  %0 = "graph.match_cast"(%x) : (tensor<?x?xf32>) -> tensor<?x?xf32, #graph.shape<["k", "2*j"]>>
  %1 = "graph.match_cast"(%y) : (tensor<?xf32>) -> tensor<?xf32, #graph.shape<["k"]>>
  %2 = "graph.exp"(%0) : (tensor<?x?xf32, #graph.shape<["k", "2*j"]>>) -> tensor<?x?xf32>
  scf.if %c {
    %3 = "graph.match_cast"(%y) : (tensor<?xf32>) -> tensor<?xf32, #graph.shape<["i"]>>
    %4 = "graph.exp"(%3) : (tensor<?xf32, #graph.shape<["i"]>>) -> tensor<?xf32>
  }
  return
}

// -----

// Names that two regions bind are told apart; that of the function's own block stays.
// CHECK-LABEL: func @same_names(
// CHECK:         scf.if
// CHECK-NEXT:      graph.match_cast(%arg1) : tensor<k_1 x f32>
// CHECK-NEXT:      graph.require k_1 <= 4  by @f
// CHECK-NEXT:      graph.full(%arg2) {shape=#graph.shape<["2*k_1"]>} : tensor<2*k_1 x f32>
// CHECK:         } {
// CHECK-NEXT:      graph.match_cast(%arg1) : tensor<k_2 x f32>
// CHECK-NEXT:      graph.make_shape() {dims=#graph.shape<["k_2"]>} : shape<k_2>
// CHECK:         graph.full(%arg2) {shape=#graph.shape<["k"]>} : tensor<k x f32>
#k = #graph.shape<["k"]>
!k = tensor<?xf32, #k>
func.func @same_names(%c: i1, %x: tensor<?xf32>, %s: tensor<f32>) {
  scf.if %c {
    %0 = "graph.match_cast"(%x) : (tensor<?xf32>) -> !k
    "graph.require"() {any_of = ["k <= 4"], by = "@f"} : () -> ()
    %1 = "graph.full"(%s) {shape = #graph.shape<["2*k"]>} : (tensor<f32>) -> tensor<?xf32>
  } else {
    %0 = "graph.match_cast"(%x) : (tensor<?xf32>) -> !k
    %1 = "graph.make_shape"() {dims = #k} : () -> !graph.shape_value<["k"]>
  }
  scf.execute_region no_inline {
    %0 = "graph.match_cast"(%x) : (tensor<?xf32>) -> !k
    scf.yield
  } {graph.dataflow}
  %1 = "graph.full"(%s) {shape = #k} : (tensor<f32>) -> !k
  return
}
