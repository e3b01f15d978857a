// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(relax-verify)'

func.func @abs_c1(%x: tensor<4xi1>) {
  // expected-error @below {{'graph.abs' op expects a number element type, but got i1}}
  %0 = "graph.abs"(%x) : (tensor<4xi1>) -> tensor<4xi1>
  return
}

func.func @negative_c1(%x: tensor<4xi1>) {
  // expected-error @below {{'graph.negative' op expects a number element type, but got i1}}
  %0 = "graph.negative"(%x) : (tensor<4xi1>) -> tensor<4xi1>
  return
}

func.func @sign_c1(%x: tensor<4xi1>) {
  // expected-error @below {{'graph.sign' op expects a number element type, but got i1}}
  %0 = "graph.sign"(%x) : (tensor<4xi1>) -> tensor<4xi1>
  return
}

func.func @square_c1(%x: tensor<4xi1>) {
  // expected-error @below {{'graph.square' op expects a number element type, but got i1}}
  %0 = "graph.square"(%x) : (tensor<4xi1>) -> tensor<4xi1>
  return
}

func.func @acos_c1(%x: tensor<4xi32>) {
  // expected-error @below {{'graph.acos' op expects a float element type, but got i32}}
  %0 = "graph.acos"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

func.func @acosh_c1(%x: tensor<4xi32>) {
  // expected-error @below {{'graph.acosh' op expects a float element type, but got i32}}
  %0 = "graph.acosh"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

func.func @asin_c1(%x: tensor<4xi32>) {
  // expected-error @below {{'graph.asin' op expects a float element type, but got i32}}
  %0 = "graph.asin"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

func.func @asinh_c1(%x: tensor<4xi32>) {
  // expected-error @below {{'graph.asinh' op expects a float element type, but got i32}}
  %0 = "graph.asinh"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

func.func @atan_c1(%x: tensor<4xi32>) {
  // expected-error @below {{'graph.atan' op expects a float element type, but got i32}}
  %0 = "graph.atan"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

func.func @atanh_c1(%x: tensor<4xi32>) {
  // expected-error @below {{'graph.atanh' op expects a float element type, but got i32}}
  %0 = "graph.atanh"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

func.func @ceil_c1(%x: tensor<4xi32>) {
  // expected-error @below {{'graph.ceil' op expects a float element type, but got i32}}
  %0 = "graph.ceil"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

func.func @cos_c1(%x: tensor<4xi32>) {
  // expected-error @below {{'graph.cos' op expects a float element type, but got i32}}
  %0 = "graph.cos"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

func.func @cosh_c1(%x: tensor<4xi32>) {
  // expected-error @below {{'graph.cosh' op expects a float element type, but got i32}}
  %0 = "graph.cosh"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

func.func @erf_c1(%x: tensor<4xi32>) {
  // expected-error @below {{'graph.erf' op expects a float element type, but got i32}}
  %0 = "graph.erf"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

func.func @exp_c1(%x: tensor<4xi32>) {
  // expected-error @below {{'graph.exp' op expects a float element type, but got i32}}
  %0 = "graph.exp"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

func.func @expm1_c1(%x: tensor<4xi32>) {
  // expected-error @below {{'graph.expm1' op expects a float element type, but got i32}}
  %0 = "graph.expm1"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

func.func @floor_c1(%x: tensor<4xi32>) {
  // expected-error @below {{'graph.floor' op expects a float element type, but got i32}}
  %0 = "graph.floor"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

func.func @log_c1(%x: tensor<4xi32>) {
  // expected-error @below {{'graph.log' op expects a float element type, but got i32}}
  %0 = "graph.log"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

func.func @log10_c1(%x: tensor<4xi32>) {
  // expected-error @below {{'graph.log10' op expects a float element type, but got i32}}
  %0 = "graph.log10"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

func.func @log1p_c1(%x: tensor<4xi32>) {
  // expected-error @below {{'graph.log1p' op expects a float element type, but got i32}}
  %0 = "graph.log1p"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

func.func @log2_c1(%x: tensor<4xi32>) {
  // expected-error @below {{'graph.log2' op expects a float element type, but got i32}}
  %0 = "graph.log2"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

func.func @reciprocal_c1(%x: tensor<4xi32>) {
  // expected-error @below {{'graph.reciprocal' op expects a float element type, but got i32}}
  %0 = "graph.reciprocal"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

func.func @round_c1(%x: tensor<4xi32>) {
  // expected-error @below {{'graph.round' op expects a float element type, but got i32}}
  %0 = "graph.round"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

func.func @rsqrt_c1(%x: tensor<4xi32>) {
  // expected-error @below {{'graph.rsqrt' op expects a float element type, but got i32}}
  %0 = "graph.rsqrt"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

func.func @sigmoid_c1(%x: tensor<4xi32>) {
  // expected-error @below {{'graph.sigmoid' op expects a float element type, but got i32}}
  %0 = "graph.sigmoid"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

func.func @sin_c1(%x: tensor<4xi32>) {
  // expected-error @below {{'graph.sin' op expects a float element type, but got i32}}
  %0 = "graph.sin"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

func.func @sinh_c1(%x: tensor<4xi32>) {
  // expected-error @below {{'graph.sinh' op expects a float element type, but got i32}}
  %0 = "graph.sinh"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

func.func @sqrt_c1(%x: tensor<4xi32>) {
  // expected-error @below {{'graph.sqrt' op expects a float element type, but got i32}}
  %0 = "graph.sqrt"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

func.func @tan_c1(%x: tensor<4xi32>) {
  // expected-error @below {{'graph.tan' op expects a float element type, but got i32}}
  %0 = "graph.tan"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

func.func @tanh_c1(%x: tensor<4xi32>) {
  // expected-error @below {{'graph.tanh' op expects a float element type, but got i32}}
  %0 = "graph.tanh"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

func.func @trunc_c1(%x: tensor<4xi32>) {
  // expected-error @below {{'graph.trunc' op expects a float element type, but got i32}}
  %0 = "graph.trunc"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

func.func @isfinite_c1(%x: tensor<4xi32>) {
  // expected-error @below {{'graph.isfinite' op expects a float element type, but got i32}}
  %0 = "graph.isfinite"(%x) : (tensor<4xi32>) -> tensor<4xi1>
  return
}

func.func @isinf_c1(%x: tensor<4xi32>) {
  // expected-error @below {{'graph.isinf' op expects a float element type, but got i32}}
  %0 = "graph.isinf"(%x) : (tensor<4xi32>) -> tensor<4xi1>
  return
}

func.func @isnan_c1(%x: tensor<4xi32>) {
  // expected-error @below {{'graph.isnan' op expects a float element type, but got i32}}
  %0 = "graph.isnan"(%x) : (tensor<4xi32>) -> tensor<4xi1>
  return
}

func.func @signbit_c1(%x: tensor<4xi32>) {
  // expected-error @below {{'graph.signbit' op expects a float element type, but got i32}}
  %0 = "graph.signbit"(%x) : (tensor<4xi32>) -> tensor<4xi1>
  return
}

func.func @bitwise_not_c1(%x: tensor<4xf32>) {
  // expected-error @below {{'graph.bitwise_not' op expects an integer or i1 element type, but got f32}}
  %0 = "graph.bitwise_not"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

func.func @logical_not_c1(%x: tensor<4xi8>) {
  // expected-error @below {{'graph.logical_not' op expects element type i1, but got i8}}
  %0 = "graph.logical_not"(%x) : (tensor<4xi8>) -> tensor<4xi8>
  return
}

// Unsigned integers are moved, not computed on.
func.func @negative_signed(%x: tensor<4xsi8>) {
  // expected-error @below {{'graph.negative' op expects a number element type, but got si8}}
  %0 = "graph.negative"(%x) : (tensor<4xsi8>) -> tensor<4xsi8>
  return
}

func.func @negative_result_dims(%x: tensor<4xf32>) {
  // expected-error @below {{'graph.exp' op infers result type 'tensor<4xf32>', but has 'tensor<5xf32>'}}
  %0 = "graph.exp"(%x) : (tensor<4xf32>) -> tensor<5xf32>
  return
}

func.func @negative_result_symbol(%x: tensor<?xf32, #graph.shape<["n"]>>) {
  // expected-error @below {{'graph.exp' op infers result type}}
  %0 = "graph.exp"(%x) : (tensor<?xf32, #graph.shape<["n"]>>) -> tensor<?xf32, #graph.shape<["n + 1"]>>
  return
}

func.func @negative_result_rank(%x: tensor<4xf32>) {
  // expected-error @below {{'graph.exp' op infers result type}}
  %0 = "graph.exp"(%x) : (tensor<4xf32>) -> tensor<4x1xf32>
  return
}

func.func @negative_result_element(%x: tensor<4xf32>) {
  // expected-error @below {{'graph.exp' op infers result type}}
  %0 = "graph.exp"(%x) : (tensor<4xf32>) -> tensor<4xf64>
  return
}

func.func @negative_object(%x: !graph.object) {
  // expected-error @below {{'graph.exp' op expects a tensor, but got '!graph.object'}}
  %0 = "graph.exp"(%x) : (!graph.object) -> tensor<4xf32>
  return
}

func.func @popcount_c1(%x: tensor<9x4xf32>) {
  // expected-error @below {{'graph.popcount' op expects an integer element type, but got f32}}
  %0 = "graph.popcount"(%x) {} : (tensor<9x4xf32>) -> tensor<9x4xf32>
  return
}
