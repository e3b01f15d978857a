// RUN: relax-opt %s --split-input-file --relax-canonicalize-bindings --pretty | FileCheck %s

!mn = tensor<?x?xf32, #graph.shape<["m", "n"]>>
!op = tensor<?x?xf32, #graph.shape<["o", "p"]>>

// Fresh symbols for dims that are known are replaced everywhere, and the cast goes.
// CHECK-LABEL: func @symbolic_cast(%arg0: tensor<m x n x f32>) -> tensor<m x n x f32>, tensor<m*n x f32>
// CHECK-NEXT:    %0 = graph.exp(%arg0) : tensor<m x n x f32>
// CHECK-NEXT:    %1 = graph.reshape(%0) {shape=#graph.shape<["m*n"]>} : tensor<m*n x f32>
// CHECK-NEXT:    return %0, %1
func.func @symbolic_cast(%x: !mn) -> (!op, tensor<?xf32, #graph.shape<["o*p"]>>) {
  %0 = "graph.match_cast"(%x) : (!mn) -> !op
  %1 = "graph.exp"(%0) : (!op) -> !op
  %2 = "graph.reshape"(%1) {shape = #graph.shape<["o*p"]>} : (!op) -> tensor<?xf32, #graph.shape<["o*p"]>>
  return %1, %2 : !op, tensor<?xf32, #graph.shape<["o*p"]>>
}

// -----

// Casts that name an unknown dim, or assert something that may be false, stay.
// CHECK-LABEL: func @negative_cast(
// CHECK-NEXT:    %0 = graph.match_cast(%arg0) : tensor<k x f32>
// CHECK-NEXT:    %1 = graph.match_cast(%arg1) : tensor<16 x f32>
func.func @negative_cast(%x: tensor<?xf32>, %y: tensor<?xf32, #graph.shape<["m"]>>) -> (tensor<?xf32, #graph.shape<["k"]>>, tensor<16xf32>) {
  %0 = "graph.match_cast"(%x) : (tensor<?xf32>) -> tensor<?xf32, #graph.shape<["k"]>>
  %1 = "graph.match_cast"(%y) : (tensor<?xf32, #graph.shape<["m"]>>) -> tensor<16xf32>
  return %0, %1 : tensor<?xf32, #graph.shape<["k"]>>, tensor<16xf32>
}

// -----

!x = tensor<?x4xf32, #graph.shape<["n", 4]>>
!t = tensor<4x?xf32, #graph.shape<[4, "n"]>>

// CHECK-LABEL: func @identities(
// CHECK-NEXT:    return %arg0
func.func @identities(%x: !x) -> !x {
  %0 = "graph.reshape"(%x) {shape = #graph.shape<["n", 4]>} : (!x) -> !x
  %1 = "graph.permute_dims"(%0) {axes = array<i64: 0, 1>} : (!x) -> !x
  %2 = "graph.broadcast_to"(%1) {shape = #graph.shape<["n", 4]>} : (!x) -> !x
  %3 = "graph.astype"(%2) {dtype = f32} : (!x) -> !x
  %4 = "graph.strided_slice"(%3) {axes = array<i64: 0>, begin = #graph.shape<[0]>, end = #graph.shape<["n"]>, strides = array<i64: 1>} : (!x) -> !x
  return %4 : !x
}

// What changes something stays.
// CHECK-LABEL: func @negative_identities(
// CHECK-NEXT:    graph.permute_dims
// CHECK-NEXT:    graph.astype
// CHECK-NEXT:    graph.strided_slice
// CHECK-NEXT:    graph.broadcast_to
func.func @negative_identities(%x: tensor<4x4xf32>, %y: tensor<1x4xf32>) -> (tensor<4x4xf16>, tensor<3x4xf32>, tensor<4x4xf32>) {
  %0 = "graph.permute_dims"(%x) {axes = array<i64: 1, 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "graph.astype"(%0) {dtype = f16} : (tensor<4x4xf32>) -> tensor<4x4xf16>
  %2 = "graph.strided_slice"(%x) {axes = array<i64: 0>, begin = #graph.shape<[1]>, end = #graph.shape<[4]>, strides = array<i64: 1>} : (tensor<4x4xf32>) -> tensor<3x4xf32>
  %3 = "graph.broadcast_to"(%y) {shape = #graph.shape<[4, 4]>} : (tensor<1x4xf32>) -> tensor<4x4xf32>
  return %1, %2, %3 : tensor<4x4xf16>, tensor<3x4xf32>, tensor<4x4xf32>
}

// -----

!x = tensor<?x4xf32, #graph.shape<["n", 4]>>
!e = tensor<1x?x4xf32, #graph.shape<[1, "n", 4]>>
!f = tensor<?xf32, #graph.shape<["4*n"]>>
!h = tensor<?x2xf32, #graph.shape<["2*n", 2]>>
!p = tensor<4x1x?xf32, #graph.shape<[4, 1, "n"]>>
!q = tensor<1x4x?xf32, #graph.shape<[1, 4, "n"]>>

// Chains are one op; what they went through is dead.
// CHECK-LABEL: func @chains(
// CHECK-NEXT:    %0 = graph.reshape(%arg0) {shape=#graph.shape<["2*n", 2]>} : tensor<2*n x 2 x f32>
// CHECK-NEXT:    %1 = graph.permute_dims(%arg1) {axes=array<i64: 0, 2, 1>} : tensor<1 x 4 x n x f32>
// CHECK-NEXT:    return %0, %1
func.func @chains(%x: !x, %y: !e) -> (!h, !q) {
  %0 = "graph.expand_dims"(%x) {axes = array<i64: 0>} : (!x) -> !e
  %1 = "graph.reshape"(%0) {shape = #graph.shape<["4*n"]>} : (!e) -> !f
  %2 = "graph.reshape"(%1) {shape = #graph.shape<["2*n", 2]>} : (!f) -> !h
  %3 = "graph.permute_dims"(%y) {axes = array<i64: 2, 0, 1>} : (!e) -> !p
  %4 = "graph.permute_dims"(%3) {axes = array<i64: 1, 0, 2>} : (!p) -> !q
  return %2, %4 : !h, !q
}

// -----

// CHECK-LABEL: func @shapes(
// CHECK-NEXT:    %0 = graph.make_shape() {{.*}} : shape<n, 4>
// CHECK-NEXT:    %1 = graph.shape_of(%arg1)
// CHECK-NEXT:    return %0, %0, %1
func.func @shapes(%x: tensor<?x4xf32, #graph.shape<["n", 4]>>, %y: tensor<?xf32>) -> (!graph.shape_value<["n", 4]>, !graph.shape_value<["n", 4]>, !graph.shape_value<["?"]>) {
  %0 = "graph.shape_of"(%x) : (tensor<?x4xf32, #graph.shape<["n", 4]>>) -> !graph.shape_value<["n", 4]>
  %1 = "graph.make_shape"() {dims = #graph.shape<["n", 4]>} : () -> !graph.shape_value<["n", 4]>
  %2 = "graph.shape_of"(%y) : (tensor<?xf32>) -> !graph.shape_value<["?"]>
  %3 = "graph.exp"(%y) : (tensor<?xf32>) -> tensor<?xf32>
  return %0, %1, %2 : !graph.shape_value<["n", 4]>, !graph.shape_value<["n", 4]>, !graph.shape_value<["?"]>
}

// -----

// A symbol, and what a cast says, belong to the region of the cast: each branch has a k of its own,
// and may assert what the other one denies.
// CHECK-LABEL: func @regions(
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      graph.exp(%arg1) : tensor<n x f32>
// CHECK-NEXT:      graph.match_cast(%arg1) : tensor<m x f32>
// CHECK:         } {
// CHECK-NEXT:      graph.negative(%arg2) : tensor<m x f32>
// CHECK-NEXT:      graph.match_cast(%arg1) : tensor<m + 1 x f32>
!n = tensor<?xf32, #graph.shape<["n"]>>
!m = tensor<?xf32, #graph.shape<["m"]>>
!k = tensor<?xf32, #graph.shape<["k"]>>
#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>
func.func private @use(!k)
func.func @regions(%c: i1, %x: !n, %y: !m) {
  scf.if %c {
    %0 = "graph.match_cast"(%x) : (!n) -> !k
    %1 = "graph.exp"(%0) : (!k) -> !k
    %2 = "graph.match_cast"(%x) : (!n) -> !m
    "graph.call"(%1) {callee = @use, operandSegmentSizes = #in1, resultSegmentSizes = #out} : (!k) -> ()
  } else {
    %0 = "graph.match_cast"(%y) : (!m) -> !k
    %1 = "graph.negative"(%0) : (!k) -> !k
    %2 = "graph.match_cast"(%x) : (!n) -> tensor<?xf32, #graph.shape<["m + 1"]>>
    "graph.call"(%1) {callee = @use, operandSegmentSizes = #in1, resultSegmentSizes = #out} : (!k) -> ()
  }
  return
}

// -----

// What may refuse a call stays, though nobody uses what it returns.
// CHECK-LABEL: func @unused_check(
// CHECK-NEXT:    graph.tensor_to_shape(%arg0)
// CHECK-NEXT:    return %arg1
func.func @unused_check(%s: tensor<1xi64>, %x: tensor<?xf32, #graph.shape<["n"]>>) -> tensor<?xf32, #graph.shape<["n"]>> {
  %0 = "graph.tensor_to_shape"(%s) : (tensor<1xi64>) -> !graph.shape_value<["?"]>
  %1 = "graph.exp"(%x) : (tensor<?xf32, #graph.shape<["n"]>>) -> tensor<?xf32, #graph.shape<["n"]>>
  return %x : tensor<?xf32, #graph.shape<["n"]>>
}
