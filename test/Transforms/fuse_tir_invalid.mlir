// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-fuse-tir

#one     = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#one_out = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
func.func private @negative_callee(%x: tensor<4xf32>) -> tensor<4xf32> attributes {graph.primitive} {
  // expected-error @below {{'graph.call_tir' op calls '@nowhere', which is not a tensor program}}
  %0 = "graph.call_tir"(%x) {callee = @nowhere, sym_args = #graph.shape<[]>, operandSegmentSizes = #one, resultSegmentSizes = #one_out} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func private @negative_operator(%x: tensor<4xf32>) -> tensor<4xf32> attributes {graph.primitive} {
  // expected-error @below {{'graph.exp' op cannot be in a primitive function}}
  %0 = "graph.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

#one     = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#one_out = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!v = tensor<?xf32, #graph.shape<["n"]>>
!w = tensor<?xf32, #graph.shape<["m"]>>
func.func private @k(%x: !v, %out: !w) -> !w attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  return %out : !w
}
func.func private @negative_symbol(%x: !v) -> !w attributes {graph.primitive} {
  // expected-error @below {{'graph.call_tir' op uses the symbol 'm', which nothing binds}}
  %0 = "graph.call_tir"(%x) {callee = @k, sym_args = #graph.shape<[]>, operandSegmentSizes = #one, resultSegmentSizes = #one_out} : (!v) -> !w
  %1 = "graph.call_tir"(%x) {callee = @k, sym_args = #graph.shape<[]>, operandSegmentSizes = #one, resultSegmentSizes = #one_out} : (!v) -> !w
  return %1 : !w
}

// -----

func.func private @negative_returned_twice(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {graph.primitive} {
  // expected-error @below {{'func.return' op returns a value twice}}
  return %x, %x : tensor<4xf32>, tensor<4xf32>
}
