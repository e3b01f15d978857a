// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir)' | FileCheck %s

// A product reads floats as they lie, and widens them itself.
// CHECK-LABEL: func.func @widened
// CHECK: call_tir"(%arg1, %arg0) {callee = @fused_astype_matmul,
// CHECK-NOT: call_tir
// CHECK: return
func.func @widened(%x: tensor<4x64xf32>, %w: tensor<64x64xf16>) -> tensor<4x64xf32> {
  %0 = "graph.astype"(%w) {dtype = f32} : (tensor<64x64xf16>) -> tensor<64x64xf32>
  %1 = "graph.matmul"(%x, %0) : (tensor<4x64xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
  return %1 : tensor<4x64xf32>
}

// What no product's schedule can decode is decoded once, to memory, in front of each call of the rest.
// CHECK-LABEL: func.func @decoded
// CHECK: %[[D:[0-9]+]] = "graph.call_tir"(%arg1) {callee = @[[$DECODE:astype_[0-9]+]],
// CHECK: "graph.call_tir"(%arg0, %arg3, %[[D]]) {callee = @[[$REST:fused_astype_permute_dims_matmul_add]],
// CHECK: %[[E:[0-9]+]] = "graph.call_tir"(%arg2) {callee = @[[$DECODE]],
// CHECK: "graph.call_tir"({{.*}}%[[E]]) {callee = @[[$REST]],
func.func @decoded(%x: tensor<4x64xf32>, %w: tensor<64x64xi1>, %v: tensor<64x64xi1>, %r: tensor<4x64xf32>) -> tensor<4x64xf32> {
  %0 = "graph.astype"(%w) {dtype = f32} : (tensor<64x64xi1>) -> tensor<64x64xf32>
  %1 = "graph.permute_dims"(%0) {axes = array<i64: 1, 0>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = "graph.matmul"(%x, %1) : (tensor<4x64xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
  %3 = "graph.add"(%2, %r) : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<4x64xf32>
  %4 = "graph.astype"(%v) {dtype = f32} : (tensor<64x64xi1>) -> tensor<64x64xf32>
  %5 = "graph.permute_dims"(%4) {axes = array<i64: 1, 0>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %6 = "graph.matmul"(%3, %5) : (tensor<4x64xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
  %7 = "graph.add"(%6, %r) : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<4x64xf32>
  return %7 : tensor<4x64xf32>
}

// CHECK: func.func private @[[$DECODE]](
// CHECK: uitofp
// CHECK: func.func private @[[$REST]](
// CHECK-NOT: uitofp
