// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(relax-verify)'

func.func @add_c3(%x: tensor<4xf32>, %y: tensor<5xf32>) {
  // expected-error @below {{'graph.add' op cannot broadcast dim 4 with dim 5}}
  %0 = "graph.add"(%x, %y) : (tensor<4xf32>, tensor<5xf32>) -> tensor<5xf32>
  return
}

func.func @floor_divide_c3(%x: tensor<4xf32>, %y: tensor<5xf32>) {
  // expected-error @below {{'graph.floor_divide' op cannot broadcast dim 4 with dim 5}}
  %0 = "graph.floor_divide"(%x, %y) : (tensor<4xf32>, tensor<5xf32>) -> tensor<5xf32>
  return
}

func.func @maximum_c3(%x: tensor<4xf32>, %y: tensor<5xf32>) {
  // expected-error @below {{'graph.maximum' op cannot broadcast dim 4 with dim 5}}
  %0 = "graph.maximum"(%x, %y) : (tensor<4xf32>, tensor<5xf32>) -> tensor<5xf32>
  return
}

func.func @minimum_c3(%x: tensor<4xf32>, %y: tensor<5xf32>) {
  // expected-error @below {{'graph.minimum' op cannot broadcast dim 4 with dim 5}}
  %0 = "graph.minimum"(%x, %y) : (tensor<4xf32>, tensor<5xf32>) -> tensor<5xf32>
  return
}

func.func @multiply_c3(%x: tensor<4xf32>, %y: tensor<5xf32>) {
  // expected-error @below {{'graph.multiply' op cannot broadcast dim 4 with dim 5}}
  %0 = "graph.multiply"(%x, %y) : (tensor<4xf32>, tensor<5xf32>) -> tensor<5xf32>
  return
}

func.func @power_c3(%x: tensor<4xf32>, %y: tensor<5xf32>) {
  // expected-error @below {{'graph.power' op cannot broadcast dim 4 with dim 5}}
  %0 = "graph.power"(%x, %y) : (tensor<4xf32>, tensor<5xf32>) -> tensor<5xf32>
  return
}

func.func @remainder_c3(%x: tensor<4xf32>, %y: tensor<5xf32>) {
  // expected-error @below {{'graph.remainder' op cannot broadcast dim 4 with dim 5}}
  %0 = "graph.remainder"(%x, %y) : (tensor<4xf32>, tensor<5xf32>) -> tensor<5xf32>
  return
}

func.func @subtract_c3(%x: tensor<4xf32>, %y: tensor<5xf32>) {
  // expected-error @below {{'graph.subtract' op cannot broadcast dim 4 with dim 5}}
  %0 = "graph.subtract"(%x, %y) : (tensor<4xf32>, tensor<5xf32>) -> tensor<5xf32>
  return
}

func.func @atan2_c3(%x: tensor<4xf32>, %y: tensor<5xf32>) {
  // expected-error @below {{'graph.atan2' op cannot broadcast dim 4 with dim 5}}
  %0 = "graph.atan2"(%x, %y) : (tensor<4xf32>, tensor<5xf32>) -> tensor<5xf32>
  return
}

func.func @copysign_c3(%x: tensor<4xf32>, %y: tensor<5xf32>) {
  // expected-error @below {{'graph.copysign' op cannot broadcast dim 4 with dim 5}}
  %0 = "graph.copysign"(%x, %y) : (tensor<4xf32>, tensor<5xf32>) -> tensor<5xf32>
  return
}

func.func @divide_c3(%x: tensor<4xf32>, %y: tensor<5xf32>) {
  // expected-error @below {{'graph.divide' op cannot broadcast dim 4 with dim 5}}
  %0 = "graph.divide"(%x, %y) : (tensor<4xf32>, tensor<5xf32>) -> tensor<5xf32>
  return
}

func.func @hypot_c3(%x: tensor<4xf32>, %y: tensor<5xf32>) {
  // expected-error @below {{'graph.hypot' op cannot broadcast dim 4 with dim 5}}
  %0 = "graph.hypot"(%x, %y) : (tensor<4xf32>, tensor<5xf32>) -> tensor<5xf32>
  return
}

func.func @logaddexp_c3(%x: tensor<4xf32>, %y: tensor<5xf32>) {
  // expected-error @below {{'graph.logaddexp' op cannot broadcast dim 4 with dim 5}}
  %0 = "graph.logaddexp"(%x, %y) : (tensor<4xf32>, tensor<5xf32>) -> tensor<5xf32>
  return
}

func.func @bitwise_and_c3(%x: tensor<4xi8>, %y: tensor<5xi8>) {
  // expected-error @below {{'graph.bitwise_and' op cannot broadcast dim 4 with dim 5}}
  %0 = "graph.bitwise_and"(%x, %y) : (tensor<4xi8>, tensor<5xi8>) -> tensor<5xi8>
  return
}

func.func @bitwise_or_c3(%x: tensor<4xi8>, %y: tensor<5xi8>) {
  // expected-error @below {{'graph.bitwise_or' op cannot broadcast dim 4 with dim 5}}
  %0 = "graph.bitwise_or"(%x, %y) : (tensor<4xi8>, tensor<5xi8>) -> tensor<5xi8>
  return
}

func.func @bitwise_xor_c3(%x: tensor<4xi8>, %y: tensor<5xi8>) {
  // expected-error @below {{'graph.bitwise_xor' op cannot broadcast dim 4 with dim 5}}
  %0 = "graph.bitwise_xor"(%x, %y) : (tensor<4xi8>, tensor<5xi8>) -> tensor<5xi8>
  return
}

func.func @left_shift_c3(%x: tensor<4xi8>, %y: tensor<5xi8>) {
  // expected-error @below {{'graph.left_shift' op cannot broadcast dim 4 with dim 5}}
  %0 = "graph.left_shift"(%x, %y) : (tensor<4xi8>, tensor<5xi8>) -> tensor<5xi8>
  return
}

func.func @right_shift_c3(%x: tensor<4xi8>, %y: tensor<5xi8>) {
  // expected-error @below {{'graph.right_shift' op cannot broadcast dim 4 with dim 5}}
  %0 = "graph.right_shift"(%x, %y) : (tensor<4xi8>, tensor<5xi8>) -> tensor<5xi8>
  return
}

func.func @logical_and_c3(%x: tensor<4xi1>, %y: tensor<5xi1>) {
  // expected-error @below {{'graph.logical_and' op cannot broadcast dim 4 with dim 5}}
  %0 = "graph.logical_and"(%x, %y) : (tensor<4xi1>, tensor<5xi1>) -> tensor<5xi1>
  return
}

func.func @logical_or_c3(%x: tensor<4xi1>, %y: tensor<5xi1>) {
  // expected-error @below {{'graph.logical_or' op cannot broadcast dim 4 with dim 5}}
  %0 = "graph.logical_or"(%x, %y) : (tensor<4xi1>, tensor<5xi1>) -> tensor<5xi1>
  return
}

func.func @logical_xor_c3(%x: tensor<4xi1>, %y: tensor<5xi1>) {
  // expected-error @below {{'graph.logical_xor' op cannot broadcast dim 4 with dim 5}}
  %0 = "graph.logical_xor"(%x, %y) : (tensor<4xi1>, tensor<5xi1>) -> tensor<5xi1>
  return
}

func.func @equal_c2(%x: tensor<4xf32>, %y: tensor<5xf32>) {
  // expected-error @below {{'graph.equal' op cannot broadcast dim 4 with dim 5}}
  %0 = "graph.equal"(%x, %y) : (tensor<4xf32>, tensor<5xf32>) -> tensor<5xi1>
  return
}

func.func @greater_c2(%x: tensor<4xf32>, %y: tensor<5xf32>) {
  // expected-error @below {{'graph.greater' op cannot broadcast dim 4 with dim 5}}
  %0 = "graph.greater"(%x, %y) : (tensor<4xf32>, tensor<5xf32>) -> tensor<5xi1>
  return
}

func.func @greater_equal_c2(%x: tensor<4xf32>, %y: tensor<5xf32>) {
  // expected-error @below {{'graph.greater_equal' op cannot broadcast dim 4 with dim 5}}
  %0 = "graph.greater_equal"(%x, %y) : (tensor<4xf32>, tensor<5xf32>) -> tensor<5xi1>
  return
}

func.func @less_c2(%x: tensor<4xf32>, %y: tensor<5xf32>) {
  // expected-error @below {{'graph.less' op cannot broadcast dim 4 with dim 5}}
  %0 = "graph.less"(%x, %y) : (tensor<4xf32>, tensor<5xf32>) -> tensor<5xi1>
  return
}

func.func @less_equal_c2(%x: tensor<4xf32>, %y: tensor<5xf32>) {
  // expected-error @below {{'graph.less_equal' op cannot broadcast dim 4 with dim 5}}
  %0 = "graph.less_equal"(%x, %y) : (tensor<4xf32>, tensor<5xf32>) -> tensor<5xi1>
  return
}

func.func @not_equal_c2(%x: tensor<4xf32>, %y: tensor<5xf32>) {
  // expected-error @below {{'graph.not_equal' op cannot broadcast dim 4 with dim 5}}
  %0 = "graph.not_equal"(%x, %y) : (tensor<4xf32>, tensor<5xf32>) -> tensor<5xi1>
  return
}

// Different whatever n is, and never 1.
func.func @add_c3_symbolic(%x: tensor<?xf32, #graph.shape<["n + 2"]>>, %y: tensor<?xf32, #graph.shape<["n + 3"]>>) {
  // expected-error @below {{'graph.add' op cannot broadcast dim n + 2 with dim n + 3}}
  %0 = "graph.add"(%x, %y) : (tensor<?xf32, #graph.shape<["n + 2"]>>, tensor<?xf32, #graph.shape<["n + 3"]>>) -> tensor<?xf32, #graph.shape<["n + 3"]>>
  return
}

func.func @add_c3_inner(%x: tensor<?x4xf32, #graph.shape<["n", 4]>>, %y: tensor<5x1x3xf32>) {
  // expected-error @below {{'graph.add' op cannot broadcast dim 4 with dim 3}}
  %0 = "graph.add"(%x, %y) : (tensor<?x4xf32, #graph.shape<["n", 4]>>, tensor<5x1x3xf32>) -> tensor<5x?x4xf32, #graph.shape<[5, "n", 4]>>
  return
}
