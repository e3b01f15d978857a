// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-quantize='scheme=q4_32 min-size=32'

!x = tensor<?x40xf32, #graph.shape<["n", 40]>>

// What cannot be quantised stays as it is, and says why.
func.func @negative_length(%x: !x,
    // expected-remark @below {{'w' is not quantised: its contracted dim is 40, which is not a multiple of 32}}
    %w: tensor<40x64xf32> {graph.name = "w"},
    %v: tensor<64x40xf32>) -> !x attributes {graph.num_inputs = 1 : i64} {
  %0 = "graph.matmul"(%x, %w) : (!x, tensor<40x64xf32>) -> tensor<?x64xf32, #graph.shape<["n", 64]>>
  %1 = "graph.matmul"(%0, %v) : (tensor<?x64xf32, #graph.shape<["n", 64]>>, tensor<64x40xf32>) -> !x
  return %1 : !x
}

// -----

// expected-remark @below {{no weight is quantised; parameters begin at 'graph.num_inputs'}}
module {
  func.func @negative_reader(%x: tensor<4x64xf32>,
      // expected-remark @below {{'w' is not quantised: it is read by 'graph.exp', in a way that cannot decode}}
      %w: tensor<64x64xf32> {graph.name = "w"}) -> tensor<64x64xf32> attributes {graph.num_inputs = 1 : i64} {
    %0 = "graph.matmul"(%x, %w) : (tensor<4x64xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
    %1 = "graph.exp"(%w) : (tensor<64x64xf32>) -> tensor<64x64xf32>
    return %1 : tensor<64x64xf32>
  }
}

// -----

// expected-remark @below {{no weight is quantised}}
module {
  func.func @negative_left_side(
      // expected-remark @below {{'w' is not quantised: it is read by 'graph.matmul'}}
      %w: tensor<64x64xf32> {graph.name = "w"}) -> tensor<64x64xf32> attributes {graph.num_inputs = 0 : i64} {
    %0 = "graph.matmul"(%w, %w) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    return %0 : tensor<64x64xf32>
  }
}

// -----

!y = tensor<?x64xf32, #graph.shape<["n", 64]>>

// expected-remark @below {{no weight is quantised}}
module {
  func.func @negative_both_dims(%i: tensor<?xi32, #graph.shape<["n"]>>,
      // expected-remark @below {{'w' is not quantised: its rows and its columns are both multiplied or taken}}
      %w: tensor<64x64xf32> {graph.name = "w"}) -> !y attributes {graph.num_inputs = 1 : i64} {
    %0 = "graph.take"(%w, %i) {axis = 0 : i64} : (tensor<64x64xf32>, tensor<?xi32, #graph.shape<["n"]>>) -> !y
    %1 = "graph.matmul"(%0, %w) : (!y, tensor<64x64xf32>) -> !y
    return %1 : !y
  }
}

// -----

// expected-remark @below {{no weight is quantised}}
module {
  func.func @negative_symbolic(%x: tensor<4x?xf32, #graph.shape<[4, "k"]>>,
      // expected-remark @below {{'w' is not quantised: 'tensor<k x 64 x f32>' has an unknown dim}}
      %w: tensor<?x64xf32, #graph.shape<["k", 64]>> {graph.name = "w"}) -> tensor<4x64xf32> attributes {graph.num_inputs = 1 : i64} {
    %0 = "graph.matmul"(%x, %w) : (tensor<4x?xf32, #graph.shape<[4, "k"]>>, tensor<?x64xf32, #graph.shape<["k", 64]>>) -> tensor<4x64xf32>
    return %0 : tensor<4x64xf32>
  }
}

// -----

// No parameters, no constants.
// expected-remark @below {{no weight is quantised}}
module {
  func.func @negative_arguments(%x: tensor<4x64xf32>, %w: tensor<64x64xf32>) -> tensor<4x64xf32> {
    %0 = "graph.matmul"(%x, %w) : (tensor<4x64xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
    return %0 : tensor<4x64xf32>
  }
}

// -----

// expected-error @below {{has the name of what makes the parameters of '@main'}}
func.func @main_quantize(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

func.func @main(%x: tensor<4x64xf32>, %w: tensor<64x64xf32>) -> tensor<4x64xf32> attributes {graph.num_inputs = 1 : i64} {
  %0 = "graph.matmul"(%x, %w) : (tensor<4x64xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
  return %0 : tensor<4x64xf32>
}
