// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='relax-schedule{target=x86-64-v3}'

func.func private @negative_unknown_op(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  // expected-error @below {{'tensor.pad' op has no CPU schedule}}
  %0 = tensor.pad %x low[%c1] high[%c1] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<?xf32> to tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

#map = affine_map<(a) -> (a)>
func.func private @negative_unknown_scalar_op(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %0 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%x : tensor<?xf32>) outs(%y : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    // expected-error @below {{'complex.create' op has no vector form}}
    %1 = complex.create %a, %b : complex<f32>
    %2 = complex.abs %1 : complex<f32>
    linalg.yield %2 : f32
  } -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
