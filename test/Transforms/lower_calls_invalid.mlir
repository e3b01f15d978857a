// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='relax-lower-calls'

#in1  = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2  = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
#out2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>
#no   = #graph.shape<[]>

func.func private @fill(%out: tensor<?xf32>) -> tensor<?xf32> attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  return %out : tensor<?xf32>
}

func.func @copy_of_unknown_size(%x: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error @below {{'graph.call_tir_inplace' op needs a copy of 'tensor<?xf32>', whose size is not known}}
  %0 = "graph.call_tir_inplace"(%x) {callee = @fill, inplace_indices = array<i64: 0>, sym_args = #no, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// expected-error @below {{'func.func' op has argument 0 updated as result 1, of 1}}
func.func @no_such_result(%x: tensor<4xf32> {graph.inout = 1 : i64}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

#none = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>

func.func private @shape() -> !graph.shape_value<[4]> attributes {graph.noinline} {
  %0 = "graph.make_shape"() {dims = #graph.shape<[4]>} : () -> !graph.shape_value<[4]>
  return %0 : !graph.shape_value<[4]>
}

func.func @call_of_a_shape() {
  // expected-error @below {{'graph.call' op returns '!graph.shape_value<[4]>', but '@shape', which is not inlined, can return tensors of dims that its caller knows only, and scalars}}
  %0 = "graph.call"() {callee = @shape, operandSegmentSizes = #none, resultSegmentSizes = #out1} : () -> !graph.shape_value<[4]>
  return
}
