// RUN: relax-opt %s --split-input-file --relax-convert-tosa --relax-verify --pretty | FileCheck %s

// Dims of 1 broadcast; of dims that are not known, run time tells which are 1.
// CHECK-LABEL: func @broadcast(%arg0: tensor<arg0_0 x 4 x f32>, %arg1: tensor<1 x 4 x f32>, %arg2: tensor<arg2_0 x 4 x f32>)
// CHECK-NEXT:    %0 = graph.add(%arg0, %arg1) : tensor<arg0_0 x 4 x f32>
// CHECK-NEXT:    %1 = graph.maximum(%0, %arg2) : tensor<max(arg0_0, arg2_0)*min(arg0_0, arg2_0, 1) x 4 x f32>
// CHECK-NEXT:    return %1
func.func @broadcast(%x: tensor<?x4xf32>, %row: tensor<1x4xf32>, %y: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = tosa.add %x, %row : (tensor<?x4xf32>, tensor<1x4xf32>) -> tensor<?x4xf32>
  %1 = tosa.maximum %0, %y : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}

// -----

// Shapes are expressions, and -1 is what is left.
// CHECK-LABEL: func @shapes(%arg0: tensor<arg0_0 x 6 x f32>) -> tensor<2*arg0_0 x 3 x f32>
// CHECK-NEXT:    %0 = graph.reshape(%arg0) {shape=#graph.shape<["2*arg0_0", 3]>} : tensor<2*arg0_0 x 3 x f32>
// CHECK-NEXT:    return %0
func.func @shapes(%x: tensor<?x6xf32>) -> tensor<?x3xf32> {
  %shape = tosa.const_shape {values = dense<[-1, 3]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %0 = tosa.reshape %x, %shape : (tensor<?x6xf32>, !tosa.shape<2>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}

// -----

// Zero points are taken off, and matrices are as many on both sides.
// CHECK-LABEL: func @product(%arg0: tensor<arg0_0 x 2 x arg0_2 x i8>, %arg1: tensor<arg0_0 x arg1_1 x 5 x i8>)
// CHECK:         graph.astype(%arg0) {dtype=i32}
// CHECK:         graph.subtract(
// CHECK:         graph.astype(%arg1) {dtype=i32}
// CHECK-NOT:     graph.subtract(
// CHECK:         graph.matmul(
func.func @product(%x: tensor<?x2x?xi8>, %y: tensor<?x?x5xi8>) -> tensor<?x2x5xi32> {
  %zx = "tosa.const"() {values = dense<3> : tensor<1xi8>} : () -> tensor<1xi8>
  %zy = "tosa.const"() {values = dense<0> : tensor<1xi8>} : () -> tensor<1xi8>
  %0 = tosa.matmul %x, %y, %zx, %zy : (tensor<?x2x?xi8>, tensor<?x?x5xi8>, tensor<1xi8>, tensor<1xi8>) -> tensor<?x2x5xi32>
  return %0 : tensor<?x2x5xi32>
}

// -----

// Integers are rescaled in 64 bits.
// CHECK-LABEL: func @rescale(
// CHECK:         graph.astype(%arg0) {dtype=i64}
// CHECK:         graph.multiply({{.*}} : tensor<arg0_0 x i64>
// CHECK:         graph.right_shift({{.*}} : tensor<arg0_0 x i64>
// CHECK:         graph.minimum(
// CHECK:         graph.astype({{.*}} {dtype=i8}
func.func @rescale(%x: tensor<?xi32>) -> tensor<?xi8> {
  %m = "tosa.const"() {values = dense<1073741824> : tensor<1xi32>} : () -> tensor<1xi32>
  %s = "tosa.const"() {values = dense<40> : tensor<1xi8>} : () -> tensor<1xi8>
  %zi = "tosa.const"() {values = dense<0> : tensor<1xi32>} : () -> tensor<1xi32>
  %zo = "tosa.const"() {values = dense<1> : tensor<1xi8>} : () -> tensor<1xi8>
  %0 = tosa.rescale %x, %m, %s, %zi, %zo {rounding_mode = SINGLE_ROUND, scale32 = true, per_channel = false, input_unsigned = false, output_unsigned = false}
      : (tensor<?xi32>, tensor<1xi32>, tensor<1xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<?xi8>
  return %0 : tensor<?xi8>
}

// -----

// Branches are those of scf.
// CHECK-LABEL: func @branch(
// CHECK:         %[[C:.*]] = tensor.extract(%arg0)
// CHECK:         scf.if(%[[C]]) : tensor<arg1_0 x f32>
func.func @branch(%c: tensor<i1>, %x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = tosa.cond_if %c (%a = %x) : tensor<i1> (tensor<?xf32>) -> tensor<?xf32> {
  ^bb0(%a: tensor<?xf32>):
    %1 = tosa.exp %a : (tensor<?xf32>) -> tensor<?xf32>
    tosa.yield %1 : tensor<?xf32>
  } else {
  ^bb0(%a: tensor<?xf32>):
    tosa.yield %a : tensor<?xf32>
  }
  return %0 : tensor<?xf32>
}
