// RUN: relax-opt %s --relax-schedule=target=x86-64-v3 --remarks -o /dev/null 2>&1 | FileCheck %s
// RUN: relax-opt %s --relax-schedule=target=x86-64-v3 -o /dev/null 2>&1 | FileCheck %s --allow-empty --check-prefix=SILENT

// A rule that cannot schedule a program of its kind says why in a remark.

// CHECK: remark: kernel 'transposed': matmul: sums are read at two indices; scheduled as fallback
// CHECK-NOT: remark
// SILENT-NOT: remark

func.func private @transposed(%x: tensor<4x8xf32>, %w: tensor<8x4xf32>, %out: tensor<4x4xf32>)
    -> tensor<4x4xf32> attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x4xf32>) outs(%init : tensor<4x4xf32>) -> tensor<4x4xf32>
  %0 = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%c, %c : tensor<4x4xf32>, tensor<4x4xf32>) outs(%out : tensor<4x4xf32>) {
  ^bb0(%a: f32, %b: f32, %old: f32):
    %sum = arith.addf %a, %b : f32
    linalg.yield %sum : f32
  } -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
