// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='relax-schedule{target=x86-64-v3}'

func.func private @negative_unknown_op(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>) -> tensor<4x4xf32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  // expected-error @below {{'linalg.softmax' op cannot be in a tensor program; expects ops of affine, arith}}
  %0 = linalg.softmax dimension(1) ins(%x : tensor<4x4xf32>) outs(%y : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

#map = affine_map<(a) -> (a)>
func.func private @negative_unknown_scalar_op(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %0 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%x : tensor<?xf32>) outs(%y : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    // expected-error @below {{'complex.create' op cannot be in a tensor program}}
    %1 = complex.create %a, %b : complex<f32>
    // expected-error @below {{'complex.abs' op cannot be in a tensor program}}
    %2 = complex.abs %1 : complex<f32>
    linalg.yield %2 : f32
  } -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
