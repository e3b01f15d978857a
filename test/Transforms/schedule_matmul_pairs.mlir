// RUN: relax-opt %s --pass-pipeline='relax-schedule{target=x86-64-v4+avx512bf16}' | FileCheck %s
// RUN: relax-opt %s --pass-pipeline='relax-schedule{target=x86-64-v4}' | FileCheck %s --check-prefix=SINGLES

#left = affine_map<(m, p, j, k) -> (m, k)>
#right = affine_map<(m, p, j, k) -> (p, k floordiv 2, j, k mod 2)>
#sums = affine_map<(m, p, j, k) -> (m, p, j)>
#id = affine_map<(m, n) -> (m, n)>

// Panels of pairs of seven elements: the eighth is zero if the function says so, and pairs are
// multiplied without conversion by targets that can.
// CHECK-LABEL:   func.func private @padded(
// CHECK-SAME:      tir.schedule = "matmul"
// CHECK:           llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// SINGLES-LABEL: func.func private @padded(
// SINGLES-NOT:     tir.schedule = "matmul"
func.func private @padded(%x: tensor<?x7xbf16>, %w: tensor<2x4x32x2xbf16>, %out: tensor<?x64xf32>) -> tensor<?x64xf32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64, tir.zero_padded} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x7xbf16>
  %empty = tensor.empty(%m) : tensor<?x2x32xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x2x32xf32>) -> tensor<?x2x32xf32>
  %sums = linalg.generic {indexing_maps = [#left, #right, #sums], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x7xbf16>, tensor<2x4x32x2xbf16>) outs(%zeros : tensor<?x2x32xf32>) {
  ^bb0(%a: bf16, %b: bf16, %t: f32):
    %l = arith.extf %a : bf16 to f32
    %r = arith.extf %b : bf16 to f32
    %p = arith.mulf %l, %r : f32
    %s = arith.addf %t, %p : f32
    linalg.yield %s : f32
  } -> tensor<?x2x32xf32>
  %flat = tensor.collapse_shape %sums [[0], [1, 2]] : tensor<?x2x32xf32> into tensor<?x64xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%flat : tensor<?x64xf32>) outs(%out : tensor<?x64xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// Otherwise it is undefined, and not read.
// CHECK-LABEL:   func.func private @anything(
// CHECK-NOT:       tir.schedule = "matmul"
// CHECK-NOT:       dpbf16ps
func.func private @anything(%x: tensor<?x7xbf16>, %w: tensor<2x4x32x2xbf16>, %out: tensor<?x64xf32>) -> tensor<?x64xf32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x7xbf16>
  %empty = tensor.empty(%m) : tensor<?x2x32xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x2x32xf32>) -> tensor<?x2x32xf32>
  %sums = linalg.generic {indexing_maps = [#left, #right, #sums], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x7xbf16>, tensor<2x4x32x2xbf16>) outs(%zeros : tensor<?x2x32xf32>) {
  ^bb0(%a: bf16, %b: bf16, %t: f32):
    %l = arith.extf %a : bf16 to f32
    %r = arith.extf %b : bf16 to f32
    %p = arith.mulf %l, %r : f32
    %s = arith.addf %t, %p : f32
    linalg.yield %s : f32
  } -> tensor<?x2x32xf32>
  %flat = tensor.collapse_shape %sums [[0], [1, 2]] : tensor<?x2x32xf32> into tensor<?x64xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%flat : tensor<?x64xf32>) outs(%out : tensor<?x64xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
