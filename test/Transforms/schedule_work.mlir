// RUN: relax-opt %s --pass-pipeline='relax-schedule{target=x86-64-v4}' | FileCheck %s

#row = affine_map<(i, j, k) -> (i, k)>
#weight = affine_map<(i, j, k) -> (j, k)>
#scale = affine_map<(i, j, k) -> (j, k floordiv 32)>
#sum = affine_map<(i, j, k) -> (i, j)>

// A multiply-add for each of the 64 * 48 products of a row; the scale and the offset of the 64
// weights of each of 48 columns once, for any count of rows; the offset depends on the position
// alone.
// CHECK-LABEL: func.func private @decoding
// CHECK-SAME:    tir.bytes = "256*a0d0 + 192*a3d0 + 3264", tir.flops = "6144*a3d0 + 6208"
func.func private @decoding(%x: tensor<?x64xf32, #graph.shape<["n", 64]>>, %w: tensor<48x64xi8>, %s: tensor<48x2xf16>,
    %y: tensor<?x48xf32, #graph.shape<["n", 48]>>) -> tensor<?x48xf32, #graph.shape<["n", 48]>>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  %rows = tensor.cast %x : tensor<?x64xf32, #graph.shape<["n", 64]>> to tensor<?x64xf32>
  %out = tensor.cast %y : tensor<?x48xf32, #graph.shape<["n", 48]>> to tensor<?x48xf32>
  %clear = linalg.fill ins(%zero : f32) outs(%out : tensor<?x48xf32>) -> tensor<?x48xf32>
  %0 = linalg.generic {indexing_maps = [#row, #weight, #scale, #sum],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%rows, %w, %s : tensor<?x64xf32>, tensor<48x64xi8>, tensor<48x2xf16>) outs(%clear : tensor<?x48xf32>) {
  ^bb0(%a: f32, %q: i8, %d: f16, %c: f32):
    %number = arith.sitofp %q : i8 to f32
    %scale = arith.extf %d : f16 to f32
    %scaled = arith.mulf %number, %scale : f32
    %k = linalg.index 2 : index
    %place = arith.index_cast %k : index to i32
    %step = arith.sitofp %place : i32 to f32
    %offset = arith.mulf %step, %half : f32
    %weight = arith.addf %scaled, %offset : f32
    %product = arith.mulf %a, %weight : f32
    %total = arith.addf %c, %product : f32
    linalg.yield %total : f32
  } -> tensor<?x48xf32>
  %1 = tensor.cast %0 : tensor<?x48xf32> to tensor<?x48xf32, #graph.shape<["n", 48]>>
  return %1 : tensor<?x48xf32, #graph.shape<["n", 48]>>
}
