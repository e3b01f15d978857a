// RUN: relax-opt %s --relax-gradient=function=loop --pretty | FileCheck %s --check-prefix=LOOP
// RUN: relax-opt %s --relax-gradient='function=branch wrt=x,s' --pretty | FileCheck %s --check-prefix=BRANCH

!x = tensor<?xf32, #graph.shape<["n"]>>

// The first loop saves the state of each round; the second goes back, and sums the gradient of w.
// LOOP-LABEL: func @loop_adjoint(
// LOOP:         %[[SHAPE:.*]] = graph.tensor_to_shape
// LOOP-NEXT:    graph.match_cast(%[[SHAPE]]) : shape<trips>
// LOOP:         %[[ROOM:.*]] = graph.full({{.*}} : tensor<trips x n x f32>
// LOOP:         %[[Y:.*]], %[[SAVED:.*]] = scf.for(%{{.*}}, %arg0, %[[ROOM]]) : tensor<n x f32>, tensor<trips x n x f32>
// LOOP:           %[[ROW:.*]] = graph.expand_dims
// LOOP:           graph.dynamic_update_slice(%{{.*}}, %[[ROW]],
// LOOP:           graph.multiply
// LOOP:           scf.yield
// LOOP-NEXT:    }
// LOOP-NEXT:    graph.sum(%[[Y]])
// LOOP:         %[[G:.*]], %{{.*}} = scf.for
// LOOP:           graph.dynamic_slice(%[[SAVED]],
// LOOP:           graph.multiply
// LOOP:           scf.yield
// LOOP-NEXT:    }
// LOOP-NOT:     scf.for
// LOOP:         return
func.func @loop(%x: !x, %w: !x, %k: index) -> tensor<f32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %y = scf.for %i = %zero to %k step %one iter_args(%a = %x) -> !x {
    %0 = "graph.multiply"(%a, %w) : (!x, !x) -> !x
    scf.yield %0 : !x
  }
  %1 = "graph.sum"(%y) {axes = array<i64>, keepdims = false} : (!x) -> tensor<f32>
  return %1 : tensor<f32>
}

// A scalar has a gradient if it is named.
// BRANCH-LABEL: func @branch_adjoint(
// BRANCH-SAME:    -> tensor<f32>, tensor<n x f32>, f32
// BRANCH:         scf.if(%arg1) : f32, tensor<n x f32>
// BRANCH:           graph.multiply
// BRANCH:         return
func.func @branch(%x: !x {graph.name = "x"}, %c: i1, %s: f32 {graph.name = "s"}) -> tensor<f32> {
  %y = scf.if %c -> !x {
    %t = tensor.from_elements %s : tensor<f32>
    %0 = "graph.multiply"(%x, %t) : (!x, tensor<f32>) -> !x
    scf.yield %0 : !x
  } else {
    scf.yield %x : !x
  }
  %1 = "graph.sum"(%y) {axes = array<i64>, keepdims = false} : (!x) -> tensor<f32>
  return %1 : tensor<f32>
}
