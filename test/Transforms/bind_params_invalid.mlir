// RUN: relax-opt --relax-bind-params --relax-verify --split-input-file --verify-diagnostics %s

!m = tensor<?xf32, #graph.shape<["m"]>>
!mm = tensor<?xf32, #graph.shape<["2*m"]>>
// expected-error @below {{the value of argument 1 'arg1' has 5 in dim 0, but 6 is expected}}
func.func @conflict(%a: !m {graph.value = dense<1.0> : tensor<3xf32>}, %b: !mm {graph.value = dense<2.0> : tensor<5xf32>}) -> !m {
  return %a : !m
}

// -----

// expected-error @below {{the value of argument 0 'w' has 3 in dim 1, but 4 is expected}}
func.func @known(%w: tensor<2x4xf32> {graph.name = "w", graph.value = dense<1.0> : tensor<2x3xf32>}) -> tensor<2x4xf32> {
  return %w : tensor<2x4xf32>
}

// -----

// expected-error @below {{the value of argument 0 'arg0' has elements of f64 instead of f32}}
func.func @element(%w: tensor<2xf32> {graph.value = dense<1.0> : tensor<2xf64>}) -> tensor<2xf32> {
  return %w : tensor<2xf32>
}

// -----

// expected-error @below {{the value of argument 0 'arg0' has rank 1 instead of 2}}
func.func @rank(%w: tensor<?x?xf32> {graph.value = dense<1.0> : tensor<2xf32>}) -> tensor<?x?xf32> {
  return %w : tensor<?x?xf32>
}

// -----

!m = tensor<?xf32, #graph.shape<["m"]>>
// expected-error @below {{requires m <= 2, but m = 3 from the given values}}
func.func @fact(%w: !m {graph.value = dense<1.0> : tensor<3xf32>}) -> !m attributes {graph.facts = ["m <= 2"]} {
  return %w : !m
}

// -----

!m = tensor<?xf32, #graph.shape<["m + 4"]>>
// expected-error @below {{the values of arguments make 'm' -1}}
func.func @below_zero(%w: !m {graph.value = dense<1.0> : tensor<3xf32>}) -> !m {
  return %w : !m
}

// -----

// expected-error @below {{argument 0 'arg0' has a 'graph.value' that is no constant tensor}}
func.func @no_tensor(%w: tensor<2xf32> {graph.value = 1 : i64}) -> tensor<2xf32> {
  return %w : tensor<2xf32>
}

// -----

// expected-error @below {{argument 0 'arg0' has no data}}
func.func @no_data(%w: tensor<2xf32> {graph.value = dense_resource<absent> : tensor<2xf32>}) -> tensor<2xf32> {
  return %w : tensor<2xf32>
}

// -----

// expected-error @below {{argument 0 'arg0' is updated in place, so it cannot be a constant}}
func.func @updated(%w: tensor<2xf32> {graph.inout = 0 : i64, graph.value = dense<1.0> : tensor<2xf32>}) -> tensor<2xf32> {
  return %w : tensor<2xf32>
}

// -----

// expected-error @below {{has a known argument, but is not called by users}}
func.func private @called(%w: tensor<2xf32> {graph.value = dense<1.0> : tensor<2xf32>}) -> tensor<2xf32> {
  return %w : tensor<2xf32>
}

// -----

// An operator that cannot work on what the value says is refused at its place.
!m = tensor<?xf32, #graph.shape<["m"]>>
func.func @operator(%x: tensor<5xf32>, %w: !m {graph.value = dense<1.0> : tensor<3xf32>}) -> !m {
  // expected-error @below {{'graph.add' op}}
  %0 = "graph.add"(%x, %w) : (tensor<5xf32>, !m) -> !m
  return %0 : !m
}
