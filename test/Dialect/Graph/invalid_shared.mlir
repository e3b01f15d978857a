// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-verify-dataflow
// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-split-leaves

// S1: results are the new values.
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
#out2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>
#up = array<i32: 1, 1, 1>
!k = tensor<?xi32, #graph.shape<["k"]>>
!n = tensor<?xi32, #graph.shape<["n"]>>
  // expected-error @below {{'func.func' op shares parameter 0 of 'tensor<?xf32, #graph.shape<["k"]>>'; expects a tensor of integers}}
func.func private @leaf(%bins: tensor<?xf32, #graph.shape<["k"]>> {tir.access = "shared"}, %x: f32) -> f32 attributes {tir.leaf} {
  return %x : f32
}

// -----

// S1: a parameter is updated by each instance alone, or by all.
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
#out2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>
#up = array<i32: 1, 1, 1>
!k = tensor<?xi32, #graph.shape<["k"]>>
!n = tensor<?xi32, #graph.shape<["n"]>>
  // expected-error @below {{'func.func' op has parameters that are shared, and others that are inout}}
func.func private @leaf(%a: tensor<2xi32> {tir.access = "shared"}, %b: tensor<2xi32> {tir.access = "inout"})
    -> (tensor<2xi32>, tensor<2xi32>) attributes {tir.leaf} {
  return %a, %b : tensor<2xi32>, tensor<2xi32>
}

// -----

// S1
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
#out2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>
#up = array<i32: 1, 1, 1>
!k = tensor<?xi32, #graph.shape<["k"]>>
!n = tensor<?xi32, #graph.shape<["n"]>>
func.func private @leaf(%a: !k {tir.access = "shared"}, %b: !k {tir.access = "shared"}) -> (!k, !k) attributes {tir.leaf} {
  // expected-error @below {{'func.return' op returns as result 0 what is not parameter 0, shared}}
  // expected-error @below {{'func.return' op returns as result 1 what is not parameter 1, shared}}
  return %b, %a : !k, !k
}

// -----

// S2: a kind that there is not.
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
#out2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>
#up = array<i32: 1, 1, 1>
!k = tensor<?xi32, #graph.shape<["k"]>>
!n = tensor<?xi32, #graph.shape<["n"]>>
func.func private @leaf(%bins: !k {tir.access = "shared"}, %x: i32) -> !k attributes {tir.leaf} {
  %i = arith.index_cast %x : i32 to index
  // expected-error @below {{'tir.atomic' op is of the kind "mul"; accepted are add, sub, min, max, and, or, xor, exchange}}
  %1 = "tir.atomic"(%x, %bins, %i) {kind = "mul", operandSegmentSizes = #up} : (i32, !k, index) -> !k
  return %1 : !k
}
func.func @main(%bins: !k, %x: !n) -> !k {
  %0 = "graph.node"(%bins, %x) {callee = @leaf, grid = #graph.shape<["n"]>,
      edges = ["all_to_all", "one_to_one"], operandSegmentSizes = #in2,
      resultSegmentSizes = #out1} : (!k, !n) -> !k
  return %0 : !k
}

// -----

// S2: an index too few.
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
#out2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>
#up = array<i32: 1, 1, 1>
!k = tensor<?xi32, #graph.shape<["k"]>>
!n = tensor<?xi32, #graph.shape<["n"]>>
func.func private @leaf(%bins: !k {tir.access = "shared"}, %x: i32) -> !k attributes {tir.leaf} {
  %i = arith.index_cast %x : i32 to index
  // expected-error @below {{'tir.atomic' op updates 'tensor<?xi32, #graph.shape<["k"]>>' at 0 indices; expects 1}}
  %1 = "tir.atomic"(%x, %bins) {kind = "add", operandSegmentSizes = array<i32: 1, 1, 0>} : (i32, !k) -> !k
  return %1 : !k
}
func.func @main(%bins: !k, %x: !n) -> !k {
  %0 = "graph.node"(%bins, %x) {callee = @leaf, grid = #graph.shape<["n"]>,
      edges = ["all_to_all", "one_to_one"], operandSegmentSizes = #in2,
      resultSegmentSizes = #out1} : (!k, !n) -> !k
  return %0 : !k
}

// -----

// S2: a store is of one instance.
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
#out2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>
#up = array<i32: 1, 1, 1>
!k = tensor<?xi32, #graph.shape<["k"]>>
!n = tensor<?xi32, #graph.shape<["n"]>>
func.func private @leaf(%bins: !k {tir.access = "shared"}, %x: i32) -> !k attributes {tir.leaf} {
  %i = arith.index_cast %x : i32 to index
  // expected-error @below {{'tensor.insert' op stores to parameter 0, which is shared; expects tir.atomic}}
  // expected-error @below {{'tensor.insert' op has 'tensor<?xi32, #graph.shape<["k"]>>' in a leaf; tensor.extract reads}}
  %1 = tensor.insert %x into %bins[%i] : !k
  return %1 : !k
}
func.func @main(%bins: !k, %x: !n) -> !k {
  %0 = "graph.node"(%bins, %x) {callee = @leaf, grid = #graph.shape<["n"]>,
      edges = ["all_to_all", "one_to_one"], operandSegmentSizes = #in2,
      resultSegmentSizes = #out1} : (!k, !n) -> !k
  return %0 : !k
}

// -----

// S3: the order of a sum and a product of bits matters.
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
#out2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>
#up = array<i32: 1, 1, 1>
!k = tensor<?xi32, #graph.shape<["k"]>>
!n = tensor<?xi32, #graph.shape<["n"]>>
func.func private @leaf(%bins: !k {tir.access = "shared"}, %x: i32) -> !k attributes {tir.leaf} {
  %i = arith.index_cast %x : i32 to index
  %0 = "tir.atomic"(%x, %bins, %i) {kind = "add", operandSegmentSizes = #up} : (i32, !k, index) -> !k
  // expected-error @below {{'tir.atomic' op is of the kind xor where there is add: their order would matter; expects a barrier in between}}
  %1 = "tir.atomic"(%x, %0, %i) {kind = "xor", operandSegmentSizes = #up} : (i32, !k, index) -> !k
  return %1 : !k
}
func.func @main(%bins: !k, %x: !n) -> !k {
  %0 = "graph.node"(%bins, %x) {callee = @leaf, grid = #graph.shape<["n"]>,
      edges = ["all_to_all", "one_to_one"], operandSegmentSizes = #in2,
      resultSegmentSizes = #out1} : (!k, !n) -> !k
  return %0 : !k
}

// -----

// S4
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
#out2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>
#up = array<i32: 1, 1, 1>
!k = tensor<?xi32, #graph.shape<["k"]>>
!n = tensor<?xi32, #graph.shape<["n"]>>
func.func private @leaf(%bins: !k {tir.access = "shared"}, %x: i32) -> !k attributes {tir.leaf} {
  %i = arith.index_cast %x : i32 to index
  %0 = "tir.atomic"(%x, %bins, %i) {kind = "min", operandSegmentSizes = #up} : (i32, !k, index) -> !k
  // expected-error @below {{'tensor.extract' op reads what instances update; expects a barrier in between}}
  %2 = tensor.extract %0[%i] : !k
  %1 = "tir.atomic"(%2, %0, %i) {kind = "min", operandSegmentSizes = #up} : (i32, !k, index) -> !k
  return %1 : !k
}
func.func @main(%bins: !k, %x: !n) -> !k {
  %0 = "graph.node"(%bins, %x) {callee = @leaf, grid = #graph.shape<["n"]>,
      edges = ["all_to_all", "one_to_one"], operandSegmentSizes = #in2,
      resultSegmentSizes = #out1} : (!k, !n) -> !k
  return %0 : !k
}

// -----

// S5: each instance would exchange its own index.
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
#out2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>
#up = array<i32: 1, 1, 1>
!k = tensor<?xi32, #graph.shape<["k"]>>
!n = tensor<?xi32, #graph.shape<["n"]>>
func.func private @leaf(%bins: !k {tir.access = "shared"}, %x: i32) -> !k attributes {tir.leaf} {
  %i = arith.index_cast %x : i32 to index
  %id = "tir.node_id"() {level = 0 : i64, dim = 0 : i64} : () -> index
  %v = arith.index_cast %id : index to i32
  // expected-error @below {{'tir.atomic' op exchanges an element for a value that instances may not have in common; expects one of constants, extents and parameters}}
  %1 = "tir.atomic"(%v, %bins, %i) {kind = "exchange", operandSegmentSizes = #up} : (i32, !k, index) -> !k
  return %1 : !k
}
func.func @main(%bins: !k, %x: !n) -> !k {
  %0 = "graph.node"(%bins, %x) {callee = @leaf, grid = #graph.shape<["n"]>,
      edges = ["all_to_all", "one_to_one"], operandSegmentSizes = #in2,
      resultSegmentSizes = #out1} : (!k, !n) -> !k
  return %0 : !k
}

// -----

// S5: two values, of which the last one would win.
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
#out2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>
#up = array<i32: 1, 1, 1>
!k = tensor<?xi32, #graph.shape<["k"]>>
!n = tensor<?xi32, #graph.shape<["n"]>>
func.func private @leaf(%bins: !k {tir.access = "shared"}, %x: i32) -> !k attributes {tir.leaf} {
  %i = arith.index_cast %x : i32 to index
  %c = arith.constant 1 : i32
  %d = arith.constant 2 : i32
  %0 = "tir.atomic"(%c, %bins, %i) {kind = "exchange", operandSegmentSizes = #up} : (i32, !k, index) -> !k
  // expected-error @below {{'tir.atomic' op is a second update where there is an exchange, which has to be alone}}
  %1 = "tir.atomic"(%d, %0, %i) {kind = "exchange", operandSegmentSizes = #up} : (i32, !k, index) -> !k
  return %1 : !k
}
func.func @main(%bins: !k, %x: !n) -> !k {
  %0 = "graph.node"(%bins, %x) {callee = @leaf, grid = #graph.shape<["n"]>,
      edges = ["all_to_all", "one_to_one"], operandSegmentSizes = #in2,
      resultSegmentSizes = #out1} : (!k, !n) -> !k
  return %0 : !k
}

// -----

// S6: in divergent code.
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
#out2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>
#up = array<i32: 1, 1, 1>
!k = tensor<?xi32, #graph.shape<["k"]>>
!n = tensor<?xi32, #graph.shape<["n"]>>
func.func private @leaf(%bins: !k {tir.access = "shared"}, %x: i32) -> !k attributes {tir.leaf} {
  %i = arith.index_cast %x : i32 to index
  %c0 = arith.constant 0 : i32
  %c = arith.cmpi sgt, %x, %c0 : i32
  %1 = scf.if %c -> !k {
  // expected-error @below {{'tir.barrier' op is in a branch or a loop, which instances may run differently; expects it in the outermost block of the leaf}}
  %2 = "tir.barrier"(%bins) : (!k) -> !k
    scf.yield %2 : !k
  } else {
    scf.yield %bins : !k
  }
  return %bins : !k
}
func.func @main(%bins: !k, %x: !n) -> !k {
  %0 = "graph.node"(%bins, %x) {callee = @leaf, grid = #graph.shape<["n"]>,
      edges = ["all_to_all", "one_to_one"], operandSegmentSizes = #in2,
      resultSegmentSizes = #out1} : (!k, !n) -> !k
  return %0 : !k
}

// -----

// S6: one of two.
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
#out2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>
#up = array<i32: 1, 1, 1>
!k = tensor<?xi32, #graph.shape<["k"]>>
!n = tensor<?xi32, #graph.shape<["n"]>>
func.func private @leaf(%a: !k {tir.access = "shared"}, %b: !k {tir.access = "shared"}) -> (!k, !k) attributes {tir.leaf} {
  // expected-error @below {{'tir.barrier' op expects barriers of the 2 shared parameters, in their order}}
  %0 = "tir.barrier"(%a) : (!k) -> !k
  return %0, %b : !k, !k
}

// -----

// S7
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
#out2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>
#up = array<i32: 1, 1, 1>
!k = tensor<?xi32, #graph.shape<["k"]>>
!n = tensor<?xi32, #graph.shape<["n"]>>
func.func private @leaf(%bins: !k {tir.access = "shared"}, %x: i32) -> !k attributes {tir.leaf} {
  %i = arith.index_cast %x : i32 to index
  %0 = "tir.atomic"(%x, %bins, %i) {kind = "add", operandSegmentSizes = #up} : (i32, !k, index) -> !k
  %1 = "tir.barrier"(%0) : (!k) -> !k
  // expected-error @below {{'tir.atomic' op uses what was there before a barrier; expects what the barrier returns}}
  %2 = "tir.atomic"(%x, %bins, %i) {kind = "add", operandSegmentSizes = #up} : (i32, !k, index) -> !k
  return %1 : !k
}
func.func @main(%bins: !k, %x: !n) -> !k {
  %0 = "graph.node"(%bins, %x) {callee = @leaf, grid = #graph.shape<["n"]>,
      edges = ["all_to_all", "one_to_one"], operandSegmentSizes = #in2,
      resultSegmentSizes = #out1} : (!k, !n) -> !k
  return %0 : !k
}

// -----

// C15 of graph.node: shared by all.
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
#out2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>
#up = array<i32: 1, 1, 1>
!k = tensor<?xi32, #graph.shape<["k"]>>
!n = tensor<?xi32, #graph.shape<["n"]>>
!nk = tensor<?x?xi32, #graph.shape<["n", "k"]>>
func.func private @leaf(%bins: !k {tir.access = "shared"}, %x: i32) -> !k attributes {tir.leaf} {
  %i = arith.index_cast %x : i32 to index
  %1 = "tir.atomic"(%x, %bins, %i) {kind = "add", operandSegmentSizes = #up} : (i32, !k, index) -> !k
  return %1 : !k
}
func.func @node_c15(%bins: !nk, %x: !n) -> !k {
  // expected-error @below {{'graph.node' op passes operand 0 one_to_one, which instances of '@leaf' share; expects all_to_all}}
  %0 = "graph.node"(%bins, %x) {callee = @leaf, grid = #graph.shape<["n"]>,
      edges = ["one_to_one", "one_to_one"], operandSegmentSizes = #in2,
      resultSegmentSizes = #out1} : (!nk, !n) -> !k
  return %0 : !k
}

// -----

// C15: what is exchanged is the same for all.
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
#out2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>
#up = array<i32: 1, 1, 1>
!k = tensor<?xi32, #graph.shape<["k"]>>
!n = tensor<?xi32, #graph.shape<["n"]>>
func.func private @leaf(%bins: !k {tir.access = "shared"}, %x: i32) -> !k attributes {tir.leaf} {
  %i = arith.index_cast %x : i32 to index
  %1 = "tir.atomic"(%x, %bins, %i) {kind = "exchange", operandSegmentSizes = #up} : (i32, !k, index) -> !k
  return %1 : !k
}
func.func @node_c15(%bins: !k, %x: !n) -> !k {
  // expected-error @below {{'graph.node' op passes operand 1 one_to_one, which instances of '@leaf' share; expects all_to_all}}
  %0 = "graph.node"(%bins, %x) {callee = @leaf, grid = #graph.shape<["n"]>,
      edges = ["all_to_all", "one_to_one"], operandSegmentSizes = #in2,
      resultSegmentSizes = #out1} : (!k, !n) -> !k
  return %0 : !k
}

// -----

// C11: tiles of a node whose instances share memory.
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!k = tensor<?xi32, #graph.shape<["k"]>>
!n = tensor<?xi32, #graph.shape<["n"]>>
func.func private @leaf(%bins: !k {tir.access = "shared"}, %x: i32) -> !k attributes {tir.leaf} {
  return %bins : !k
}
func.func private @tile(%bins: !k, %x: tensor<4xi32>) -> !k attributes {graph.internal_node} {
  %0 = "graph.node"(%bins, %x) {callee = @leaf, grid = #graph.shape<[4]>,
      edges = ["all_to_all", "one_to_one"], operandSegmentSizes = #in2,
      resultSegmentSizes = #out1} : (!k, tensor<4xi32>) -> !k
  return %0 : !k
}
func.func @node_c11_shared(%bins: !k, %x: !n) -> !k {
  // expected-error @below {{'graph.node' op runs tiles of '@leaf', whose instances share memory}}
  %0 = "graph.node"(%bins, %x) {callee = @tile, grid = #graph.shape<["(n + 3) floordiv 4"]>,
      edges = ["all_to_all", "tiles"], graph.extents = #graph.shape<["n"]>,
      operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!k, !n) -> !k
  return %0 : !k
}
