// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-convert-tosa

// All that is not supported is named at once.
func.func @unsupported(%re: tensor<1x4x4xf32>) -> (tensor<1x4x3xf32>, tensor<1x4x3xf32>, tensor<4xf32>) {
  // expected-error @below {{'tosa.rfft2d' op is not supported}}
  %0, %1 = tosa.rfft2d %re : (tensor<1x4x4xf32>) -> (tensor<1x4x3xf32>, tensor<1x4x3xf32>)
  // expected-error @below {{'tosa.custom' op is not supported}}
  %2 = tosa.custom %re {operator_name = "f", domain_name = "d", implementation_attrs = ""} : (tensor<1x4x4xf32>) -> tensor<4xf32>
  return %0, %1, %2 : tensor<1x4x3xf32>, tensor<1x4x3xf32>, tensor<4xf32>
}

// -----

func.func @shift(%x: tensor<4xi32>, %shift: tensor<1xi8>) -> tensor<4xi32> {
  // expected-error @below {{'tosa.mul' op has a shift that is computed; expects a constant}}
  %0 = tosa.mul %x, %x, %shift : (tensor<4xi32>, tensor<4xi32>, tensor<1xi8>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}

// -----

func.func @nan(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'tosa.maximum' op ignores NaN; expects nan_mode = PROPAGATE}}
  %0 = tosa.maximum %x, %x {nan_mode = IGNORE} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @average(%x: tensor<1x4x4x1xi8>) -> tensor<1x3x3x1xi8> {
  %z = "tosa.const"() {values = dense<0> : tensor<1xi8>} : () -> tensor<1xi8>
  // expected-error @below {{'tosa.avg_pool2d' op averages elements of i8; expects floats}}
  %0 = tosa.avg_pool2d %x, %z, %z {kernel = array<i64: 2, 2>, stride = array<i64: 1, 1>, pad = array<i64: 0, 0, 0, 0>, acc_type = i32}
      : (tensor<1x4x4x1xi8>, tensor<1xi8>, tensor<1xi8>) -> tensor<1x3x3x1xi8>
  return %0 : tensor<1x3x3x1xi8>
}

// -----

func.func @depthwise(%x: tensor<1x4x4x?xf32>, %w: tensor<2x2x?x1xf32>, %b: tensor<1xf32>) -> tensor<1x3x3x?xf32> {
  %z = "tosa.const"() {values = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
  // expected-error @below {{'tosa.depthwise_conv2d' op has arg1_2 channels; expects a constant}}
  %0 = tosa.depthwise_conv2d %x, %w, %b, %z, %z {acc_type = f32, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>}
      : (tensor<1x4x4x?xf32>, tensor<2x2x?x1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x3x3x?xf32>
  return %0 : tensor<1x3x3x?xf32>
}

// -----

func.func @rounding(%x: tensor<?xi32>) -> tensor<?xi8> {
  %m = "tosa.const"() {values = dense<1073741824> : tensor<1xi32>} : () -> tensor<1xi32>
  %s = "tosa.const"() {values = dense<40> : tensor<1xi8>} : () -> tensor<1xi8>
  %zi = "tosa.const"() {values = dense<0> : tensor<1xi32>} : () -> tensor<1xi32>
  %zo = "tosa.const"() {values = dense<1> : tensor<1xi8>} : () -> tensor<1xi8>
  // expected-error @below {{'tosa.rescale' op rounds as the machine likes; expects SINGLE_ROUND or DOUBLE_ROUND}}
  %0 = tosa.rescale %x, %m, %s, %zi, %zo {rounding_mode = INEXACT_ROUND, scale32 = true, per_channel = false, input_unsigned = false, output_unsigned = false}
      : (tensor<?xi32>, tensor<1xi32>, tensor<1xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<?xi8>
  return %0 : tensor<?xi8>
}
