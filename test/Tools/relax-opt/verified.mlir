// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-fuse-ops

// A pass that relies on the rules of the dialects does not see what breaks them.
func.func @negative_operator(%x: tensor<4x8xf32>) {
  // expected-error @below {{'graph.matmul' op contracts dim 8 of lhs with dim 4 of rhs}}
  %0 = "graph.matmul"(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}
