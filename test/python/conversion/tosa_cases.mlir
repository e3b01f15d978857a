// Functions of TOSA, by name; tosa_cases.py has what they compute.

func.func @elementwise(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>, %row: tensor<1x?xf32>) -> (tensor<?x?xf32>, tensor<?x?xi1>, tensor<?x?xf32>) {
  %shift = "tosa.const"() {values = dense<0> : tensor<1xi8>} : () -> tensor<1xi8>
  %zero = "tosa.const"() {values = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %0 = tosa.add %x, %y : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  %1 = tosa.mul %0, %row, %shift : (tensor<?x?xf32>, tensor<1x?xf32>, tensor<1xi8>) -> tensor<?x?xf32>
  %2 = tosa.clamp %1 {min_val = -1.0 : f32, max_val = 1.5 : f32} : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %3 = tosa.greater %x, %2 : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xi1>
  %4 = tosa.negate %x, %zero, %zero : (tensor<?x?xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<?x?xf32>
  %5 = tosa.select %3, %4, %2 : (tensor<?x?xi1>, tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  %6 = tosa.sigmoid %5 : (tensor<?x?xf32>) -> tensor<?x?xf32>
  return %2, %3, %6 : tensor<?x?xf32>, tensor<?x?xi1>, tensor<?x?xf32>
}

func.func @integers(%a: tensor<?xi32>, %b: tensor<?xi32>, %c: tensor<?xi8>, %x: tensor<?xf32>) -> (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi8>, tensor<?xi8>, tensor<?xi8>) {
  %shift = "tosa.const"() {values = dense<7> : tensor<1xi8>} : () -> tensor<1xi8>
  %three = "tosa.const"() {values = dense<3> : tensor<1xi8>} : () -> tensor<1xi8>
  %table = "tosa.const"() {values = dense<5> : tensor<256xi8>} : () -> tensor<256xi8>
  %0 = tosa.intdiv %a, %b : (tensor<?xi32>, tensor<?xi32>) -> tensor<?xi32>
  %1 = tosa.mul %a, %b, %shift : (tensor<?xi32>, tensor<?xi32>, tensor<1xi8>) -> tensor<?xi32>
  %two = "tosa.const"() {values = dense<2> : tensor<1xi32>} : () -> tensor<1xi32>
  %2 = tosa.arithmetic_right_shift %a, %two {round = true} : (tensor<?xi32>, tensor<1xi32>) -> tensor<?xi32>
  %3 = tosa.clz %a : (tensor<?xi32>) -> tensor<?xi32>
  %4 = tosa.negate %c, %three, %three : (tensor<?xi8>, tensor<1xi8>, tensor<1xi8>) -> tensor<?xi8>
  %5 = tosa.table %c, %table : (tensor<?xi8>, tensor<256xi8>) -> tensor<?xi8>
  %6 = tosa.cast %x : (tensor<?xf32>) -> tensor<?xi8>
  return %0, %1, %2, %3, %4, %5, %6 : tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi8>, tensor<?xi8>, tensor<?xi8>
}

func.func @products(%x: tensor<?x?x?xf32>, %w: tensor<?x?x?xf32>, %a: tensor<?x?x?xi8>, %b: tensor<?x?x?xi8>) -> (tensor<?x?x?xf32>, tensor<?x?x?xi32>) {
  %z = "tosa.const"() {values = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %za = "tosa.const"() {values = dense<3> : tensor<1xi8>} : () -> tensor<1xi8>
  %zb = "tosa.const"() {values = dense<-7> : tensor<1xi8>} : () -> tensor<1xi8>
  %0 = tosa.matmul %x, %w, %z, %z : (tensor<?x?x?xf32>, tensor<?x?x?xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<?x?x?xf32>
  %1 = tosa.matmul %a, %b, %za, %zb : (tensor<?x?x?xi8>, tensor<?x?x?xi8>, tensor<1xi8>, tensor<1xi8>) -> tensor<?x?x?xi32>
  return %0, %1 : tensor<?x?x?xf32>, tensor<?x?x?xi32>
}

func.func @convolutions(%x: tensor<?x?x?x3xf32>, %w: tensor<4x3x2x3xf32>, %d: tensor<3x2x3x2xf32>, %t: tensor<4x3x2x3xf32>, %b: tensor<4xf32>, %c: tensor<6xf32>)
    -> (tensor<?x?x?x4xf32>, tensor<?x?x?x6xf32>, tensor<?x?x?x4xf32>) {
  %z = "tosa.const"() {values = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %0 = tosa.conv2d %x, %w, %b, %z, %z {acc_type = f32, pad = array<i64: 1, 0, 0, 2>, stride = array<i64: 2, 1>, dilation = array<i64: 1, 2>}
      : (tensor<?x?x?x3xf32>, tensor<4x3x2x3xf32>, tensor<4xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<?x?x?x4xf32>
  %1 = tosa.depthwise_conv2d %x, %d, %c, %z, %z {acc_type = f32, pad = array<i64: 0, 0, 1, 0>, stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>}
      : (tensor<?x?x?x3xf32>, tensor<3x2x3x2xf32>, tensor<6xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<?x?x?x6xf32>
  %2 = tosa.transpose_conv2d %x, %t, %b, %z, %z {acc_type = f32, out_pad = array<i64: 1, -1, 0, 2>, stride = array<i64: 2, 1>}
      : (tensor<?x?x?x3xf32>, tensor<4x3x2x3xf32>, tensor<4xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<?x?x?x4xf32>
  return %0, %1, %2 : tensor<?x?x?x4xf32>, tensor<?x?x?x6xf32>, tensor<?x?x?x4xf32>
}

func.func @quantized(%x: tensor<?x?x?x2xi8>, %w: tensor<3x2x2x2xi8>, %b: tensor<3xi32>) -> (tensor<?x?x?x3xi32>, tensor<?x?x?x3xi8>, tensor<?x?x?x3xi8>, tensor<?x?x?x2xi32>) {
  %zx = "tosa.const"() {values = dense<-5> : tensor<1xi8>} : () -> tensor<1xi8>
  %zw = "tosa.const"() {values = dense<0> : tensor<1xi8>} : () -> tensor<1xi8>
  %z32 = "tosa.const"() {values = dense<0> : tensor<1xi32>} : () -> tensor<1xi32>
  %zo = "tosa.const"() {values = dense<9> : tensor<1xi8>} : () -> tensor<1xi8>
  %m = "tosa.const"() {values = dense<[1073741824, 1288490189, 2147483647]> : tensor<3xi32>} : () -> tensor<3xi32>
  %s = "tosa.const"() {values = dense<[40, 38, 35]> : tensor<3xi8>} : () -> tensor<3xi8>
  %m1 = "tosa.const"() {values = dense<19689> : tensor<1xi16>} : () -> tensor<1xi16>
  %s1 = "tosa.const"() {values = dense<15> : tensor<1xi8>} : () -> tensor<1xi8>
  %0 = tosa.conv2d %x, %w, %b, %zx, %zw {acc_type = i32, pad = array<i64: 1, 1, 0, 0>, stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>}
      : (tensor<?x?x?x2xi8>, tensor<3x2x2x2xi8>, tensor<3xi32>, tensor<1xi8>, tensor<1xi8>) -> tensor<?x?x?x3xi32>
  %1 = tosa.rescale %0, %m, %s, %z32, %zo {rounding_mode = SINGLE_ROUND, scale32 = true, per_channel = true, input_unsigned = false, output_unsigned = false}
      : (tensor<?x?x?x3xi32>, tensor<3xi32>, tensor<3xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<?x?x?x3xi8>
  %2 = tosa.rescale %0, %m, %s, %z32, %zo {rounding_mode = DOUBLE_ROUND, scale32 = true, per_channel = true, input_unsigned = false, output_unsigned = true}
      : (tensor<?x?x?x3xi32>, tensor<3xi32>, tensor<3xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<?x?x?x3xi8>
  %3 = tosa.rescale %x, %m1, %s1, %zx, %z32 {rounding_mode = SINGLE_ROUND, scale32 = false, per_channel = false, input_unsigned = false, output_unsigned = false}
      : (tensor<?x?x?x2xi8>, tensor<1xi16>, tensor<1xi8>, tensor<1xi8>, tensor<1xi32>) -> tensor<?x?x?x2xi32>
  return %0, %1, %2, %3 : tensor<?x?x?x3xi32>, tensor<?x?x?x3xi8>, tensor<?x?x?x3xi8>, tensor<?x?x?x2xi32>
}

func.func @reduced(%x: tensor<?x?x?x?xf32>) -> (tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>, tensor<?x?x?xi32>, tensor<?x?x?x?xf32>, tensor<?x1x?x?xf32>) {
  %z = "tosa.const"() {values = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %0 = tosa.max_pool2d %x {kernel = array<i64: 3, 2>, stride = array<i64: 2, 1>, pad = array<i64: 1, 0, 0, 1>} : (tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf32>
  %1 = tosa.avg_pool2d %x, %z, %z {kernel = array<i64: 2, 3>, stride = array<i64: 1, 2>, pad = array<i64: 1, 0, 1, 1>, acc_type = f32}
      : (tensor<?x?x?x?xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<?x?x?x?xf32>
  %2 = tosa.argmax %x {axis = 2 : i32} : (tensor<?x?x?x?xf32>) -> tensor<?x?x?xi32>
  %3 = tosa.reduce_sum %x {axis = 3 : i32} : (tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf32>
  %4 = tosa.reduce_min %x {axis = 1 : i32} : (tensor<?x?x?x?xf32>) -> tensor<?x1x?x?xf32>
  return %0, %1, %2, %3, %4 : tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>, tensor<?x?x?xi32>, tensor<?x?x?x?xf32>, tensor<?x1x?x?xf32>
}

func.func @rearranged(%x: tensor<?x?x3xf32>, %i: tensor<?x?xi32>, %u: tensor<?x?x3xf32>)
    -> (tensor<?x3xf32>, tensor<?x?x3xf32>, tensor<?x2x2xf32>, tensor<?x?x6xf32>, tensor<3x?x?xf32>, tensor<?x?x3xf32>, tensor<?x?x3xf32>, tensor<?x?x3xf32>) {
  %rows = tosa.const_shape {values = dense<[-1, 3]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %around = tosa.const_shape {values = dense<[0, 0, 1, 2, 0, 0]> : tensor<6xindex>} : () -> !tosa.shape<6>
  %start = tosa.const_shape {values = dense<[0, 1, 1]> : tensor<3xindex>} : () -> !tosa.shape<3>
  %size = tosa.const_shape {values = dense<[-1, 2, 2]> : tensor<3xindex>} : () -> !tosa.shape<3>
  %twice = tosa.const_shape {values = dense<[1, 3, 2]> : tensor<3xindex>} : () -> !tosa.shape<3>
  %pad = "tosa.const"() {values = dense<0.5> : tensor<1xf32>} : () -> tensor<1xf32>
  %0 = tosa.reshape %x, %rows : (tensor<?x?x3xf32>, !tosa.shape<2>) -> tensor<?x3xf32>
  %1 = tosa.pad %x, %around, %pad : (tensor<?x?x3xf32>, !tosa.shape<6>, tensor<1xf32>) -> tensor<?x?x3xf32>
  %2 = tosa.slice %x, %start, %size : (tensor<?x?x3xf32>, !tosa.shape<3>, !tosa.shape<3>) -> tensor<?x2x2xf32>
  %3 = tosa.tile %x, %twice : (tensor<?x?x3xf32>, !tosa.shape<3>) -> tensor<?x?x6xf32>
  %4 = tosa.transpose %x {perms = array<i32: 2, 0, 1>} : (tensor<?x?x3xf32>) -> tensor<3x?x?xf32>
  %5 = tosa.reverse %x {axis = 1 : i32} : (tensor<?x?x3xf32>) -> tensor<?x?x3xf32>
  %6 = tosa.gather %x, %i : (tensor<?x?x3xf32>, tensor<?x?xi32>) -> tensor<?x?x3xf32>
  %7 = tosa.scatter %x, %i, %u : (tensor<?x?x3xf32>, tensor<?x?xi32>, tensor<?x?x3xf32>) -> tensor<?x?x3xf32>
  return %0, %1, %2, %3, %4, %5, %6, %7 : tensor<?x3xf32>, tensor<?x?x3xf32>, tensor<?x2x2xf32>, tensor<?x?x6xf32>, tensor<3x?x?xf32>, tensor<?x?x3xf32>, tensor<?x?x3xf32>, tensor<?x?x3xf32>
}

func.func @controlled(%x: tensor<?xf32>, %c: tensor<i1>) -> (tensor<?xf32>, tensor<i32>) {
  %zero = "tosa.const"() {values = dense<0> : tensor<i32>} : () -> tensor<i32>
  %one = "tosa.const"() {values = dense<1> : tensor<i32>} : () -> tensor<i32>
  %five = "tosa.const"() {values = dense<5> : tensor<i32>} : () -> tensor<i32>
  %0 = tosa.cond_if %c (%a = %x) : tensor<i1> (tensor<?xf32>) -> tensor<?xf32> {
  ^bb0(%a: tensor<?xf32>):
    %3 = tosa.exp %a : (tensor<?xf32>) -> tensor<?xf32>
    tosa.yield %3 : tensor<?xf32>
  } else {
  ^bb0(%a: tensor<?xf32>):
    tosa.yield %a : tensor<?xf32>
  }
  %1:2 = tosa.while_loop (%i = %zero, %y = %0) : (tensor<i32>, tensor<?xf32>) -> (tensor<i32>, tensor<?xf32>) {
    %3 = tosa.greater %five, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tosa.yield %3 : tensor<i1>
  } do {
  ^bb0(%i: tensor<i32>, %y: tensor<?xf32>):
    %3 = tosa.add %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %4 = tosa.add %y, %y : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    tosa.yield %3, %4 : tensor<i32>, tensor<?xf32>
  }
  return %1#1, %1#0 : tensor<?xf32>, tensor<i32>
}
