// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,symbol-dce' | FileCheck %s

// What computes ends with the rounding; the matmul reads the small numbers and widens them itself.
// CHECK-LABEL: func.func @rounded_between
// CHECK:         callee = @fused_silu_astype,
// CHECK-SAME:      -> tensor<8x64xbf16>
// CHECK:         callee = @fused_astype_matmul,
func.func @rounded_between(%x: tensor<8x64xf32>, %w: tensor<64x40xf32>) -> tensor<8x40xf32> {
  %0 = "graph.nn_silu"(%x) : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %1 = "graph.astype"(%0) {dtype = bf16} : (tensor<8x64xf32>) -> tensor<8x64xbf16>
  %2 = "graph.astype"(%1) {dtype = f32} : (tensor<8x64xbf16>) -> tensor<8x64xf32>
  %3 = "graph.matmul"(%2, %w) : (tensor<8x64xf32>, tensor<64x40xf32>) -> tensor<8x40xf32>
  return %3 : tensor<8x40xf32>
}

// A rounding alone is read in place.
// CHECK-LABEL: func.func @rounded
// CHECK-NOT:     callee = @astype
// CHECK:         callee = @fused_astype_matmul
// CHECK-NEXT:    return
func.func @rounded(%x: tensor<8x64xf32>, %w: tensor<64x40xf32>) -> tensor<8x40xf32> {
  %1 = "graph.astype"(%x) {dtype = bf16} : (tensor<8x64xf32>) -> tensor<8x64xbf16>
  %2 = "graph.astype"(%1) {dtype = f32} : (tensor<8x64xbf16>) -> tensor<8x64xf32>
  %3 = "graph.matmul"(%2, %w) : (tensor<8x64xf32>, tensor<64x40xf32>) -> tensor<8x40xf32>
  return %3 : tensor<8x40xf32>
}
