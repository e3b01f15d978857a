// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(relax-verify)'

func.func @nn_paged_kv_append_c1(%0: tensor<9x2x16x32xf32>, %1: tensor<9x2x16x32xf32>, %2: tensor<5x2x32xf32>, %3: tensor<5x2x32xf64>, %4: tensor<3x4xi32>, %5: tensor<5xi32>, %6: tensor<5xi32>) {
  // expected-error @below {{'graph.nn_paged_kv_append' op expects one element type, but got f32 and f64}}
  %r:2 = "graph.nn_paged_kv_append"(%0, %1, %2, %3, %4, %5, %6) : (tensor<9x2x16x32xf32>, tensor<9x2x16x32xf32>, tensor<5x2x32xf32>, tensor<5x2x32xf64>, tensor<3x4xi32>, tensor<5xi32>, tensor<5xi32>) -> (tensor<9x2x16x32xf32>, tensor<9x2x16x32xf32>)
  return
}

func.func @nn_paged_kv_append_c1_pages(%0: tensor<9x2x16x32xf32>, %1: tensor<9x2x16xf32>, %2: tensor<5x2x32xf32>, %3: tensor<5x2x32xf32>, %4: tensor<3x4xi32>, %5: tensor<5xi32>, %6: tensor<5xi32>) {
  // expected-error @below {{'graph.nn_paged_kv_append' op expects pages of rank 4, but got 'tensor<9 x 2 x 16 x f32>'}}
  %r:2 = "graph.nn_paged_kv_append"(%0, %1, %2, %3, %4, %5, %6) : (tensor<9x2x16x32xf32>, tensor<9x2x16xf32>, tensor<5x2x32xf32>, tensor<5x2x32xf32>, tensor<3x4xi32>, tensor<5xi32>, tensor<5xi32>) -> (tensor<9x2x16x32xf32>, tensor<9x2x16xf32>)
  return
}

func.func @nn_paged_kv_append_c1_tokens(%0: tensor<9x2x16x32xf32>, %1: tensor<9x2x16x32xf32>, %2: tensor<5x32xf32>, %3: tensor<5x2x32xf32>, %4: tensor<3x4xi32>, %5: tensor<5xi32>, %6: tensor<5xi32>) {
  // expected-error @below {{'graph.nn_paged_kv_append' op expects new tokens of rank 3, but got 'tensor<5 x 32 x f32>'}}
  %r:2 = "graph.nn_paged_kv_append"(%0, %1, %2, %3, %4, %5, %6) : (tensor<9x2x16x32xf32>, tensor<9x2x16x32xf32>, tensor<5x32xf32>, tensor<5x2x32xf32>, tensor<3x4xi32>, tensor<5xi32>, tensor<5xi32>) -> (tensor<9x2x16x32xf32>, tensor<9x2x16x32xf32>)
  return
}

func.func @nn_paged_kv_append_c2(%0: tensor<9x2x16x32xf32>, %1: tensor<9x2x16x32xf32>, %2: tensor<5x3x32xf32>, %3: tensor<5x2x32xf32>, %4: tensor<3x4xi32>, %5: tensor<5xi32>, %6: tensor<5xi32>) {
  // expected-error @below {{'graph.nn_paged_kv_append' op expects one number of heads, but got 2 and 3}}
  %r:2 = "graph.nn_paged_kv_append"(%0, %1, %2, %3, %4, %5, %6) : (tensor<9x2x16x32xf32>, tensor<9x2x16x32xf32>, tensor<5x3x32xf32>, tensor<5x2x32xf32>, tensor<3x4xi32>, tensor<5xi32>, tensor<5xi32>) -> (tensor<9x2x16x32xf32>, tensor<9x2x16x32xf32>)
  return
}

func.func @nn_paged_kv_append_c2_width(%0: tensor<9x2x16x32xf32>, %1: tensor<9x2x16x32xf32>, %2: tensor<5x2x32xf32>, %3: tensor<5x2x8xf32>, %4: tensor<3x4xi32>, %5: tensor<5xi32>, %6: tensor<5xi32>) {
  // expected-error @below {{'graph.nn_paged_kv_append' op expects one head dim, but got 32 and 8}}
  %r:2 = "graph.nn_paged_kv_append"(%0, %1, %2, %3, %4, %5, %6) : (tensor<9x2x16x32xf32>, tensor<9x2x16x32xf32>, tensor<5x2x32xf32>, tensor<5x2x8xf32>, tensor<3x4xi32>, tensor<5xi32>, tensor<5xi32>) -> (tensor<9x2x16x32xf32>, tensor<9x2x16x32xf32>)
  return
}

func.func @nn_paged_kv_append_c2_size(%0: tensor<9x2x16x32xf32>, %1: tensor<9x2x8x32xf32>, %2: tensor<5x2x32xf32>, %3: tensor<5x2x32xf32>, %4: tensor<3x4xi32>, %5: tensor<5xi32>, %6: tensor<5xi32>) {
  // expected-error @below {{'graph.nn_paged_kv_append' op expects one size of pages, but got 16 and 8}}
  %r:2 = "graph.nn_paged_kv_append"(%0, %1, %2, %3, %4, %5, %6) : (tensor<9x2x16x32xf32>, tensor<9x2x8x32xf32>, tensor<5x2x32xf32>, tensor<5x2x32xf32>, tensor<3x4xi32>, tensor<5xi32>, tensor<5xi32>) -> (tensor<9x2x16x32xf32>, tensor<9x2x8x32xf32>)
  return
}

func.func @nn_paged_kv_append_c3(%0: tensor<9x2x16x32xf32>, %1: tensor<9x2x16x32xf32>, %2: tensor<5x2x32xf32>, %3: tensor<5x2x32xf32>, %4: tensor<3x4xf32>, %5: tensor<5xi32>, %6: tensor<5xi32>) {
  // expected-error @below {{'graph.nn_paged_kv_append' op expects integer indices, but got f32}}
  %r:2 = "graph.nn_paged_kv_append"(%0, %1, %2, %3, %4, %5, %6) : (tensor<9x2x16x32xf32>, tensor<9x2x16x32xf32>, tensor<5x2x32xf32>, tensor<5x2x32xf32>, tensor<3x4xf32>, tensor<5xi32>, tensor<5xi32>) -> (tensor<9x2x16x32xf32>, tensor<9x2x16x32xf32>)
  return
}

func.func @nn_paged_kv_append_c3_rank(%0: tensor<9x2x16x32xf32>, %1: tensor<9x2x16x32xf32>, %2: tensor<5x2x32xf32>, %3: tensor<5x2x32xf32>, %4: tensor<3xi32>, %5: tensor<5xi32>, %6: tensor<5xi32>) {
  // expected-error @below {{'graph.nn_paged_kv_append' op expects tables of rank 2, but got 'tensor<3 x i32>'}}
  %r:2 = "graph.nn_paged_kv_append"(%0, %1, %2, %3, %4, %5, %6) : (tensor<9x2x16x32xf32>, tensor<9x2x16x32xf32>, tensor<5x2x32xf32>, tensor<5x2x32xf32>, tensor<3xi32>, tensor<5xi32>, tensor<5xi32>) -> (tensor<9x2x16x32xf32>, tensor<9x2x16x32xf32>)
  return
}

func.func @nn_paged_kv_append_c4(%0: tensor<9x2x16x32xf32>, %1: tensor<9x2x16x32xf32>, %2: tensor<5x2x32xf32>, %3: tensor<5x2x32xf32>, %4: tensor<3x4xi32>, %5: tensor<5xi32>, %6: tensor<6xi32>) {
  // expected-error @below {{'graph.nn_paged_kv_append' op expects one number of tokens, but got 5 and 6}}
  %r:2 = "graph.nn_paged_kv_append"(%0, %1, %2, %3, %4, %5, %6) : (tensor<9x2x16x32xf32>, tensor<9x2x16x32xf32>, tensor<5x2x32xf32>, tensor<5x2x32xf32>, tensor<3x4xi32>, tensor<5xi32>, tensor<6xi32>) -> (tensor<9x2x16x32xf32>, tensor<9x2x16x32xf32>)
  return
}

func.func @nn_paged_attention_c1(%0: tensor<5x4x32xi32>, %1: tensor<9x2x16x32xf32>, %2: tensor<9x2x16x32xf32>, %3: tensor<3x4xi32>, %4: tensor<5xi32>, %5: tensor<5xi32>) {
  // expected-error @below {{'graph.nn_paged_attention' op expects a float element type, but got i32}}
  %r = "graph.nn_paged_attention"(%0, %1, %2, %3, %4, %5) {scale = 0.25 : f64, window = 0 : i64, cap = 0.0 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0>} : (tensor<5x4x32xi32>, tensor<9x2x16x32xf32>, tensor<9x2x16x32xf32>, tensor<3x4xi32>, tensor<5xi32>, tensor<5xi32>) -> tensor<5x4x32xi32>
  return
}

func.func @nn_paged_attention_c1_rank(%0: tensor<5x128xf32>, %1: tensor<9x2x16x32xf32>, %2: tensor<9x2x16x32xf32>, %3: tensor<3x4xi32>, %4: tensor<5xi32>, %5: tensor<5xi32>) {
  // expected-error @below {{'graph.nn_paged_attention' op expects queries of rank 3, but got 'tensor<5 x 128 x f32>'}}
  %r = "graph.nn_paged_attention"(%0, %1, %2, %3, %4, %5) {scale = 0.25 : f64, window = 0 : i64, cap = 0.0 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0>} : (tensor<5x128xf32>, tensor<9x2x16x32xf32>, tensor<9x2x16x32xf32>, tensor<3x4xi32>, tensor<5xi32>, tensor<5xi32>) -> tensor<5x128xf32>
  return
}

func.func @nn_paged_attention_c1_pages(%0: tensor<5x4x32xf32>, %1: tensor<9x2x16x32xf32>, %2: tensor<9x2x16x32xf16>, %3: tensor<3x4xi32>, %4: tensor<5xi32>, %5: tensor<5xi32>) {
  // expected-error @below {{'graph.nn_paged_attention' op expects one element type, but got f32 and f16}}
  %r = "graph.nn_paged_attention"(%0, %1, %2, %3, %4, %5) {scale = 0.25 : f64, window = 0 : i64, cap = 0.0 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0>} : (tensor<5x4x32xf32>, tensor<9x2x16x32xf32>, tensor<9x2x16x32xf16>, tensor<3x4xi32>, tensor<5xi32>, tensor<5xi32>) -> tensor<5x4x32xf32>
  return
}

func.func @nn_paged_attention_c2(%0: tensor<5x4x32xf32>, %1: tensor<9x2x16x32xf64>, %2: tensor<9x2x16x32xf64>, %3: tensor<3x4xi32>, %4: tensor<5xi32>, %5: tensor<5xi32>) {
  // expected-error @below {{'graph.nn_paged_attention' op expects pages of f32, or of narrower floats, but got f64}}
  %r = "graph.nn_paged_attention"(%0, %1, %2, %3, %4, %5) {scale = 0.25 : f64, window = 0 : i64, cap = 0.0 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0>} : (tensor<5x4x32xf32>, tensor<9x2x16x32xf64>, tensor<9x2x16x32xf64>, tensor<3x4xi32>, tensor<5xi32>, tensor<5xi32>) -> tensor<5x4x32xf32>
  return
}

func.func @nn_paged_attention_c2_bytes(%0: tensor<5x4x32xf32>, %1: tensor<9x2x16x32xi8>, %2: tensor<9x2x16x32xi8>, %3: tensor<3x4xi32>, %4: tensor<5xi32>, %5: tensor<5xi32>) {
  // expected-error @below {{'graph.nn_paged_attention' op expects pages of f32, or of narrower floats, but got i8}}
  %r = "graph.nn_paged_attention"(%0, %1, %2, %3, %4, %5) {scale = 0.25 : f64, window = 0 : i64, cap = 0.0 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0>} : (tensor<5x4x32xf32>, tensor<9x2x16x32xi8>, tensor<9x2x16x32xi8>, tensor<3x4xi32>, tensor<5xi32>, tensor<5xi32>) -> tensor<5x4x32xf32>
  return
}

func.func @nn_paged_attention_c2_one(%0: tensor<5x4x32xf32>, %1: tensor<9x2x16x32xi8>, %2: tensor<9x2x16x32xi8>, %3: tensor<3x4xi32>, %4: tensor<5xi32>, %5: tensor<5xi32>, %6: tensor<9x2x16x1xf32>) {
  // expected-error @below {{'graph.nn_paged_attention' op expects scales of both keys and values, or of neither}}
  %r = "graph.nn_paged_attention"(%0, %1, %2, %3, %4, %5, %6) {scale = 0.25 : f64, window = 0 : i64, cap = 0.0 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 0>} : (tensor<5x4x32xf32>, tensor<9x2x16x32xi8>, tensor<9x2x16x32xi8>, tensor<3x4xi32>, tensor<5xi32>, tensor<5xi32>, tensor<9x2x16x1xf32>) -> tensor<5x4x32xf32>
  return
}

func.func @nn_paged_attention_c2_query(%0: tensor<5x4x32xf16>, %1: tensor<9x2x16x32xi8>, %2: tensor<9x2x16x32xi8>, %3: tensor<3x4xi32>, %4: tensor<5xi32>, %5: tensor<5xi32>, %6: tensor<9x2x16x1xf32>, %7: tensor<9x2x16x1xf32>) {
  // expected-error @below {{'graph.nn_paged_attention' op expects f32 queries of pages with scales, but got f16}}
  %r = "graph.nn_paged_attention"(%0, %1, %2, %3, %4, %5, %6, %7) {scale = 0.25 : f64, window = 0 : i64, cap = 0.0 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1>} : (tensor<5x4x32xf16>, tensor<9x2x16x32xi8>, tensor<9x2x16x32xi8>, tensor<3x4xi32>, tensor<5xi32>, tensor<5xi32>, tensor<9x2x16x1xf32>, tensor<9x2x16x1xf32>) -> tensor<5x4x32xf16>
  return
}

func.func @nn_paged_attention_c2_floats(%0: tensor<5x4x32xf32>, %1: tensor<9x2x16x32xf32>, %2: tensor<9x2x16x32xf32>, %3: tensor<3x4xi32>, %4: tensor<5xi32>, %5: tensor<5xi32>, %6: tensor<9x2x16x1xf32>, %7: tensor<9x2x16x1xf32>) {
  // expected-error @below {{'graph.nn_paged_attention' op expects i8 values and an f32 scale, but got 'tensor<9 x 2 x 16 x 32 x f32>' and 'tensor<9 x 2 x 16 x 1 x f32>'}}
  %r = "graph.nn_paged_attention"(%0, %1, %2, %3, %4, %5, %6, %7) {scale = 0.25 : f64, window = 0 : i64, cap = 0.0 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1>} : (tensor<5x4x32xf32>, tensor<9x2x16x32xf32>, tensor<9x2x16x32xf32>, tensor<3x4xi32>, tensor<5xi32>, tensor<5xi32>, tensor<9x2x16x1xf32>, tensor<9x2x16x1xf32>) -> tensor<5x4x32xf32>
  return
}

func.func @nn_paged_attention_c3(%0: tensor<5x4x16xf32>, %1: tensor<9x2x16x32xf32>, %2: tensor<9x2x16x32xf32>, %3: tensor<3x4xi32>, %4: tensor<5xi32>, %5: tensor<5xi32>) {
  // expected-error @below {{'graph.nn_paged_attention' op expects one head dim, but got 16 and 32}}
  %r = "graph.nn_paged_attention"(%0, %1, %2, %3, %4, %5) {scale = 0.25 : f64, window = 0 : i64, cap = 0.0 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0>} : (tensor<5x4x16xf32>, tensor<9x2x16x32xf32>, tensor<9x2x16x32xf32>, tensor<3x4xi32>, tensor<5xi32>, tensor<5xi32>) -> tensor<5x4x16xf32>
  return
}

func.func @nn_paged_attention_c3_count(%0: tensor<5x4x32xf32>, %1: tensor<9x2x16x32xf32>, %2: tensor<8x2x16x32xf32>, %3: tensor<3x4xi32>, %4: tensor<5xi32>, %5: tensor<5xi32>) {
  // expected-error @below {{'graph.nn_paged_attention' op expects one number of pages, but got 9 and 8}}
  %r = "graph.nn_paged_attention"(%0, %1, %2, %3, %4, %5) {scale = 0.25 : f64, window = 0 : i64, cap = 0.0 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0>} : (tensor<5x4x32xf32>, tensor<9x2x16x32xf32>, tensor<8x2x16x32xf32>, tensor<3x4xi32>, tensor<5xi32>, tensor<5xi32>) -> tensor<5x4x32xf32>
  return
}

func.func @nn_paged_attention_c4(%0: tensor<5x3x32xf32>, %1: tensor<9x2x16x32xf32>, %2: tensor<9x2x16x32xf32>, %3: tensor<3x4xi32>, %4: tensor<5xi32>, %5: tensor<5xi32>) {
  // expected-error @below {{'graph.nn_paged_attention' op expects constant heads, a multiple of kv_heads, but got 3 and 2}}
  %r = "graph.nn_paged_attention"(%0, %1, %2, %3, %4, %5) {scale = 0.25 : f64, window = 0 : i64, cap = 0.0 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0>} : (tensor<5x3x32xf32>, tensor<9x2x16x32xf32>, tensor<9x2x16x32xf32>, tensor<3x4xi32>, tensor<5xi32>, tensor<5xi32>) -> tensor<5x3x32xf32>
  return
}

func.func @nn_paged_attention_c5(%0: tensor<5x4x32xf32>, %1: tensor<9x2x16x32xf32>, %2: tensor<9x2x16x32xf32>, %3: tensor<3x4xi32>, %4: tensor<5xi32>, %5: tensor<5x1xi32>) {
  // expected-error @below {{'graph.nn_paged_attention' op expects positions of rank 1, but got 'tensor<5 x 1 x i32>'}}
  %r = "graph.nn_paged_attention"(%0, %1, %2, %3, %4, %5) {scale = 0.25 : f64, window = 0 : i64, cap = 0.0 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0>} : (tensor<5x4x32xf32>, tensor<9x2x16x32xf32>, tensor<9x2x16x32xf32>, tensor<3x4xi32>, tensor<5xi32>, tensor<5x1xi32>) -> tensor<5x4x32xf32>
  return
}

func.func @nn_paged_attention_c5_count(%0: tensor<5x4x32xf32>, %1: tensor<9x2x16x32xf32>, %2: tensor<9x2x16x32xf32>, %3: tensor<3x4xi32>, %4: tensor<4xi32>, %5: tensor<5xi32>) {
  // expected-error @below {{'graph.nn_paged_attention' op expects one number of tokens, but got 5 and 4}}
  %r = "graph.nn_paged_attention"(%0, %1, %2, %3, %4, %5) {scale = 0.25 : f64, window = 0 : i64, cap = 0.0 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0>} : (tensor<5x4x32xf32>, tensor<9x2x16x32xf32>, tensor<9x2x16x32xf32>, tensor<3x4xi32>, tensor<4xi32>, tensor<5xi32>) -> tensor<5x4x32xf32>
  return
}

func.func @nn_paged_attention_c6(%0: tensor<5x4x32xf32>, %1: tensor<9x2x16x32xf32>, %2: tensor<9x2x16x32xf32>, %3: tensor<3x4xi32>, %4: tensor<5xi32>, %5: tensor<5xi32>) {
  // expected-error @below {{'graph.nn_paged_attention' op expects a window and a cap of 0 or more, but got -1 and 0.0}}
  %r = "graph.nn_paged_attention"(%0, %1, %2, %3, %4, %5) {scale = 0.25 : f64, window = -1 : i64, cap = 0.0 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0>} : (tensor<5x4x32xf32>, tensor<9x2x16x32xf32>, tensor<9x2x16x32xf32>, tensor<3x4xi32>, tensor<5xi32>, tensor<5xi32>) -> tensor<5x4x32xf32>
  return
}

func.func @nn_paged_attention_c6_cap(%0: tensor<5x4x32xf32>, %1: tensor<9x2x16x32xf32>, %2: tensor<9x2x16x32xf32>, %3: tensor<3x4xi32>, %4: tensor<5xi32>, %5: tensor<5xi32>) {
  // expected-error @below {{'graph.nn_paged_attention' op expects a window and a cap of 0 or more, but got 0 and -2.0}}
  %r = "graph.nn_paged_attention"(%0, %1, %2, %3, %4, %5) {scale = 0.25 : f64, window = 0 : i64, cap = -2.0 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0>} : (tensor<5x4x32xf32>, tensor<9x2x16x32xf32>, tensor<9x2x16x32xf32>, tensor<3x4xi32>, tensor<5xi32>, tensor<5xi32>) -> tensor<5x4x32xf32>
  return
}
