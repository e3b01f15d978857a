// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='relax-lower-calls'

func.func private @fill(%out: tensor<4xf32>) -> tensor<4xf32> attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %0 = linalg.fill ins(%zero : f32) outs(%out : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

func.func @argument_of_the_caller(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'graph.call_tir_inplace' op overwrites argument 0, which is not marked graph.inout}}
  %0 = "graph.call_tir_inplace"(%x) {callee = @fill, inplace_indices = array<i64: 0>, sym_args = #graph.shape<[]>, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func private @fill(%out: tensor<4xf32>) -> tensor<4xf32> attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %0 = linalg.fill ins(%zero : f32) outs(%out : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

func.func @view_of_an_argument(%x: tensor<2x2xf32>) -> tensor<4xf32> {
  %flat = "graph.view"(%x) : (tensor<2x2xf32>) -> tensor<4xf32>
  // expected-error @below {{overwrites argument 0, which is not marked graph.inout}}
  %0 = "graph.call_tir_inplace"(%flat) {callee = @fill, inplace_indices = array<i64: 0>, sym_args = #graph.shape<[]>, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func private @fill(%out: tensor<4xf32>) -> tensor<4xf32> attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %0 = linalg.fill ins(%zero : f32) outs(%out : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

func.func @constant() -> tensor<4xf32> {
  %x = arith.constant dense<1.0> : tensor<4xf32>
  // expected-error @below {{overwrites operand 0, which is a constant}}
  %0 = "graph.call_tir_inplace"(%x) {callee = @fill, inplace_indices = array<i64: 0>, sym_args = #graph.shape<[]>, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func private @fill(%out: tensor<4xf32>) -> tensor<4xf32> attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %0 = linalg.fill ins(%zero : f32) outs(%out : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

func.func @read_afterwards(%x: tensor<4xf32> {graph.inout = 0 : i64}) -> (tensor<4xf32>, tensor<4xf32>) {
  // expected-error @below {{overwrites operand 0, which is read later}}
  %0 = "graph.call_tir_inplace"(%x) {callee = @fill, inplace_indices = array<i64: 0>, sym_args = #graph.shape<[]>, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf32>) -> tensor<4xf32>
  // expected-note @below {{it is read here}}
  return %0, %x : tensor<4xf32>, tensor<4xf32>
}
