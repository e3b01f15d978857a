// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='relax-schedule{target=webgpu}'

#id = affine_map<(a) -> (a)>

// expected-error @below {{'func.func' op has values of f64, which 'webgpu' does not store; accepted are f32, f16, bf16, i64, i32, i16, i8, i1 and indices}}
func.func private @double(%x: tensor<64xf64>, %y: tensor<64xf64>) -> tensor<64xf64>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf64>) outs(%y : tensor<64xf64>) {
  ^bb0(%a: f64, %b: f64):
    linalg.yield %a : f64
  } -> tensor<64xf64>
  return %0 : tensor<64xf64>
}
