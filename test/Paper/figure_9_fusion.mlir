// RUN: relax-opt %s --pretty | FileCheck %s --check-prefix=BEFORE
// RUN: relax-opt %s --pass-pipeline='relax-annotate-pattern' | FileCheck %s --check-prefix=PATTERN
// RUN: relax-opt %s --pass-pipeline='relax-annotate-pattern,relax-fuse-ops' --check-equivalent-after-each --pretty | FileCheck %s --check-prefix=FUSED
// RUN: relax-opt %s --pass-pipeline='relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,symbol-dce' --check-equivalent-after-each --pretty | FileCheck %s --check-prefix=MERGED
// RUN: relax-opt %s --pass-pipeline='relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,symbol-dce,relax-schedule' | FileCheck %s --check-prefix=KERNEL

// Weights of 4 bits are decoded by a tensor program that no operator stands for. Its pattern follows
// from its loops, so that the product fuses with it (paper Figure 9). One kernel is left: products
// compute their right side panel by panel, once for all rows, as they read f16 here, and numbers of
// `graph.dequantize` (test/Integration/quantized_weights.mlir).

!x = tensor<?x16xf32, #graph.shape<["n", 16]>>
!y = tensor<?x8xf32, #graph.shape<["n", 8]>>
#two = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#one = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#one_out = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>

// PATTERN-DAG: func.func private @decode_q4({{.*}}tir.pattern = #tir.pattern<"injective">
func.func private @decode_q4(%bits: tensor<8x8xi8>, %scale: tensor<8xf32>, %out: tensor<16x8xf32>) -> tensor<16x8xf32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %0 = linalg.generic {indexing_maps = [affine_map<(k, j) -> (j)>, affine_map<(k, j) -> (k, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%scale : tensor<8xf32>) outs(%out : tensor<16x8xf32>) {
  ^bb0(%s: f32, %old: f32):
    %k = linalg.index 0 : index
    %j = linalg.index 1 : index
    %two = arith.constant 2 : index
    %byte = arith.divui %k, %two : index
    %half = arith.remui %k, %two : index
    %both = tensor.extract %bits[%j, %byte] : tensor<8x8xi8>
    %four = arith.constant 4 : i8
    %half8 = arith.index_cast %half : index to i8
    %shift = arith.muli %half8, %four : i8
    %shifted = arith.shrui %both, %shift : i8
    %mask = arith.constant 15 : i8
    %code = arith.andi %shifted, %mask : i8
    %number = arith.uitofp %code : i8 to f32
    %value = arith.mulf %number, %s : f32
    linalg.yield %value : f32
  } -> tensor<16x8xf32>
  return %0 : tensor<16x8xf32>
}

// PATTERN-DAG: func.func private @mm({{.*}}tir.pattern = #tir.pattern<"out_fusible">
func.func private @mm(%x: !x, %w: tensor<16x8xf32>, %y: !y) -> !y attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %lhs = tensor.cast %x : !x to tensor<?x16xf32>
  %out = tensor.cast %y : !y to tensor<?x8xf32>
  %zero = arith.constant 0.0 : f32
  %init = linalg.fill ins(%zero : f32) outs(%out : tensor<?x8xf32>) -> tensor<?x8xf32>
  %sum = linalg.generic {
      indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%lhs, %w : tensor<?x16xf32>, tensor<16x8xf32>) outs(%init : tensor<?x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %product = arith.mulf %a, %b : f32
    %next = arith.addf %c, %product : f32
    linalg.yield %next : f32
  } -> tensor<?x8xf32>
  %result = tensor.cast %sum : tensor<?x8xf32> to !y
  return %result : !y
}

// BEFORE-LABEL: func @main(
// BEFORE-NEXT:    %0 = graph.call_tir @decode_q4(%arg1, %arg2) : tensor<16 x 8 x f32>
// BEFORE-NEXT:    %1 = graph.call_tir @mm(%arg0, %0) : tensor<n x 8 x f32>

// FUSED-LABEL: func @main(
// FUSED-NEXT:    %0 = graph.call @fused_decode_q4_mm(%arg1, %arg2, %arg0) : tensor<n x 8 x f32>
// FUSED-NEXT:    return %0
// FUSED:       func private @fused_decode_q4_mm(
// FUSED-NEXT:    graph.call_tir @decode_q4(
// FUSED-NEXT:    graph.call_tir @mm(

// MERGED-LABEL: func @main(
// MERGED-NEXT:    %0 = graph.call_tir @fused_decode_q4_mm(%arg1, %arg2, %arg0) : tensor<n x 8 x f32>
// MERGED-NEXT:    return %0

// KERNEL:       func.func private @fused_decode_q4_mm
// KERNEL-SAME:    tir.schedule = "computed_matmul"
func.func @main(%x: !x, %bits: tensor<8x8xi8>, %scale: tensor<8xf32>) -> !y {
  %0 = "graph.call_tir"(%bits, %scale) {callee = @decode_q4, sym_args = #graph.shape<[]>, operandSegmentSizes = #two, resultSegmentSizes = #one_out} : (tensor<8x8xi8>, tensor<8xf32>) -> tensor<16x8xf32>
  %1 = "graph.call_tir"(%x, %0) {callee = @mm, sym_args = #graph.shape<[]>, operandSegmentSizes = #two, resultSegmentSizes = #one_out} : (!x, tensor<16x8xf32>) -> !y
  return %1 : !y
}

func.func private @decode_f16(%w: tensor<16x8xf16>, %out: tensor<16x8xf32>) -> tensor<16x8xf32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %0 = linalg.generic {indexing_maps = [affine_map<(k, j) -> (k, j)>, affine_map<(k, j) -> (k, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<16x8xf16>) outs(%out : tensor<16x8xf32>) {
  ^bb0(%half: f16, %old: f32):
    %value = arith.extf %half : f16 to f32
    linalg.yield %value : f32
  } -> tensor<16x8xf32>
  return %0 : tensor<16x8xf32>
}

// BEFORE-LABEL: func @half(
// BEFORE-NEXT:    %0 = graph.call_tir @decode_f16(%arg1) : tensor<16 x 8 x f32>
// BEFORE-NEXT:    %1 = graph.call_tir @mm(%arg0, %0) : tensor<n x 8 x f32>

// MERGED-LABEL: func @half(
// MERGED-NEXT:    %0 = graph.call_tir @fused_decode_f16_mm(%arg1, %arg0) : tensor<n x 8 x f32>
// MERGED-NEXT:    return %0
// MERGED:       func private @fused_decode_q4_mm(
// MERGED-NOT:     tensor<16 x 8 x f32>
// MERGED:         return
// MERGED:       func private @fused_decode_f16_mm(
// MERGED-NOT:     tensor<16 x 8 x f32>
// MERGED:         return
func.func @half(%x: !x, %w: tensor<16x8xf16>) -> !y {
  %0 = "graph.call_tir"(%w) {callee = @decode_f16, sym_args = #graph.shape<[]>, operandSegmentSizes = #one, resultSegmentSizes = #one_out} : (tensor<16x8xf16>) -> tensor<16x8xf32>
  %1 = "graph.call_tir"(%x, %0) {callee = @mm, sym_args = #graph.shape<[]>, operandSegmentSizes = #two, resultSegmentSizes = #one_out} : (!x, tensor<16x8xf32>) -> !y
  return %1 : !y
}
