// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-verify

#two = array<i32: 1, 1, 0, 0, 0, 0>
#nested = array<i32: 1, 1, 1, 0, 1, 1>
#three = array<i32: 1, 1, 1, 0, 0, 0>

func.func @dequantize_c1(%d: tensor<1x2x4x16x4xi8>, %s: tensor<1x2x16xf16>) -> tensor<16x64xf32> {
  // expected-error @below {{'graph.dequantize' op has scheme 'q2_k'; accepted are q8_0, q4_0, q4_1, q5_0, q5_1, q4_k, q5_k, q6_k, q8_64, q8_128, q4_64, q4_128, q4_64_minimum, q4_128_minimum}}
  %0 = "graph.dequantize"(%d, %s) {scheme = "q2_k", operandSegmentSizes = #two} : (tensor<1x2x4x16x4xi8>, tensor<1x2x16xf16>) -> tensor<16x64xf32>
  return %0 : tensor<16x64xf32>
}

func.func @dequantize_c3_rank(%d: tensor<1x2x4x16x4xi8>, %s: tensor<1x2x16xf16>) -> tensor<16x64xf32> {
  // expected-error @below {{'graph.dequantize' op expects i8 data of rank 6, but got 'tensor<1 x 2 x 4 x 16 x 4 x i8>'}}
  %0 = "graph.dequantize"(%d, %s) {scheme = "q8_0", operandSegmentSizes = #two} : (tensor<1x2x4x16x4xi8>, tensor<1x2x16xf16>) -> tensor<16x64xf32>
  return %0 : tensor<16x64xf32>
}

func.func @dequantize_c3_data(%d: tensor<1x2x4x16x4xi16>, %s: tensor<1x2x16xf16>) -> tensor<16x64xf32> {
  // expected-error @below {{expects i8 data of rank 5, but got 'tensor<1 x 2 x 4 x 16 x 4 x i16>'}}
  %0 = "graph.dequantize"(%d, %s) {scheme = "q4_0", operandSegmentSizes = #two} : (tensor<1x2x4x16x4xi16>, tensor<1x2x16xf16>) -> tensor<16x64xf32>
  return %0 : tensor<16x64xf32>
}

func.func @dequantize_c3_dims(%d: tensor<1x2x4x32x4xi8>, %s: tensor<1x2x16xf16>) -> tensor<16x64xf32> {
  // expected-error @below {{expects 'data' of dims [1, 2, 4, 16, 4], but got 'tensor<1 x 2 x 4 x 32 x 4 x i8>'}}
  %0 = "graph.dequantize"(%d, %s) {scheme = "q4_0", operandSegmentSizes = #two} : (tensor<1x2x4x32x4xi8>, tensor<1x2x16xf16>) -> tensor<16x64xf32>
  return %0 : tensor<16x64xf32>
}

func.func @dequantize_c2_missing(%d: tensor<1x2x4x16x4xi8>, %s: tensor<1x2x16xf16>) -> tensor<16x64xf32> {
  // expected-error @below {{has scheme 'q4_1', which takes operand 'minimum'}}
  %0 = "graph.dequantize"(%d, %s) {scheme = "q4_1", operandSegmentSizes = #two} : (tensor<1x2x4x16x4xi8>, tensor<1x2x16xf16>) -> tensor<16x64xf32>
  return %0 : tensor<16x64xf32>
}

func.func @dequantize_c2_given(%d: tensor<1x2x4x16x4xi8>, %s: tensor<1x2x16xf16>) -> tensor<16x64xf32> {
  // expected-error @below {{has scheme 'q4_0', which takes no operand 'minimum'}}
  %0 = "graph.dequantize"(%d, %s, %s) {scheme = "q4_0", operandSegmentSizes = #three} : (tensor<1x2x4x16x4xi8>, tensor<1x2x16xf16>, tensor<1x2x16xf16>) -> tensor<16x64xf32>
  return %0 : tensor<16x64xf32>
}

func.func @dequantize_c3_element(%d: tensor<1x2x4x16x4xi8>, %s: tensor<1x2x16xf32>) -> tensor<16x64xf32> {
  // expected-error @below {{expects 'scale' of f16, but got f32}}
  %0 = "graph.dequantize"(%d, %s) {scheme = "q4_0", operandSegmentSizes = #two} : (tensor<1x2x4x16x4xi8>, tensor<1x2x16xf32>) -> tensor<16x64xf32>
  return %0 : tensor<16x64xf32>
}

func.func @dequantize_c3_minimum(%d: tensor<1x2x4x16x4xi8>, %s: tensor<1x2x16xf16>, %m: tensor<1x3x16xf16>) -> tensor<16x64xf32> {
  // expected-error @below {{expects 'minimum' of dims [1, 2, 16], but got 'tensor<1 x 3 x 16 x f16>'}}
  %0 = "graph.dequantize"(%d, %s, %m) {scheme = "q4_1", operandSegmentSizes = #three} : (tensor<1x2x4x16x4xi8>, tensor<1x2x16xf16>, tensor<1x3x16xf16>) -> tensor<16x64xf32>
  return %0 : tensor<16x64xf32>
}

func.func @dequantize_c4(%d: tensor<1x12x4x16x4xi8>, %s: tensor<1x12x16xi8>, %o: tensor<1x1x16xf16>) -> tensor<16x384xf32> {
  // expected-error @below {{'graph.dequantize' op expects a multiple of 8 blocks, but got 12}}
  %0 = "graph.dequantize"(%d, %s, %s, %o, %o) {scheme = "q4_k", operandSegmentSizes = #nested} : (tensor<1x12x4x16x4xi8>, tensor<1x12x16xi8>, tensor<1x12x16xi8>, tensor<1x1x16xf16>, tensor<1x1x16xf16>) -> tensor<16x384xf32>
  return %0 : tensor<16x384xf32>
}

func.func @negative_dequantize_result(%d: tensor<1x2x4x16x4xi8>, %s: tensor<1x2x16xf16>) -> tensor<16x32xf32> {
  // expected-error @below {{infers result type 'tensor<16x64xf32>', but has 'tensor<16x32xf32>'}}
  %0 = "graph.dequantize"(%d, %s) {scheme = "q4_0", operandSegmentSizes = #two} : (tensor<1x2x4x16x4xi8>, tensor<1x2x16xf16>) -> tensor<16x32xf32>
  return %0 : tensor<16x32xf32>
}

// The number of panels may be symbolic.
func.func @dequantize_symbolic(%d: tensor<?x2x4x16x4xi8, #graph.shape<["p", 2, 4, 16, 4]>>, %s: tensor<?x2x16xf16, #graph.shape<["p", 2, 16]>>) -> tensor<?x64xf32, #graph.shape<["16*p", 64]>> {
  %0 = "graph.dequantize"(%d, %s) {scheme = "q4_0", operandSegmentSizes = #two} : (tensor<?x2x4x16x4xi8, #graph.shape<["p", 2, 4, 16, 4]>>, tensor<?x2x16xf16, #graph.shape<["p", 2, 16]>>) -> tensor<?x64xf32, #graph.shape<["16*p", 64]>>
  return %0 : tensor<?x64xf32, #graph.shape<["16*p", 64]>>
}

// -----

#rows = array<i32: 1, 1, 1, 0, 0, 0, 0>

func.func @dequantize_rows_c1_element(%i: tensor<3xf32>, %d: tensor<1x2x4x16x4xi8>, %s: tensor<1x2x16xf16>) -> tensor<3x64xf32> {
  // expected-error @below {{'graph.dequantize_rows' op expects integer indices of rank 1, but got 'tensor<3 x f32>'}}
  %0 = "graph.dequantize_rows"(%i, %d, %s) {scheme = "q4_0", operandSegmentSizes = #rows} : (tensor<3xf32>, tensor<1x2x4x16x4xi8>, tensor<1x2x16xf16>) -> tensor<3x64xf32>
  return %0 : tensor<3x64xf32>
}

func.func @dequantize_rows_c1_rank(%i: tensor<3x1xi32>, %d: tensor<1x2x4x16x4xi8>, %s: tensor<1x2x16xf16>) -> tensor<3x64xf32> {
  // expected-error @below {{expects integer indices of rank 1, but got 'tensor<3 x 1 x i32>'}}
  %0 = "graph.dequantize_rows"(%i, %d, %s) {scheme = "q4_0", operandSegmentSizes = #rows} : (tensor<3x1xi32>, tensor<1x2x4x16x4xi8>, tensor<1x2x16xf16>) -> tensor<3x64xf32>
  return %0 : tensor<3x64xf32>
}

func.func @dequantize_rows_c2(%i: tensor<3xi32>, %d: tensor<1x2x4x16x4xi8>, %s: tensor<1x2x16xf16>) -> tensor<3x64xf32> {
  // expected-error @below {{'graph.dequantize_rows' op has scheme 'q4_1', which takes operand 'minimum'}}
  %0 = "graph.dequantize_rows"(%i, %d, %s) {scheme = "q4_1", operandSegmentSizes = #rows} : (tensor<3xi32>, tensor<1x2x4x16x4xi8>, tensor<1x2x16xf16>) -> tensor<3x64xf32>
  return %0 : tensor<3x64xf32>
}

// -----

func.func @quantize_blocks_c1(%x: tensor<3x32xf16>) -> tensor<3x32xi8> {
  // expected-error @below {{'graph.quantize_blocks' op expects f32 of rank 1 or more, but got 'tensor<3 x 32 x f16>'}}
  %0:2 = "graph.quantize_blocks"(%x) {symmetric = true} : (tensor<3x32xf16>) -> (tensor<3x32xi8>, tensor<3x1xf32>)
  return %0#0 : tensor<3x32xi8>
}

func.func @quantize_blocks_c2(%x: tensor<3x48xf32>) -> tensor<3x48xi8> {
  // expected-error @below {{'graph.quantize_blocks' op expects a last dim that is a multiple of 32, but got 48}}
  %0:2 = "graph.quantize_blocks"(%x) {symmetric = true} : (tensor<3x48xf32>) -> (tensor<3x48xi8>, tensor<3x1xf32>)
  return %0#0 : tensor<3x48xi8>
}

func.func @quantize_blocks_c2_symbolic(%x: tensor<?xf32, #graph.shape<["n"]>>) -> tensor<?xi8, #graph.shape<["n"]>> {
  // expected-error @below {{expects a last dim that is a multiple of 32, but got n}}
  %0:2 = "graph.quantize_blocks"(%x) {symmetric = true} : (tensor<?xf32, #graph.shape<["n"]>>) -> (tensor<?xi8, #graph.shape<["n"]>>, tensor<?xf32>)
  return %0#0 : tensor<?xi8, #graph.shape<["n"]>>
}

// -----

#scaled = array<i32: 1, 1, 0>
#all = array<i32: 1, 1, 1>

func.func @dequantize_blocks_c1(%q: tensor<3x32xi8>, %s: tensor<3x1xf16>) -> tensor<3x32xf32> {
  // expected-error @below {{'graph.dequantize_blocks' op expects i8 values and an f32 scale, but got 'tensor<3 x 32 x i8>' and 'tensor<3 x 1 x f16>'}}
  %0 = "graph.dequantize_blocks"(%q, %s) {operandSegmentSizes = #scaled} : (tensor<3x32xi8>, tensor<3x1xf16>) -> tensor<3x32xf32>
  return %0 : tensor<3x32xf32>
}

func.func @dequantize_blocks_c1_offset(%q: tensor<3x32xi8>, %s: tensor<3x1xf32>, %o: tensor<3x1xf16>) -> tensor<3x32xf32> {
  // expected-error @below {{'graph.dequantize_blocks' op expects i8 values and an f32 offset, but got 'tensor<3 x 32 x i8>' and 'tensor<3 x 1 x f16>'}}
  %0 = "graph.dequantize_blocks"(%q, %s, %o) {operandSegmentSizes = #all} : (tensor<3x32xi8>, tensor<3x1xf32>, tensor<3x1xf16>) -> tensor<3x32xf32>
  return %0 : tensor<3x32xf32>
}

func.func @dequantize_blocks_c2(%q: tensor<3x40xi8>, %s: tensor<3x1xf32>) -> tensor<3x40xf32> {
  // expected-error @below {{'graph.dequantize_blocks' op expects a last dim that is a multiple of 32, but got 40}}
  %0 = "graph.dequantize_blocks"(%q, %s) {operandSegmentSizes = #scaled} : (tensor<3x40xi8>, tensor<3x1xf32>) -> tensor<3x40xf32>
  return %0 : tensor<3x40xf32>
}

func.func @dequantize_blocks_c3(%q: tensor<3x64xi8>, %s: tensor<3x1xf32>) -> tensor<3x64xf32> {
  // expected-error @below {{'graph.dequantize_blocks' op expects a scale of dims [3, 2], but got 'tensor<3 x 1 x f32>'}}
  %0 = "graph.dequantize_blocks"(%q, %s) {operandSegmentSizes = #scaled} : (tensor<3x64xi8>, tensor<3x1xf32>) -> tensor<3x64xf32>
  return %0 : tensor<3x64xf32>
}

func.func @dequantize_blocks_c3_offset(%q: tensor<3x64xi8>, %s: tensor<3x2xf32>, %o: tensor<3x1xf32>) -> tensor<3x64xf32> {
  // expected-error @below {{'graph.dequantize_blocks' op expects an offset of dims [3, 2], but got 'tensor<3 x 1 x f32>'}}
  %0 = "graph.dequantize_blocks"(%q, %s, %o) {operandSegmentSizes = #all} : (tensor<3x64xi8>, tensor<3x2xf32>, tensor<3x1xf32>) -> tensor<3x64xf32>
  return %0 : tensor<3x64xf32>
}

// -----

#pair = array<i32: 1, 1, 0>

func.func @quantize_c1(%w: tensor<16x32xf32>) -> tensor<1x1x4x16x4xi8> {
  // expected-error @below {{'graph.quantize' op has scheme 'q6_k'; floats are rounded to q8_0, q4_0, q4_1, q8_64, q8_128, q4_64, q4_128, q4_64_minimum, q4_128_minimum}}
  %0:2 = "graph.quantize"(%w) {scheme = "q6_k", axis = 1 : i64, resultSegmentSizes = #pair} : (tensor<16x32xf32>) -> (tensor<1x1x4x16x4xi8>, tensor<1x1x16xf16>)
  return %0#0 : tensor<1x1x4x16x4xi8>
}

func.func @quantize_c2_element(%w: tensor<16x32xi32>) -> tensor<1x1x4x16x4xi8> {
  // expected-error @below {{'graph.quantize' op expects a matrix of floats, but got 'tensor<16 x 32 x i32>'}}
  %0:2 = "graph.quantize"(%w) {scheme = "q4_0", axis = 1 : i64, resultSegmentSizes = #pair} : (tensor<16x32xi32>) -> (tensor<1x1x4x16x4xi8>, tensor<1x1x16xf16>)
  return %0#0 : tensor<1x1x4x16x4xi8>
}

func.func @quantize_c2_rank(%w: tensor<2x16x32xf32>) -> tensor<1x1x4x16x4xi8> {
  // expected-error @below {{expects a matrix of floats, but got 'tensor<2 x 16 x 32 x f32>'}}
  %0:2 = "graph.quantize"(%w) {scheme = "q4_0", axis = 1 : i64, resultSegmentSizes = #pair} : (tensor<2x16x32xf32>) -> (tensor<1x1x4x16x4xi8>, tensor<1x1x16xf16>)
  return %0#0 : tensor<1x1x4x16x4xi8>
}

func.func @quantize_c3(%w: tensor<16x32xf32>) -> tensor<1x1x4x16x4xi8> {
  // expected-error @below {{'graph.quantize' op expects an axis of 0 or 1, but got -1}}
  %0:2 = "graph.quantize"(%w) {scheme = "q4_0", axis = -1 : i64, resultSegmentSizes = #pair} : (tensor<16x32xf32>) -> (tensor<1x1x4x16x4xi8>, tensor<1x1x16xf16>)
  return %0#0 : tensor<1x1x4x16x4xi8>
}

func.func @quantize_c4(%w: tensor<16x40xf32>) -> tensor<1x1x4x16x4xi8> {
  // expected-error @below {{'graph.quantize' op expects a dim along blocks that is a multiple of 32, but got 40}}
  %0:2 = "graph.quantize"(%w) {scheme = "q4_0", axis = 1 : i64, resultSegmentSizes = #pair} : (tensor<16x40xf32>) -> (tensor<1x1x4x16x4xi8>, tensor<1x1x16xf16>)
  return %0#0 : tensor<1x1x4x16x4xi8>
}

func.func @quantize_c4_rows(%w: tensor<40x64xf32>) -> tensor<1x1x4x16x4xi8> {
  // expected-error @below {{expects a dim along blocks that is a multiple of 32, but got 40}}
  %0:2 = "graph.quantize"(%w) {scheme = "q4_0", axis = 0 : i64, resultSegmentSizes = #pair} : (tensor<40x64xf32>) -> (tensor<1x1x4x16x4xi8>, tensor<1x1x16xf16>)
  return %0#0 : tensor<1x1x4x16x4xi8>
}

// -----

func.func @quantize_c4_groups(%m: tensor<8x96xf32>) {
  // expected-error @below {{'graph.quantize' op expects a dim along blocks that is a multiple of 64, but got 96}}
  "graph.quantize"(%m) {scheme = "q8_64", axis = 1 : i64, resultSegmentSizes = array<i32: 1, 1, 0>} : (tensor<8x96xf32>) -> (tensor<1x3x2x4x16x4xi8>, tensor<1x1x16xf16>)
  return
}

// -----

// Six blocks are no whole number of groups of 128.
func.func @dequantize_c4_shared(%d: tensor<2x6x4x16x4xi8>, %s: tensor<2x1x16xf16>) {
  // expected-error @below {{'graph.dequantize' op expects a multiple of 4 blocks, but got 6}}
  "graph.dequantize"(%d, %s) {scheme = "q4_128", operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0>} : (tensor<2x6x4x16x4xi8>, tensor<2x1x16xf16>) -> tensor<32x192xf32>
  return
}

// -----

// A scale for each block, where two have one together.
func.func @dequantize_c3_shared(%d: tensor<2x4x4x16x4xi8>, %s: tensor<2x4x16xf16>) {
  // expected-error @below {{'graph.dequantize' op expects 'scale' of dims [2, 2, 16], but got 'tensor<2 x 4 x 16 x f16>'}}
  "graph.dequantize"(%d, %s) {scheme = "q4_64", operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0>} : (tensor<2x4x4x16x4xi8>, tensor<2x4x16xf16>) -> tensor<32x128xf32>
  return
}
