// RUN: relax-opt %s --split-input-file --relax-inline-functions --pretty | FileCheck %s

#in1  = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2  = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
// The symbols of the callee are what the arguments say; nothing calls it afterwards.
// CHECK-LABEL: func @symbolic(
// CHECK-NEXT:    %0 = graph.reshape(%arg0) {shape=#graph.shape<["8*n"]>} : tensor<8*n x f32>
// CHECK-NEXT:    return %0
// CHECK-NOT:   func private @flatten
func.func @symbolic(%x: tensor<?x4xf32, #graph.shape<["2*n", 4]>>) -> tensor<?xf32, #graph.shape<["8*n"]>> {
  %0 = "graph.call"(%x) {callee = @flatten, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<?x4xf32, #graph.shape<["2*n", 4]>>) -> tensor<?xf32, #graph.shape<["8*n"]>>
  return %0 : tensor<?xf32, #graph.shape<["8*n"]>>
}
func.func private @flatten(%x: tensor<?x4xf32, #graph.shape<["m", 4]>>) -> tensor<?xf32, #graph.shape<["4*m"]>> {
  %0 = "graph.reshape"(%x) {shape = #graph.shape<["4*m"]>} : (tensor<?x4xf32, #graph.shape<["m", 4]>>) -> tensor<?xf32, #graph.shape<["4*m"]>>
  return %0 : tensor<?xf32, #graph.shape<["4*m"]>>
}

// -----

#in1  = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2  = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
// Two calls bind the callee's own symbol k anew, and neither takes the caller's k.
// CHECK-LABEL: func @fresh(
// CHECK-NEXT:    %0 = graph.match_cast(%arg1) : tensor<k_1 x f32>
// CHECK-NEXT:    %1 = graph.exp(%0) : tensor<k_1 x f32>
// CHECK-NEXT:    %2 = graph.match_cast(%1) : tensor<? x f32>
// CHECK-NEXT:    %3 = graph.match_cast(%2) : tensor<k_2 x f32>
// CHECK-NEXT:    %4 = graph.exp(%3) : tensor<k_2 x f32>
func.func @fresh(%k: tensor<?xf32, #graph.shape<["k"]>>, %x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = "graph.call"(%x) {callee = @named, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<?xf32>) -> tensor<?xf32>
  %1 = "graph.call"(%0) {callee = @named, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<?xf32>) -> tensor<?xf32>
  return %1 : tensor<?xf32>
}
func.func private @named(%x: tensor<?xf32>) -> tensor<?xf32, #graph.shape<["k"]>> {
  %0 = "graph.match_cast"(%x) : (tensor<?xf32>) -> tensor<?xf32, #graph.shape<["k"]>>
  %1 = "graph.exp"(%0) : (tensor<?xf32, #graph.shape<["k"]>>) -> tensor<?xf32, #graph.shape<["k"]>>
  return %1 : tensor<?xf32, #graph.shape<["k"]>>
}

// -----

#in1  = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2  = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!v = tensor<?xf32, #graph.shape<["n"]>>
// An argument that is coarser than the parameter is checked at run time; calls within calls go
// first, wherever they stand.
// CHECK-LABEL: func @nested(
// CHECK-NEXT:    %0 = graph.match_cast(%arg0) : tensor<n x f32>
// CHECK-NEXT:    %1 = graph.exp(%0) : tensor<n x f32>
// CHECK-NEXT:    %2 = graph.negative(%1) : tensor<n x f32>
// CHECK-NEXT:    %3 = graph.match_cast(%2) : tensor<? x f32>
// CHECK-NEXT:    return %3
func.func @nested(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = "graph.call"(%x) {callee = @outer, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func private @outer(%x: !v) -> !v {
  %0 = "graph.call"(%x) {callee = @inner, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!v) -> !v
  %1 = "graph.negative"(%0) : (!v) -> !v
  return %1 : !v
}
func.func private @inner(%x: !v) -> !v {
  %0 = "graph.exp"(%x) : (!v) -> !v
  return %0 : !v
}

// -----

#in1  = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2  = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!v = tensor<?xf32, #graph.shape<["n"]>>
// Public functions stay, and so do those that run as one kernel.
// CHECK-LABEL: func @negative_kept(
// CHECK-NEXT:    graph.call @fused(%arg0)
// CHECK-NEXT:    graph.exp
// CHECK-LABEL: func @public(
// CHECK-LABEL: func private @fused(
func.func @negative_kept(%x: !v) -> (!v, !v) {
  %0 = "graph.call"(%x) {callee = @fused, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!v) -> !v
  %1 = "graph.call"(%x) {callee = @public, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!v) -> !v
  return %0, %1 : !v, !v
}
func.func @public(%x: !v) -> !v {
  %0 = "graph.exp"(%x) : (!v) -> !v
  return %0 : !v
}
func.func private @fused(%x: !v) -> !v attributes {graph.primitive} {
  return %x : !v
}

// -----

#in1  = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2  = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
// Facts of the callee are required at each call, in its name, as soon as their symbols are bound.
// CHECK-LABEL: func @facts(
// CHECK-NEXT:    graph.require m mod 3 == 0  by @thirds
// CHECK-NEXT:    graph.require 4*m <= 48  by @thirds
// CHECK-NEXT:    graph.match_cast(%arg1) : tensor<k x f32>
// CHECK-NEXT:    graph.require k <= 4*m  by @thirds
// CHECK-NEXT:    graph.exp
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      graph.require 2 == 0  by @thirds
func.func @facts(%x: tensor<?xf32, #graph.shape<["4*m"]>>, %y: tensor<?xf32>, %z: tensor<5xf32>, %c: i1) {
  %0 = "graph.call"(%x, %y) {callee = @thirds, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (tensor<?xf32, #graph.shape<["4*m"]>>, tensor<?xf32>) -> tensor<?xf32>
  scf.if %c {
    %1 = "graph.call"(%z, %y) {callee = @thirds, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (tensor<5xf32>, tensor<?xf32>) -> tensor<?xf32>
  }
  return
}
func.func private @thirds(%x: tensor<?xf32, #graph.shape<["n"]>>, %y: tensor<?xf32>) -> tensor<?xf32>
    attributes {graph.facts = ["n mod 3 == 0", "k <= n", "n <= 48"]} {
  %0 = "graph.match_cast"(%y) : (tensor<?xf32>) -> tensor<?xf32, #graph.shape<["k"]>>
  %1 = "graph.exp"(%0) : (tensor<?xf32, #graph.shape<["k"]>>) -> tensor<?xf32>
  return %1 : tensor<?xf32>
}

// -----

#in1  = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!v = tensor<?xf32, #graph.shape<["n"]>>
// A function that is to be called is not copied, but what it calls is copied into it.
// CHECK-LABEL: func @negative_noinline(
// CHECK-NEXT:    graph.call @called(%arg0)
// CHECK-LABEL: func private @called(
// CHECK-NEXT:    graph.exp
// CHECK-NOT:   func private @copied
func.func @negative_noinline(%x: !v) -> !v {
  %0 = "graph.call"(%x) {callee = @called, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!v) -> !v
  return %0 : !v
}
func.func private @called(%x: !v) -> !v attributes {graph.noinline} {
  %0 = "graph.call"(%x) {callee = @copied, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!v) -> !v
  return %0 : !v
}
func.func private @copied(%x: !v) -> !v {
  %0 = "graph.exp"(%x) : (!v) -> !v
  return %0 : !v
}

// -----

// A shape has no cast: what the parameter says of it is required.
// CHECK-LABEL: func @passes_shape(
// CHECK-NEXT:    graph.require q == p  by @shaped
// CHECK-NEXT:    graph.exp
func.func @passes_shape(%x: tensor<?xf32, #graph.shape<["p"]>>, %s: !graph.shape_value<["q"]>) -> tensor<?xf32, #graph.shape<["p"]>> {
  %0 = "graph.call"(%x, %s) {callee = @shaped, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<?xf32, #graph.shape<["p"]>>, !graph.shape_value<["q"]>) -> tensor<?xf32, #graph.shape<["p"]>>
  return %0 : tensor<?xf32, #graph.shape<["p"]>>
}
func.func private @shaped(%x: tensor<?xf32, #graph.shape<["n"]>>, %s: !graph.shape_value<["n"]>) -> tensor<?xf32, #graph.shape<["n"]>> {
  %0 = "graph.exp"(%x) : (tensor<?xf32, #graph.shape<["n"]>>) -> tensor<?xf32, #graph.shape<["n"]>>
  return %0 : tensor<?xf32, #graph.shape<["n"]>>
}

// -----

// What is called in destination-passing style already is called, and stays.
// CHECK-LABEL: func @negative_lowered(
// CHECK:         graph.call_dps @lowered(
// CHECK-LABEL: func private @lowered(
!v = tensor<?xf32, #graph.shape<["n"]>>
func.func @negative_lowered(%x: !v) -> !v {
  %0 = "graph.alloc_tensor"() {offset = #graph.shape<[0]>} : () -> !v
  "graph.call_dps"(%x, %0) {callee = @lowered, num_outs = 1 : i64, sym_args = #graph.shape<[]>, updates = array<i64>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : (!v, !v) -> ()
  return %0 : !v
}
func.func private @lowered(%x: !v) -> !v {
  return %x : !v
}

// -----

#in1  = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
// Functions that call themselves stay, and what is exported is called as a private copy.
// CHECK-LABEL: func @negative_recursion(
// CHECK-NEXT:    graph.call @other(%arg0)
// CHECK-LABEL: func private @negative_recursion_1(
// CHECK-NEXT:    graph.call @other(%arg0)
// CHECK-LABEL: func private @other(
// CHECK-NEXT:    graph.negative
// CHECK-NEXT:    graph.call @negative_recursion_1(
func.func @negative_recursion(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "graph.call"(%x) {callee = @other, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @other(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "graph.call"(%x) {callee = @copied, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "graph.call"(%0) {callee = @negative_recursion, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @copied(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "graph.negative"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

!n = tensor<?xf32, #graph.shape<["n"]>>

// A caller has the memory of results ready, so it has to know their dims: this one is inlined.
// CHECK-LABEL: func @shape_of_callee(
// CHECK-NOT:     graph.call
// CHECK:         graph.shape_of(%arg0)
// CHECK-NOT:   func private @f
func.func @shape_of_callee(%x: !n) -> !graph.shape_value<["n"]> {
  %0 = "graph.call"(%x) {callee = @f, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (!n) -> !graph.shape_value<["n"]>
  return %0 : !graph.shape_value<["n"]>
}
func.func private @f(%x: !n) -> !graph.shape_value<["n"]> attributes {graph.noinline} {
  %0 = "graph.shape_of"(%x) : (!n) -> !graph.shape_value<["n"]>
  return %0 : !graph.shape_value<["n"]>
}

// -----

#in2  = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!sum = tensor<?xf32, #graph.shape<["m + n"]>>
!difference = tensor<?xf32, #graph.shape<["-m + n"]>>
// Dims of two arguments tell the symbols: a cast of both dims binds them.
// CHECK-LABEL: func @together(
// CHECK-NEXT:    %0 = graph.match_cast(%arg0) : tensor<d x f32>
// CHECK-NEXT:    %1 = graph.make_shape() {dims=#graph.shape<["d", "k"]>} : shape<d, k>
// CHECK-NEXT:    %2 = graph.match_cast(%1) : shape<m + n, -m + n>
// CHECK-NEXT:    %3 = graph.match_cast(%0) : tensor<m + n x f32>
// CHECK-NEXT:    %4 = graph.match_cast(%arg1) : tensor<-m + n x f32>
// CHECK:         graph.full(%{{.*}}) {shape=#graph.shape<["n"]>}
func.func @together(%x: tensor<?xf32>, %y: tensor<?xf32, #graph.shape<["k"]>>) -> tensor<?xf32> {
  %0 = "graph.call"(%x, %y) {callee = @sums, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (tensor<?xf32>, tensor<?xf32, #graph.shape<["k"]>>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// What the callee's symbols are follows from known dims.
// CHECK-LABEL: func @together_known(
// CHECK-NOT:     match_cast
// CHECK:         graph.full(%{{.*}}) {shape=#graph.shape<["p + q"]>}
func.func @together_known(%x: tensor<?xf32, #graph.shape<["2*p + q"]>>, %y: tensor<?xf32, #graph.shape<["q"]>>) -> tensor<?xf32> {
  %0 = "graph.call"(%x, %y) {callee = @sums, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (tensor<?xf32, #graph.shape<["2*p + q"]>>, tensor<?xf32, #graph.shape<["q"]>>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func private @sums(%x: !sum, %y: !difference) -> tensor<?xf32, #graph.shape<["n"]>> {
  %one = arith.constant dense<1.0> : tensor<f32>
  %0 = "graph.full"(%one) {shape = #graph.shape<["n"]>} : (tensor<f32>) -> tensor<?xf32, #graph.shape<["n"]>>
  return %0 : tensor<?xf32, #graph.shape<["n"]>>
}

// -----

#in1  = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
// A symbol of the callee that may be negative is checked, though nothing else needs it.
// CHECK-LABEL: func @negative_symbol(
// CHECK-NEXT:    graph.require k - 3 >= 0  by @longer
func.func @negative_symbol(%x: tensor<?xf32, #graph.shape<["k"]>>) -> tensor<?xf32, #graph.shape<["k"]>> {
  %0 = "graph.call"(%x) {callee = @longer, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<?xf32, #graph.shape<["k"]>>) -> tensor<?xf32, #graph.shape<["k"]>>
  return %0 : tensor<?xf32, #graph.shape<["k"]>>
}
func.func private @longer(%x: tensor<?xf32, #graph.shape<["n + 3"]>>) -> tensor<?xf32, #graph.shape<["n + 3"]>> {
  return %x : tensor<?xf32, #graph.shape<["n + 3"]>>
}
