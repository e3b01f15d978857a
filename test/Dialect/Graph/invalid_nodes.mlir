// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-verify-dataflow
// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-verify

#in0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!n = tensor<?xf32, #graph.shape<["n"]>>
!m = tensor<?xf32, #graph.shape<["m"]>>
!k = tensor<?xf32, #graph.shape<["k"]>>
!nm = tensor<?x?xf32, #graph.shape<["n", "m"]>>
func.func private @twice(%x: f32) -> f32 attributes {tir.leaf} {
  %0 = arith.addf %x, %x : f32
  return %0 : f32
}
func.func @node_c1(%x: !n) -> !n {
  // expected-error @below {{'graph.node' op runs '@missing', which is no leaf and no internal node}}
  %0 = "graph.node"(%x) {callee = @missing, grid = #graph.shape<["n"]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  return %0 : !n
}

// -----

#in0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!n = tensor<?xf32, #graph.shape<["n"]>>
!m = tensor<?xf32, #graph.shape<["m"]>>
!k = tensor<?xf32, #graph.shape<["k"]>>
!nm = tensor<?x?xf32, #graph.shape<["n", "m"]>>
func.func private @twice(%x: f32) -> f32 attributes {tir.leaf} {
  %0 = arith.addf %x, %x : f32
  return %0 : f32
}
func.func @node_c2(%x: !n) -> !n {
  // expected-error @below {{'graph.node' op expects a grid of at most 3 known dims}}
  %0 = "graph.node"(%x) {callee = @twice, grid = #graph.shape<["n", 1, 1, 1]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  return %0 : !n
}

// -----

#in0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!n = tensor<?xf32, #graph.shape<["n"]>>
!m = tensor<?xf32, #graph.shape<["m"]>>
!k = tensor<?xf32, #graph.shape<["k"]>>
!nm = tensor<?x?xf32, #graph.shape<["n", "m"]>>
func.func private @twice(%x: f32) -> f32 attributes {tir.leaf} {
  %0 = arith.addf %x, %x : f32
  return %0 : f32
}
func.func @node_c3(%x: !n) -> !n {
  // expected-error @below {{'graph.node' op expects 'edges' with one_to_one or all_to_all for each of 1 operands, but got ["one"]}}
  %0 = "graph.node"(%x) {callee = @twice, grid = #graph.shape<["n"]>, edges = ["one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  return %0 : !n
}

// -----

// The callee's one parameter is bound twice.
#in0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!n = tensor<?xf32, #graph.shape<["n"]>>
!m = tensor<?xf32, #graph.shape<["m"]>>
!k = tensor<?xf32, #graph.shape<["k"]>>
!nm = tensor<?x?xf32, #graph.shape<["n", "m"]>>
func.func private @twice(%x: f32) -> f32 attributes {tir.leaf} {
  %0 = arith.addf %x, %x : f32
  return %0 : f32
}
func.func @node_c4_double(%x: !n) -> !n {
  // expected-error @below {{'graph.node' op binds 2 operands and 1 results of '@twice', which has 1 parameters and 1 results}}
  %0 = "graph.node"(%x, %x) {callee = @twice, grid = #graph.shape<["n"]>, edges = ["one_to_one", "one_to_one"],
      operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!n, !n) -> !n
  return %0 : !n
}

// -----

#in0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!n = tensor<?xf32, #graph.shape<["n"]>>
!m = tensor<?xf32, #graph.shape<["m"]>>
!k = tensor<?xf32, #graph.shape<["k"]>>
!nm = tensor<?x?xf32, #graph.shape<["n", "m"]>>
func.func private @twice(%x: f32) -> f32 attributes {tir.leaf} {
  %0 = arith.addf %x, %x : f32
  return %0 : f32
}
func.func @node_c4_missing(%x: !n) -> !n {
  // expected-error @below {{'graph.node' op binds 0 operands and 1 results of '@twice', which has 1 parameters and 1 results}}
  %0 = "graph.node"() {callee = @twice, grid = #graph.shape<["n"]>, edges = [],
      operandSegmentSizes = #in0, resultSegmentSizes = #out1} : () -> !n
  return %0 : !n
}

// -----

#in0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!n = tensor<?xf32, #graph.shape<["n"]>>
!m = tensor<?xf32, #graph.shape<["m"]>>
!k = tensor<?xf32, #graph.shape<["k"]>>
!nm = tensor<?x?xf32, #graph.shape<["n", "m"]>>
func.func private @twice(%x: f32) -> f32 attributes {tir.leaf} {
  %0 = arith.addf %x, %x : f32
  return %0 : f32
}
func.func @node_c4_ill_typed(%x: tensor<4xi32>) -> tensor<4xf32> {
  // expected-error @below {{'graph.node' op passes 'tensor<i32>' as operand 0 to '@twice', which takes 'f32'}}
  %0 = "graph.node"(%x) {callee = @twice, grid = #graph.shape<[4]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xi32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

#in0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!n = tensor<?xf32, #graph.shape<["n"]>>
!m = tensor<?xf32, #graph.shape<["m"]>>
!k = tensor<?xf32, #graph.shape<["k"]>>
!nm = tensor<?x?xf32, #graph.shape<["n", "m"]>>
func.func private @twice(%x: f32) -> f32 attributes {tir.leaf} {
  %0 = arith.addf %x, %x : f32
  return %0 : f32
}
func.func @node_c5(%x: !n, %y: !m) -> !n {
  // expected-error @below {{'graph.node' op has dim 0 of operand 0, one_to_one, m instead of n: they differ for m = }}
  %0 = "graph.node"(%y) {callee = @twice, grid = #graph.shape<["n"]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!m) -> !n
  return %0 : !n
}

// -----

#in0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!n = tensor<?xf32, #graph.shape<["n"]>>
!m = tensor<?xf32, #graph.shape<["m"]>>
!k = tensor<?xf32, #graph.shape<["k"]>>
!nm = tensor<?x?xf32, #graph.shape<["n", "m"]>>
func.func private @both(%x: !k, %y: !k) -> f32 attributes {tir.leaf} {
  %i = arith.constant 0 : index
  %0 = tensor.extract %x[%i] : !k
  return %0 : f32
}
func.func @node_c6(%x: !n, %y: !m) -> tensor<4xf32> {
  // expected-error @below {{'graph.node' op has dim 0 of operand 1, as '@both' gets it, m instead of n: they differ for }}
  %0 = "graph.node"(%x, %y) {callee = @both, grid = #graph.shape<[4]>, edges = ["all_to_all", "all_to_all"],
      operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!n, !m) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

#in0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!n = tensor<?xf32, #graph.shape<["n"]>>
!m = tensor<?xf32, #graph.shape<["m"]>>
!k = tensor<?xf32, #graph.shape<["k"]>>
!nm = tensor<?x?xf32, #graph.shape<["n", "m"]>>
func.func private @twice(%x: f32) -> f32 attributes {tir.leaf} {
  %0 = arith.addf %x, %x : f32
  return %0 : f32
}
func.func @node_c7(%x: !n, %y: !m) -> !m {
  // expected-error @below {{'graph.node' op has dim 0 of result 0 m instead of n: they differ for }}
  %0 = "graph.node"(%x) {callee = @twice, grid = #graph.shape<["n"]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !m
  return %0 : !m
}

// -----

#in0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!n = tensor<?xf32, #graph.shape<["n"]>>
!m = tensor<?xf32, #graph.shape<["m"]>>
!k = tensor<?xf32, #graph.shape<["k"]>>
!nm = tensor<?x?xf32, #graph.shape<["n", "m"]>>
func.func private @inner(%x: tensor<f32>) -> tensor<f32> attributes {graph.internal_node} {
  %0 = "graph.node"(%x) {callee = @node_c8, grid = #graph.shape<[]>, edges = ["all_to_all"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @node_c8(%x: tensor<f32>) -> tensor<f32> attributes {graph.internal_node} {
  // expected-error @below {{'graph.node' op contains itself: @inner -> @node_c8 -> @inner}}
  %0 = "graph.node"(%x) {callee = @inner, grid = #graph.shape<[]>, edges = ["all_to_all"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

#in0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!n = tensor<?xf32, #graph.shape<["n"]>>
!m = tensor<?xf32, #graph.shape<["m"]>>
!k = tensor<?xf32, #graph.shape<["k"]>>
!nm = tensor<?x?xf32, #graph.shape<["n", "m"]>>
func.func private @asks(%x: f32) -> f32 attributes {tir.leaf} {
  // expected-error @below {{'tir.node_id' op asks for dim 1 of a grid of 1, in '@node_c9'}}
  %i = "tir.node_id"() {level = 0 : i64, dim = 1 : i64} : () -> index
  // expected-error @below {{'tir.grid_size' op asks for a node 1 levels above the outermost, in '@node_c9'}}
  %j = "tir.grid_size"() {level = 1 : i64, dim = 0 : i64} : () -> index
  return %x : f32
}
func.func @node_c9(%x: !n) -> !n {
  %0 = "graph.node"(%x) {callee = @asks, grid = #graph.shape<["n"]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  return %0 : !n
}

// -----

#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
func.func private @updates(%x: tensor<4xf32> {tir.access = "inout"}) -> tensor<4xf32> attributes {tir.leaf} {
  return %x : tensor<4xf32>
}
func.func @node_c10(%x: tensor<4xf32>) -> tensor<3x4xf32> {
  // expected-error @below {{'graph.node' op passes operand 0 all_to_all, which '@updates' stores to; expects one_to_one}}
  %0 = "graph.node"(%x) {callee = @updates, grid = #graph.shape<[3]>, edges = ["all_to_all"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// -----

#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!n = tensor<?xf32, #graph.shape<["n"]>>
func.func private @twice(%x: f32) -> f32 attributes {tir.leaf} {
  %0 = arith.addf %x, %x : f32
  return %0 : f32
}
func.func @node_c11_leaf(%x: !n) -> !n {
  // expected-error @below {{'graph.node' op runs '@twice' on tiles; expects an internal node that returns what one node over 1 static dims computes}}
  %0 = "graph.node"(%x) {callee = @twice, grid = #graph.shape<["(n + 3) floordiv 4"]>, edges = ["tiles"],
      graph.extents = #graph.shape<["n"]>,
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  return %0 : !n
}

// -----

#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!n = tensor<?xf32, #graph.shape<["n"]>>
func.func private @twice(%x: f32) -> f32 attributes {tir.leaf} {
  %0 = arith.addf %x, %x : f32
  return %0 : f32
}
func.func private @tile(%x: tensor<4xf32>) -> tensor<4xf32> attributes {graph.internal_node} {
  %0 = "graph.node"(%x) {callee = @twice, grid = #graph.shape<[4]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @node_c11_extents(%x: !n) -> !n {
  // expected-error @below {{'graph.node' op has 'graph.extents' #graph.shape<["n", 2]>; expects a known dim for each of the grid}}
  %0 = "graph.node"(%x) {callee = @tile, grid = #graph.shape<["(n + 3) floordiv 4"]>, edges = ["tiles"],
      graph.extents = #graph.shape<["n", 2]>,
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  return %0 : !n
}

// -----

#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!n = tensor<?xf32, #graph.shape<["n"]>>
func.func private @twice(%x: f32) -> f32 attributes {tir.leaf} {
  %0 = arith.addf %x, %x : f32
  return %0 : f32
}
func.func private @tile(%x: tensor<4xf32>) -> tensor<4xf32> attributes {graph.internal_node} {
  %0 = "graph.node"(%x) {callee = @twice, grid = #graph.shape<[4]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "graph.node"(%0) {callee = @twice, grid = #graph.shape<[4]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func @node_c11_two(%x: !n) -> !n {
  // expected-error @below {{'graph.node' op runs '@tile' on tiles; expects an internal node that returns what one node}}
  %0 = "graph.node"(%x) {callee = @tile, grid = #graph.shape<["(n + 3) floordiv 4"]>, edges = ["tiles"],
      graph.extents = #graph.shape<["n"]>,
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  return %0 : !n
}

// -----

#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!n = tensor<?xf32, #graph.shape<["n"]>>
func.func private @twice(%x: f32) -> f32 attributes {tir.leaf} {
  %0 = arith.addf %x, %x : f32
  return %0 : f32
}
func.func private @tile(%x: tensor<4xf32>) -> tensor<4xf32> attributes {graph.internal_node} {
  %0 = "graph.node"(%x) {callee = @twice, grid = #graph.shape<[4]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @node_c12(%x: !n) -> !n {
  // expected-error @below {{'graph.node' op has dim 0 of the grid of tiles n floordiv 4 instead of (n + 3) floordiv 4: they differ for n = 1}}
  %0 = "graph.node"(%x) {callee = @tile, grid = #graph.shape<["n floordiv 4"]>, edges = ["tiles"],
      graph.extents = #graph.shape<["n"]>,
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  return %0 : !n
}

// -----

#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!n = tensor<?xf32, #graph.shape<["n"]>>
func.func private @twice(%x: f32) -> f32 attributes {tir.leaf} {
  %0 = arith.addf %x, %x : f32
  return %0 : f32
}
func.func private @tile(%x: tensor<4xf32>) -> tensor<4xf32> attributes {graph.internal_node} {
  %0 = "graph.node"(%x) {callee = @twice, grid = #graph.shape<[4]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @node_c13(%x: tensor<?xf32, #graph.shape<["m"]>>, %y: !n) -> tensor<?xf32, #graph.shape<["m"]>> {
  // expected-error @below {{'graph.node' op has dim 0 of operand 0, tiles, m instead of n: they differ for m = 1, n = 2}}
  %0 = "graph.node"(%x) {callee = @tile, grid = #graph.shape<["(n + 3) floordiv 4"]>, edges = ["tiles"],
      graph.extents = #graph.shape<["n"]>,
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<?xf32, #graph.shape<["m"]>>) -> tensor<?xf32, #graph.shape<["m"]>>
  return %0 : tensor<?xf32, #graph.shape<["m"]>>
}

// -----

#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!n = tensor<?xf32, #graph.shape<["n"]>>
func.func private @twice(%x: f32) -> f32 attributes {tir.leaf} {
  %0 = arith.addf %x, %x : f32
  return %0 : f32
}
func.func private @first(%x: tensor<4xf32>) -> f32 attributes {tir.leaf} {
  %i = "tir.node_id"() {level = 0 : i64, dim = 0 : i64} : () -> index
  %0 = tensor.extract %x[%i] : tensor<4xf32>
  return %0 : f32
}
func.func private @tile(%x: tensor<4xf32>) -> tensor<4xf32> attributes {graph.internal_node} {
  %0 = "graph.node"(%x) {callee = @first, grid = #graph.shape<[4]>, edges = ["all_to_all"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @node_c14(%x: !n) -> !n {
  // expected-error @below {{'graph.node' op passes operand 0 of the node in '@tile' by tiles and all_to_all; expects tiles and one_to_one, or all_to_all twice}}
  %0 = "graph.node"(%x) {callee = @tile, grid = #graph.shape<["(n + 3) floordiv 4"]>, edges = ["tiles"],
      graph.extents = #graph.shape<["n"]>,
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  return %0 : !n
}

// -----

#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!n = tensor<?xf32, #graph.shape<["n"]>>
func.func private @asks(%x: f32) -> f32 attributes {tir.leaf} {
  // expected-error @below {{'tir.global_id' op asks for what tiles cover, but runs in none in '@node_c9_tiles'}}
  %i = "tir.global_id"() {level = 0 : i64, dim = 0 : i64} : () -> index
  return %x : f32
}
func.func private @inner(%x: tensor<4xf32>) -> tensor<4xf32> attributes {graph.internal_node} {
  %0 = "graph.node"(%x) {callee = @asks, grid = #graph.shape<[4]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @node_c9_tiles(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "graph.node"(%x) {callee = @inner, grid = #graph.shape<[]>, edges = ["all_to_all"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!n = tensor<?xf32, #graph.shape<["n"]>>
func.func private @twice(%x: f32) -> f32 attributes {tir.leaf} {
  %0 = arith.addf %x, %x : f32
  return %0 : f32
}
func.func @node_c3_tiles(%x: !n) -> !n {
  // expected-error @below {{'graph.node' op expects 'edges' with one_to_one or all_to_all for each of 1 operands}}
  %0 = "graph.node"(%x) {callee = @twice, grid = #graph.shape<["n"]>, edges = ["tiles"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  return %0 : !n
}

// -----

#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!x = tensor<4xf32>
func.func private @twice(%x: f32) -> f32 attributes {tir.leaf} {
  %0 = arith.addf %x, %x : f32
  return %0 : f32
}
func.func @node_c16(%x: !x) -> !x {
  // expected-error @below {{'graph.node' op has 'graph.streams' array<i1: true, true>; expects array<i1: ...> of 1 operands}}
  %0 = "graph.node"(%x) {callee = @twice, grid = #graph.shape<[4]>, edges = ["one_to_one"],
      graph.streams = array<i1: true, true>, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!x) -> !x
  return %0 : !x
}

// -----

#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!x = tensor<4xf32>
func.func private @twice(%x: f32) -> f32 attributes {tir.leaf} {
  %0 = arith.addf %x, %x : f32
  return %0 : f32
}
func.func private @node_c16_internal(%x: !x) -> !x attributes {graph.internal_node} {
  // expected-error @below {{'graph.node' op has 'graph.streams', but is no node of a graph function itself}}
  %0 = "graph.node"(%x) {callee = @twice, grid = #graph.shape<[4]>, edges = ["one_to_one"],
      graph.streams = array<i1: true>, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!x) -> !x
  return %0 : !x
}
