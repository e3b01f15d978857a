// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-verify-dataflow

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
func.func private @internal(%x: !n) -> !n attributes {graph.internal_node} {
  // expected-error @below {{'arith.constant' op cannot be in an internal node, which has nodes only}}
  %c = arith.constant 1.0 : f32
  %0 = "graph.node"(%x) {callee = @twice, grid = #graph.shape<["n"]>, edges = ["one_to_one"],
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
func.func private @leaf(%x: !n) -> f32 attributes {tir.leaf} {
  // expected-error @below {{'graph.node' op cannot be in a leaf; expects an internal node}}
  %0 = "graph.node"(%x) {callee = @twice, grid = #graph.shape<["n"]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  %i = arith.constant 0 : index
  %1 = tensor.extract %0[%i] : !n
  return %1 : f32
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
// expected-error @below {{'func.func' op is a node, which only nodes run; expects sym_visibility = "private"}}
func.func @public(%x: f32) -> f32 attributes {tir.leaf} {
  return %x : f32
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
// expected-error @below {{'func.func' op is a node without results, so that nothing could use it}}
func.func private @empty(%x: f32) attributes {tir.leaf} {
  return
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
func.func private @passes(%x: !n) -> !n attributes {graph.internal_node} {
  // expected-error @below {{'func.return' op returns operand 0, an argument, which no node of it computes}}
  return %x : !n
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
// expected-error @below {{'func.func' op has 'index'; a leaf takes and returns scalars and ranked tensors}}
func.func private @endless(%x: f32, %n: index) -> f32 attributes {tir.leaf} {
  return %x : f32
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
func.func private @loops(%x: f32) -> f32 attributes {tir.leaf} {
  %zero = arith.constant 0 : index
  %size = "tir.grid_size"() {level = 0 : i64, dim = 0 : i64} : () -> index
  // expected-error @below {{'scf.for' op has a step that is no constant above 0, so it may not end}}
  %0 = scf.for %i = %zero to %size step %zero iter_args(%y = %x) -> f32 {
    scf.yield %y : f32
  }
  return %0 : f32
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
func.func private @stores(%x: !n, %v: f32) -> f32 attributes {tir.leaf} {
  %i = arith.constant 0 : index
  // expected-error @below {{'tensor.insert' op stores to parameter 0, which is in; expects tir.access = "inout"}}
  // expected-error @below {{'tensor.insert' op has 'tensor<?xf32, #graph.shape<["n"]>>' in a leaf}}
  %0 = tensor.insert %v into %x[%i] : !n
  return %v : f32
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
func.func @called(%x: f32) -> f32 {
  // expected-error @below {{'graph.call' op calls '@twice', which is a node; expects graph.node}}
  %0 = "graph.call"(%x) {callee = @twice, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (f32) -> f32
  return %0 : f32
}

// -----

// expected-error @below {{'func.func' op has 'tir.targets' ["abacus"]; expects a leaf with some of cpu, gpu, cuda, vulkan, webgpu}}
func.func private @hinted(%x: f32) -> f32 attributes {tir.leaf, tir.targets = ["abacus"]} {
  return %x : f32
}

// -----

func.func private @stores_in_a_loop(%x: tensor<4xf32>, %v: f32) -> tensor<4xf32> attributes {tir.leaf} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = "tir.grid_size"() {level = 0 : i64, dim = 0 : i64} : () -> index
  %0 = scf.for %i = %zero to %n step %one iter_args(%y = %x) -> tensor<4xf32> {
    // expected-error @below {{'tensor.insert' op stores to parameter 0, which is in; expects tir.access = "inout"}}
    %1 = tensor.insert %v into %y[%i] : tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

// expected-error @below {{'func.func' op has parameter 0 of 'f32', which is inout; expects a static tensor that is result 0 too}}
func.func private @scalar(%x: f32 {tir.access = "inout"}) -> f32 attributes {tir.leaf} {
  return %x : f32
}

// -----

// expected-error @below {{'func.func' op has 'tir.access' out; expects in, inout or shared}}
func.func private @out(%x: tensor<4xf32> {tir.access = "out"}) -> tensor<4xf32> attributes {tir.leaf} {
  return %x : tensor<4xf32>
}

// -----

func.func private @none(%x: tensor<0xf32> {tir.access = "inout"}, %v: f32) -> tensor<0xf32> attributes {tir.leaf} {
  %zero = arith.constant 0 : index
  // expected-error @below {{'tensor.insert' op stores to 'tensor<0xf32>', which has no element}}
  %0 = tensor.insert %v into %x[%zero] : tensor<0xf32>
  return %0 : tensor<0xf32>
}
