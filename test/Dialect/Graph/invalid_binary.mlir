// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(relax-verify)'

func.func @add_c1(%x: tensor<4xf32>, %y: tensor<4xf64>) {
  // expected-error @below {{'graph.add' op expects one element type, but got f32 and f64}}
  %0 = "graph.add"(%x, %y) : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xf32>
  return
}

func.func @floor_divide_c1(%x: tensor<4xf32>, %y: tensor<4xf64>) {
  // expected-error @below {{'graph.floor_divide' op expects one element type, but got f32 and f64}}
  %0 = "graph.floor_divide"(%x, %y) : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xf32>
  return
}

func.func @maximum_c1(%x: tensor<4xf32>, %y: tensor<4xf64>) {
  // expected-error @below {{'graph.maximum' op expects one element type, but got f32 and f64}}
  %0 = "graph.maximum"(%x, %y) : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xf32>
  return
}

func.func @minimum_c1(%x: tensor<4xf32>, %y: tensor<4xf64>) {
  // expected-error @below {{'graph.minimum' op expects one element type, but got f32 and f64}}
  %0 = "graph.minimum"(%x, %y) : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xf32>
  return
}

func.func @multiply_c1(%x: tensor<4xf32>, %y: tensor<4xf64>) {
  // expected-error @below {{'graph.multiply' op expects one element type, but got f32 and f64}}
  %0 = "graph.multiply"(%x, %y) : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xf32>
  return
}

func.func @power_c1(%x: tensor<4xf32>, %y: tensor<4xf64>) {
  // expected-error @below {{'graph.power' op expects one element type, but got f32 and f64}}
  %0 = "graph.power"(%x, %y) : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xf32>
  return
}

func.func @remainder_c1(%x: tensor<4xf32>, %y: tensor<4xf64>) {
  // expected-error @below {{'graph.remainder' op expects one element type, but got f32 and f64}}
  %0 = "graph.remainder"(%x, %y) : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xf32>
  return
}

func.func @subtract_c1(%x: tensor<4xf32>, %y: tensor<4xf64>) {
  // expected-error @below {{'graph.subtract' op expects one element type, but got f32 and f64}}
  %0 = "graph.subtract"(%x, %y) : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xf32>
  return
}

func.func @atan2_c1(%x: tensor<4xf32>, %y: tensor<4xf64>) {
  // expected-error @below {{'graph.atan2' op expects one element type, but got f32 and f64}}
  %0 = "graph.atan2"(%x, %y) : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xf32>
  return
}

func.func @copysign_c1(%x: tensor<4xf32>, %y: tensor<4xf64>) {
  // expected-error @below {{'graph.copysign' op expects one element type, but got f32 and f64}}
  %0 = "graph.copysign"(%x, %y) : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xf32>
  return
}

func.func @divide_c1(%x: tensor<4xf32>, %y: tensor<4xf64>) {
  // expected-error @below {{'graph.divide' op expects one element type, but got f32 and f64}}
  %0 = "graph.divide"(%x, %y) : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xf32>
  return
}

func.func @hypot_c1(%x: tensor<4xf32>, %y: tensor<4xf64>) {
  // expected-error @below {{'graph.hypot' op expects one element type, but got f32 and f64}}
  %0 = "graph.hypot"(%x, %y) : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xf32>
  return
}

func.func @logaddexp_c1(%x: tensor<4xf32>, %y: tensor<4xf64>) {
  // expected-error @below {{'graph.logaddexp' op expects one element type, but got f32 and f64}}
  %0 = "graph.logaddexp"(%x, %y) : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xf32>
  return
}

func.func @bitwise_and_c1(%x: tensor<4xi8>, %y: tensor<4xi32>) {
  // expected-error @below {{'graph.bitwise_and' op expects one element type, but got i8 and i32}}
  %0 = "graph.bitwise_and"(%x, %y) : (tensor<4xi8>, tensor<4xi32>) -> tensor<4xi8>
  return
}

func.func @bitwise_or_c1(%x: tensor<4xi8>, %y: tensor<4xi32>) {
  // expected-error @below {{'graph.bitwise_or' op expects one element type, but got i8 and i32}}
  %0 = "graph.bitwise_or"(%x, %y) : (tensor<4xi8>, tensor<4xi32>) -> tensor<4xi8>
  return
}

func.func @bitwise_xor_c1(%x: tensor<4xi8>, %y: tensor<4xi32>) {
  // expected-error @below {{'graph.bitwise_xor' op expects one element type, but got i8 and i32}}
  %0 = "graph.bitwise_xor"(%x, %y) : (tensor<4xi8>, tensor<4xi32>) -> tensor<4xi8>
  return
}

func.func @left_shift_c1(%x: tensor<4xi8>, %y: tensor<4xi32>) {
  // expected-error @below {{'graph.left_shift' op expects one element type, but got i8 and i32}}
  %0 = "graph.left_shift"(%x, %y) : (tensor<4xi8>, tensor<4xi32>) -> tensor<4xi8>
  return
}

func.func @right_shift_c1(%x: tensor<4xi8>, %y: tensor<4xi32>) {
  // expected-error @below {{'graph.right_shift' op expects one element type, but got i8 and i32}}
  %0 = "graph.right_shift"(%x, %y) : (tensor<4xi8>, tensor<4xi32>) -> tensor<4xi8>
  return
}

func.func @logical_and_c1(%x: tensor<4xi1>, %y: tensor<4xi8>) {
  // expected-error @below {{'graph.logical_and' op expects one element type, but got i1 and i8}}
  %0 = "graph.logical_and"(%x, %y) : (tensor<4xi1>, tensor<4xi8>) -> tensor<4xi1>
  return
}

func.func @logical_or_c1(%x: tensor<4xi1>, %y: tensor<4xi8>) {
  // expected-error @below {{'graph.logical_or' op expects one element type, but got i1 and i8}}
  %0 = "graph.logical_or"(%x, %y) : (tensor<4xi1>, tensor<4xi8>) -> tensor<4xi1>
  return
}

func.func @logical_xor_c1(%x: tensor<4xi1>, %y: tensor<4xi8>) {
  // expected-error @below {{'graph.logical_xor' op expects one element type, but got i1 and i8}}
  %0 = "graph.logical_xor"(%x, %y) : (tensor<4xi1>, tensor<4xi8>) -> tensor<4xi1>
  return
}

func.func @equal_c1(%x: tensor<4xf32>, %y: tensor<4xf64>) {
  // expected-error @below {{'graph.equal' op expects one element type, but got f32 and f64}}
  %0 = "graph.equal"(%x, %y) : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xi1>
  return
}

func.func @greater_c1(%x: tensor<4xf32>, %y: tensor<4xf64>) {
  // expected-error @below {{'graph.greater' op expects one element type, but got f32 and f64}}
  %0 = "graph.greater"(%x, %y) : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xi1>
  return
}

func.func @greater_equal_c1(%x: tensor<4xf32>, %y: tensor<4xf64>) {
  // expected-error @below {{'graph.greater_equal' op expects one element type, but got f32 and f64}}
  %0 = "graph.greater_equal"(%x, %y) : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xi1>
  return
}

func.func @less_c1(%x: tensor<4xf32>, %y: tensor<4xf64>) {
  // expected-error @below {{'graph.less' op expects one element type, but got f32 and f64}}
  %0 = "graph.less"(%x, %y) : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xi1>
  return
}

func.func @less_equal_c1(%x: tensor<4xf32>, %y: tensor<4xf64>) {
  // expected-error @below {{'graph.less_equal' op expects one element type, but got f32 and f64}}
  %0 = "graph.less_equal"(%x, %y) : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xi1>
  return
}

func.func @not_equal_c1(%x: tensor<4xf32>, %y: tensor<4xf64>) {
  // expected-error @below {{'graph.not_equal' op expects one element type, but got f32 and f64}}
  %0 = "graph.not_equal"(%x, %y) : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xi1>
  return
}

func.func @add_c2(%x: tensor<4xi1>, %y: tensor<4xi1>) {
  // expected-error @below {{'graph.add' op expects a number element type, but got i1}}
  %0 = "graph.add"(%x, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  return
}

func.func @floor_divide_c2(%x: tensor<4xi1>, %y: tensor<4xi1>) {
  // expected-error @below {{'graph.floor_divide' op expects a number element type, but got i1}}
  %0 = "graph.floor_divide"(%x, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  return
}

func.func @maximum_c2(%x: tensor<4xi1>, %y: tensor<4xi1>) {
  // expected-error @below {{'graph.maximum' op expects a number element type, but got i1}}
  %0 = "graph.maximum"(%x, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  return
}

func.func @minimum_c2(%x: tensor<4xi1>, %y: tensor<4xi1>) {
  // expected-error @below {{'graph.minimum' op expects a number element type, but got i1}}
  %0 = "graph.minimum"(%x, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  return
}

func.func @multiply_c2(%x: tensor<4xi1>, %y: tensor<4xi1>) {
  // expected-error @below {{'graph.multiply' op expects a number element type, but got i1}}
  %0 = "graph.multiply"(%x, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  return
}

func.func @power_c2(%x: tensor<4xi1>, %y: tensor<4xi1>) {
  // expected-error @below {{'graph.power' op expects a number element type, but got i1}}
  %0 = "graph.power"(%x, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  return
}

func.func @remainder_c2(%x: tensor<4xi1>, %y: tensor<4xi1>) {
  // expected-error @below {{'graph.remainder' op expects a number element type, but got i1}}
  %0 = "graph.remainder"(%x, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  return
}

func.func @subtract_c2(%x: tensor<4xi1>, %y: tensor<4xi1>) {
  // expected-error @below {{'graph.subtract' op expects a number element type, but got i1}}
  %0 = "graph.subtract"(%x, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  return
}

func.func @atan2_c2(%x: tensor<4xi32>, %y: tensor<4xi32>) {
  // expected-error @below {{'graph.atan2' op expects a float element type, but got i32}}
  %0 = "graph.atan2"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return
}

func.func @copysign_c2(%x: tensor<4xi32>, %y: tensor<4xi32>) {
  // expected-error @below {{'graph.copysign' op expects a float element type, but got i32}}
  %0 = "graph.copysign"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return
}

func.func @divide_c2(%x: tensor<4xi32>, %y: tensor<4xi32>) {
  // expected-error @below {{'graph.divide' op expects a float element type, but got i32}}
  %0 = "graph.divide"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return
}

func.func @hypot_c2(%x: tensor<4xi32>, %y: tensor<4xi32>) {
  // expected-error @below {{'graph.hypot' op expects a float element type, but got i32}}
  %0 = "graph.hypot"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return
}

func.func @logaddexp_c2(%x: tensor<4xi32>, %y: tensor<4xi32>) {
  // expected-error @below {{'graph.logaddexp' op expects a float element type, but got i32}}
  %0 = "graph.logaddexp"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return
}

func.func @bitwise_and_c2(%x: tensor<4xf32>, %y: tensor<4xf32>) {
  // expected-error @below {{'graph.bitwise_and' op expects an integer or i1 element type, but got f32}}
  %0 = "graph.bitwise_and"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

func.func @bitwise_or_c2(%x: tensor<4xf32>, %y: tensor<4xf32>) {
  // expected-error @below {{'graph.bitwise_or' op expects an integer or i1 element type, but got f32}}
  %0 = "graph.bitwise_or"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

func.func @bitwise_xor_c2(%x: tensor<4xf32>, %y: tensor<4xf32>) {
  // expected-error @below {{'graph.bitwise_xor' op expects an integer or i1 element type, but got f32}}
  %0 = "graph.bitwise_xor"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

func.func @logical_and_c2(%x: tensor<4xi8>, %y: tensor<4xi8>) {
  // expected-error @below {{'graph.logical_and' op expects element type i1, but got i8}}
  %0 = "graph.logical_and"(%x, %y) : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi8>
  return
}

func.func @logical_or_c2(%x: tensor<4xi8>, %y: tensor<4xi8>) {
  // expected-error @below {{'graph.logical_or' op expects element type i1, but got i8}}
  %0 = "graph.logical_or"(%x, %y) : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi8>
  return
}

func.func @logical_xor_c2(%x: tensor<4xi8>, %y: tensor<4xi8>) {
  // expected-error @below {{'graph.logical_xor' op expects element type i1, but got i8}}
  %0 = "graph.logical_xor"(%x, %y) : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi8>
  return
}

func.func @left_shift_c2(%x: tensor<4xi1>, %y: tensor<4xi1>) {
  // expected-error @below {{'graph.left_shift' op expects an integer element type, but got i1}}
  %0 = "graph.left_shift"(%x, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  return
}

func.func @right_shift_c2(%x: tensor<4xi1>, %y: tensor<4xi1>) {
  // expected-error @below {{'graph.right_shift' op expects an integer element type, but got i1}}
  %0 = "graph.right_shift"(%x, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  return
}

func.func @logical_right_shift_c1(%x: tensor<9x4xi32>, %y: tensor<9x4xi8>) {
  // expected-error @below {{'graph.logical_right_shift' op expects one element type, but got i32 and i8}}
  %0 = "graph.logical_right_shift"(%x, %y) {} : (tensor<9x4xi32>, tensor<9x4xi8>) -> tensor<9x4xi32>
  return
}

func.func @logical_right_shift_c2(%x: tensor<9x4xf32>, %y: tensor<9x4xf32>) {
  // expected-error @below {{'graph.logical_right_shift' op expects an integer element type, but got f32}}
  %0 = "graph.logical_right_shift"(%x, %y) {} : (tensor<9x4xf32>, tensor<9x4xf32>) -> tensor<9x4xf32>
  return
}

func.func @logical_right_shift_c3(%x: tensor<9x4xi32>, %y: tensor<3xi32>) {
  // expected-error @below {{'graph.logical_right_shift' op cannot broadcast dim 4 with dim 3}}
  %0 = "graph.logical_right_shift"(%x, %y) {} : (tensor<9x4xi32>, tensor<3xi32>) -> tensor<9x4xi32>
  return
}
