// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='relax-schedule{target=vulkan}'

#id = affine_map<(a) -> (a)>

// expected-error @below {{'func.func' op has values of f64, which 'vulkan' does not store; accepted are f32, i32, i1 and indices}}
func.func private @double(%x: tensor<64xf64>, %y: tensor<64xf64>) -> tensor<64xf64>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf64>) outs(%y : tensor<64xf64>) {
  ^bb0(%a: f64, %b: f64):
    linalg.yield %a : f64
  } -> tensor<64xf64>
  return %0 : tensor<64xf64>
}

// -----

#id = affine_map<(a) -> (a)>

func.func private @inside(%x: tensor<64xi32>, %y: tensor<64xi32>) -> tensor<64xi32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<64xi32>) outs(%y : tensor<64xi32>) {
  ^bb0(%a: i32, %b: i32):
    // expected-error @below {{'arith.extsi' op has values of i64, which 'vulkan' does not store; accepted are f32, i32, i1 and indices}}
    %1 = arith.extsi %a : i32 to i64
    %2 = arith.muli %1, %1 : i64
    %3 = arith.trunci %2 : i64 to i32
    linalg.yield %3 : i32
  } -> tensor<64xi32>
  return %0 : tensor<64xi32>
}

