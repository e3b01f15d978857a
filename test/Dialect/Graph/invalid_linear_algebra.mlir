// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(relax-verify)'

func.func @matmul_c1(%x: tensor<4xf32>, %y: tensor<4x3xf32>) {
  // expected-error @below {{'graph.matmul' op expects operands of rank 2 or more, but got 'tensor<4 x f32>' and 'tensor<4 x 3 x f32>'}}
  %0 = "graph.matmul"(%x, %y) : (tensor<4xf32>, tensor<4x3xf32>) -> tensor<3xf32>
  return
}

func.func @matmul_c2(%x: tensor<2x4xf32>, %y: tensor<4x3xf16>) {
  // expected-error @below {{'graph.matmul' op expects one element type, but got f32 and f16}}
  %0 = "graph.matmul"(%x, %y) : (tensor<2x4xf32>, tensor<4x3xf16>) -> tensor<2x3xf32>
  return
}

func.func @matmul_c2_bool(%x: tensor<2x4xi1>, %y: tensor<4x3xi1>) {
  // expected-error @below {{'graph.matmul' op expects a number element type, but got i1}}
  %0 = "graph.matmul"(%x, %y) : (tensor<2x4xi1>, tensor<4x3xi1>) -> tensor<2x3xi1>
  return
}

func.func @matmul_c3(%x: tensor<4x8xf32>, %y: tensor<9x2xf32>) {
  // expected-error @below {{'graph.matmul' op contracts dim 8 of lhs with dim 9 of rhs}}
  %0 = "graph.matmul"(%x, %y) : (tensor<4x8xf32>, tensor<9x2xf32>) -> tensor<4x2xf32>
  return
}

func.func @matmul_c3_symbolic(%x: tensor<?x?xf32, #graph.shape<["n", "k"]>>, %y: tensor<?x2xf32, #graph.shape<["k + 1", 2]>>) {
  // expected-error @below {{'graph.matmul' op contracts dim k of lhs with dim k + 1 of rhs}}
  %0 = "graph.matmul"(%x, %y) : (tensor<?x?xf32, #graph.shape<["n", "k"]>>, tensor<?x2xf32, #graph.shape<["k + 1", 2]>>) -> tensor<?x2xf32, #graph.shape<["n", 2]>>
  return
}

func.func @matmul_c4(%x: tensor<2x4x8xf32>, %y: tensor<3x8x2xf32>) {
  // expected-error @below {{'graph.matmul' op cannot broadcast dim 2 with dim 3}}
  %0 = "graph.matmul"(%x, %y) : (tensor<2x4x8xf32>, tensor<3x8x2xf32>) -> tensor<2x4x2xf32>
  return
}
