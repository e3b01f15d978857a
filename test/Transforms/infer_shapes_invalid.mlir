// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-infer-shapes

func.func @negative_rule(%x: tensor<?x4xf32, #graph.shape<["n", 4]>>, %w: tensor<5x8xf32>) {
  // expected-error @below {{'graph.matmul' op contracts dim 4 of lhs with dim 5 of rhs}}
  %0 = "graph.matmul"(%x, %w) : (tensor<?x4xf32, #graph.shape<["n", 4]>>, tensor<5x8xf32>) -> tensor<?x?xf32>
  return
}

// -----

// The contradiction shows once the first op's result is known.
func.func @negative_contradiction(%x: tensor<?xf32, #graph.shape<["n"]>>) {
  %0 = "graph.exp"(%x) : (tensor<?xf32, #graph.shape<["n"]>>) -> tensor<?xf32>
  // expected-error @below {{'graph.exp' op infers result type}}
  %1 = "graph.exp"(%0) : (tensor<?xf32>) -> tensor<?xf32, #graph.shape<["n + 1"]>>
  return
}
