// RUN: relax-opt %s --relax-gradient=function=linear --pretty | FileCheck %s --check-prefix=LINEAR
// RUN: relax-opt %s --relax-gradient='function=linear wrt=w' --pretty | FileCheck %s --check-prefix=WRT
// RUN: relax-opt %s --relax-gradient=function=broadcast --pretty | FileCheck %s --check-prefix=BROADCAST
// RUN: relax-opt %s --relax-gradient=function=stopped --pretty | FileCheck %s --check-prefix=STOPPED
// RUN: relax-opt %s --relax-gradient=function=called --pretty | FileCheck %s --check-prefix=CALLED
// RUN: relax-opt %s --relax-gradient=function=given --relax-verify --pretty | FileCheck %s --check-prefix=GIVEN
// RUN: relax-opt %s --relax-gradient=function=loaded --pretty | FileCheck %s --check-prefix=LOADED
// RUN: relax-opt %s --relax-gradient=function=updating --relax-verify --pretty | FileCheck %s --check-prefix=UPDATING

#in1  = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!x = tensor<?x3xf32, #graph.shape<["n", 3]>>
!w = tensor<3x5xf32>
!y = tensor<?x5xf32, #graph.shape<["n", 5]>>

// The function itself stays; the results are followed by gradients.
// LINEAR-LABEL: func @linear(
// LINEAR-NOT:     permute_dims
// LINEAR-LABEL: func @linear_adjoint(
// LINEAR-SAME:    %arg0: tensor<n x 3 x f32>, %arg1: tensor<3 x 5 x f32>)
// LINEAR-SAME:    -> tensor<f32>, tensor<n x 3 x f32>, tensor<3 x 5 x f32>
// LINEAR-SAME:    graph.result_tree=[0, [1, 2]]
// LINEAR-NEXT:    %0 = graph.matmul(%arg0, %arg1)
// LINEAR-NEXT:    %1 = graph.sum(%0)
// LINEAR-NEXT:    %2 = constant dense<1
// LINEAR-NEXT:    %3 = graph.expand_dims(%2)
// LINEAR-NEXT:    %4 = graph.broadcast_to(%3) {{.*}} : tensor<n x 5 x f32>
// LINEAR-NEXT:    %5 = graph.permute_dims(%arg1)
// LINEAR-NEXT:    %6 = graph.matmul(%4, %5) : tensor<n x 3 x f32>
// LINEAR-NEXT:    %7 = graph.permute_dims(%arg0)
// LINEAR-NEXT:    %8 = graph.matmul(%7, %4) : tensor<3 x 5 x f32>
// LINEAR-NEXT:    return %1, %6, %8
//
// Of one argument: the product for the other one is not there.
// WRT-LABEL: func @linear_adjoint(
// WRT:         permute_dims(%arg0)
// WRT-NOT:     permute_dims
// WRT:         return %1, %{{[0-9]+}}
func.func @linear(%x: !x {graph.name = "x"}, %w: !w {graph.name = "w"}) -> tensor<f32> {
  %0 = "graph.matmul"(%x, %w) : (!x, !w) -> !y
  %1 = "graph.sum"(%0) {axes = array<i64>, keepdims = false} : (!y) -> tensor<f32>
  return %1 : tensor<f32>
}

!u = tensor<?xf32, #graph.shape<["n"]>>
!v = tensor<?xf32, #graph.shape<["k"]>>
!b = tensor<?xf32, #graph.shape<["max(k, n)*min(k, n, 1)"]>>

// Either may be repeated: the sum is of parts, whose size is known at run time.
// BROADCAST-LABEL: func @broadcast_adjoint(
// BROADCAST:         %[[LEFT:.*]] = graph.reshape({{.*}} : tensor<n x (max(k, n)*min(k, n, 1)) floordiv max(n, 1) x f32>
// BROADCAST-NEXT:    graph.sum(%[[LEFT]]) {{.*}} : tensor<n x f32>
// BROADCAST:         %[[RIGHT:.*]] = graph.reshape({{.*}} : tensor<k x (max(k, n)*min(k, n, 1)) floordiv max(k, 1) x f32>
// BROADCAST-NEXT:    graph.sum(%[[RIGHT]]) {{.*}} : tensor<k x f32>
func.func @broadcast(%x: !u, %y: !v) -> tensor<f32> {
  %0 = "graph.multiply"(%x, %y) : (!u, !v) -> !b
  %1 = "graph.sum"(%0) {axes = array<i64>, keepdims = false} : (!b) -> tensor<f32>
  return %1 : tensor<f32>
}

// The square counts as a constant; an integer has no gradient.
// STOPPED-LABEL: func @stopped_adjoint(
// STOPPED-NEXT:    %0 = graph.square(%arg0)
// STOPPED:         %[[G:.*]] = graph.broadcast_to
// STOPPED-NEXT:    %[[X:.*]] = graph.multiply(%[[G]], %0)
// STOPPED-NEXT:    return %{{[0-9]+}}, %[[X]]
func.func @stopped(%x: !u, %k: tensor<i64>) -> tensor<f32> {
  %0 = "graph.square"(%x) {graph.no_grad} : (!u) -> !u
  %1 = "graph.multiply"(%x, %0) : (!u, !u) -> !u
  %2 = "graph.sum"(%1) {axes = array<i64>, keepdims = false} : (!u) -> tensor<f32>
  return %2 : tensor<f32>
}

// The callee is computed again where its gradient is; both calls share that function.
// CALLED-LABEL: func @called_adjoint(
// CALLED-NEXT:    %0 = graph.call @scaled(%arg0)
// CALLED-NEXT:    %1 = graph.call @scaled(%0)
// CALLED:         %[[G:.*]] = graph.broadcast_to
// CALLED-NEXT:    %[[Y:.*]] = graph.call @scaled_pullback(%0, %[[G]]
// CALLED-NEXT:    %[[X:.*]] = graph.call @scaled_pullback(%arg0, %[[Y]]
// CALLED-NEXT:    return %{{[0-9]+}}, %[[X]]
// CALLED-LABEL: func private @scaled(
// CALLED-LABEL: func private @scaled_pullback(
// CALLED-SAME:    %arg0: tensor<n x f32>, %arg1: tensor<n x f32>) -> tensor<n x f32>
// CALLED-NEXT:    %0 = graph.exp(%arg0)
// CALLED-NEXT:    %1 = graph.multiply(%arg1, %0)
// CALLED-NEXT:    return %1
// CALLED-NOT:     func private @scaled
func.func @called(%x: !u) -> tensor<f32> {
  %0 = "graph.call"(%x) {callee = @scaled, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!u) -> !u
  %1 = "graph.call"(%0) {callee = @scaled, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!u) -> !u
  %2 = "graph.sum"(%1) {axes = array<i64>, keepdims = false} : (!u) -> tensor<f32>
  return %2 : tensor<f32>
}

func.func private @scaled(%x: !u) -> !u attributes {graph.noinline} {
  %0 = "graph.exp"(%x) : (!u) -> !u
  return %0 : !u
}

// What has the gradients of a function that updates an argument updates none.
// UPDATING-LABEL: func private @updated_pullback(
// UPDATING-SAME:    %arg0: tensor<n x f32>, %arg1: tensor<n x f32>) -> tensor<n x f32> {graph.noinline}
func.func @updating(%x: !u) -> tensor<f32> {
  %0 = "graph.call"(%x) {callee = @updated, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!u) -> !u
  %1 = "graph.sum"(%0) {axes = array<i64>, keepdims = false} : (!u) -> tensor<f32>
  return %1 : tensor<f32>
}

func.func private @updated(%x: !u {graph.inout = 0 : i64}) -> !u attributes {graph.noinline} {
  %0 = "graph.exp"(%x) : (!u) -> !u
  return %0 : !u
}

// Gradients of functions and tensor programs that users give.
// GIVEN-LABEL: func @given_adjoint(
// GIVEN-NEXT:    %0 = graph.call @clipped(%arg0)
// GIVEN-NEXT:    %1 = graph.call_tir @cubed(%0)
// GIVEN:         %[[G:.*]] = graph.broadcast_to
// GIVEN-NEXT:    %[[Y:.*]] = graph.call @cubed_gradient(%0, %1, %[[G]]) : tensor<n x f32>
// GIVEN-NEXT:    %[[X:.*]] = graph.call @clipped_gradient(%arg0, %0, %[[Y]]) : tensor<n x f32>
// GIVEN-NEXT:    return %{{[0-9]+}}, %[[X]]
func.func @given(%x: !u) -> tensor<f32> {
  %0 = "graph.call"(%x) {callee = @clipped, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!u) -> !u
  %1 = "graph.call_tir"(%0) {callee = @cubed, sym_args = #graph.shape<[]>, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!u) -> !u
  %2 = "graph.sum"(%1) {axes = array<i64>, keepdims = false} : (!u) -> tensor<f32>
  return %2 : tensor<f32>
}

func.func private @clipped(%x: !u) -> !u attributes {graph.noinline, graph.gradient = @clipped_gradient} {
  %0 = "graph.round"(%x) : (!u) -> !u
  return %0 : !u
}

func.func private @clipped_gradient(%x: !u, %y: !u, %g: !u) -> !u attributes {graph.noinline} {
  return %g : !u
}

func.func private @cubed(%x: !u, %out: !u) -> !u attributes {tir.prim_func, tir.num_outs = 1 : i64, graph.gradient = @cubed_gradient} {
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : !u) outs(%out : !u) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.mulf %a, %a : f32
    %2 = arith.mulf %1, %a : f32
    linalg.yield %2 : f32
  } -> !u
  return %0 : !u
}

func.func private @cubed_gradient(%x: !u, %y: !u, %g: !u) -> !u attributes {graph.noinline} {
  %three = arith.constant dense<3.0> : tensor<f32>
  %0 = "graph.square"(%x) : (!u) -> !u
  %1 = "graph.multiply"(%0, %three) : (!u, tensor<f32>) -> !u
  %2 = "graph.multiply"(%1, %g) : (!u, !u) -> !u
  return %2 : !u
}

// What an object returns that was given no floats, or that a mark says is constant, is no part of it.
// LOADED-LABEL: func @loaded_adjoint(
// LOADED:         %[[W:.*]] = graph.multiply(%{{[0-9]+}}, %1)
// LOADED-NEXT:    return %{{[0-9]+}}, %[[W]]
"lib.function"() {sym_name = "load", c_symbol = "load", convention = "dlpack", libraries = ["python"]} : () -> ()
"lib.function"() {sym_name = "note", c_symbol = "note", convention = "dlpack", libraries = ["python"]} : () -> ()
func.func @loaded(%w: !u, %o: !graph.host_object) -> tensor<f32> {
  %0 = "graph.call_library"(%w) {graph.no_grad, callee = @note, sym_args = #graph.shape<[]>, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!u) -> !graph.host_object
  %1 = "graph.call_library"(%o) {callee = @load, sym_args = #graph.shape<[]>, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!graph.host_object) -> !u
  %2 = "graph.multiply"(%w, %1) : (!u, !u) -> !u
  %3 = "graph.sum"(%2) {axes = array<i64>, keepdims = false} : (!u) -> tensor<f32>
  return %3 : tensor<f32>
}
