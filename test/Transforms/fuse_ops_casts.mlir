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

// So does an epilogue: the second product has bfloat16 numbers on both sides.
// CHECK-LABEL: func.func @rounded_between_products
// CHECK:         callee = @fused_matmul_silu_astype,
// CHECK-SAME:      -> tensor<8x64xbf16>
// CHECK:         callee = @fused_astype_matmul_1,
func.func @rounded_between_products(%x: tensor<8x32xf32>, %v: tensor<32x64xf32>, %w: tensor<64x40xbf16>) -> tensor<8x40xf32> {
  %0 = "graph.matmul"(%x, %v) : (tensor<8x32xf32>, tensor<32x64xf32>) -> tensor<8x64xf32>
  %1 = "graph.nn_silu"(%0) : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %2 = "graph.astype"(%1) {dtype = bf16} : (tensor<8x64xf32>) -> tensor<8x64xbf16>
  %3 = "graph.astype"(%2) {dtype = f32} : (tensor<8x64xbf16>) -> tensor<8x64xf32>
  %4 = "graph.astype"(%w) {dtype = f32} : (tensor<64x40xbf16>) -> tensor<64x40xf32>
  %5 = "graph.matmul"(%3, %4) : (tensor<8x64xf32>, tensor<64x40xf32>) -> tensor<8x40xf32>
  return %5 : tensor<8x40xf32>
}

// What something else reads too is widened where it is computed.
// CHECK-LABEL: func.func @widened_for_others
// CHECK:         callee = @fused_matmul_astype,
// CHECK-SAME:      -> tensor<8x8xf32>
func.func @widened_for_others(%x: tensor<8x32xf32>, %v: tensor<32x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = "graph.matmul"(%x, %v) : (tensor<8x32xf32>, tensor<32x8xf32>) -> tensor<8x8xf32>
  %1 = "graph.astype"(%0) {dtype = bf16} : (tensor<8x8xf32>) -> tensor<8x8xbf16>
  %2 = "graph.astype"(%1) {dtype = f32} : (tensor<8x8xbf16>) -> tensor<8x8xf32>
  %3 = "graph.matmul"(%2, %w) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %4 = "graph.add"(%2, %3) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %4 : tensor<8x8xf32>
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
