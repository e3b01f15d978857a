// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,relax-pack-weights{target=x86-64-v4},symbol-dce,relax-schedule{target=x86-64-v4}' | FileCheck %s

// Rows of 512 elements are half a page apart: their lines conflict in cache sets. A tile of 14 rows
// is multiplied by all 16 panels before the next tile, if k is so short that it would wait for
// lines.
// CHECK-LABEL: func.func private @fused_permute_dims_matmul_packed(
// CHECK-SAME:    memref<16x16x32xf32>
// CHECK:         scf.parallel {{.*}} to (%c22)
func.func @colliding(%x: tensor<300x16xf32>, %w: tensor<512x16xf32>) -> tensor<300x512xf32> attributes {graph.num_inputs = 1 : i64} {
  %t = "graph.permute_dims"(%w) {axes = array<i64: 1, 0>} : (tensor<512x16xf32>) -> tensor<16x512xf32>
  %y = "graph.matmul"(%x, %t) : (tensor<300x16xf32>, tensor<16x512xf32>) -> tensor<300x512xf32>
  return %y : tensor<300x512xf32>
}

// Other rows do not: all of them are multiplied by a panel before the next panel.
// CHECK-LABEL: func.func private @fused_permute_dims_matmul_1_packed(
// CHECK-SAME:    memref<16x16x32xf32>
// CHECK:         scf.parallel {{.*}} to (%c16)
func.func @spread(%x: tensor<300x16xf32>, %w: tensor<500x16xf32>) -> tensor<300x500xf32> attributes {graph.num_inputs = 1 : i64} {
  %t = "graph.permute_dims"(%w) {axes = array<i64: 1, 0>} : (tensor<500x16xf32>) -> tensor<16x500xf32>
  %y = "graph.matmul"(%x, %t) : (tensor<300x16xf32>, tensor<16x500xf32>) -> tensor<300x500xf32>
  return %y : tensor<300x500xf32>
}

// Nearly a page apart, 16 of them share a set; a task has 19 panels.
// CHECK-LABEL: func.func private @fused_permute_dims_matmul_2_packed(
// CHECK-SAME:    memref<32x16x32xf32>
// CHECK:         scf.parallel {{.*}} to (%c44)
func.func @beside(%x: tensor<300x16xf32>, %w: tensor<1023x16xf32>) -> tensor<300x1023xf32> attributes {graph.num_inputs = 1 : i64} {
  %t = "graph.permute_dims"(%w) {axes = array<i64: 1, 0>} : (tensor<1023x16xf32>) -> tensor<16x1023xf32>
  %y = "graph.matmul"(%x, %t) : (tensor<300x16xf32>, tensor<16x1023xf32>) -> tensor<300x1023xf32>
  return %y : tensor<300x1023xf32>
}

// Tiles that take longer do not wait.
// CHECK-LABEL: func.func private @fused_permute_dims_matmul_3_packed(
// CHECK-SAME:    memref<16x29x32xf32>
// CHECK:         scf.parallel {{.*}} to (%c32)
func.func @longer(%x: tensor<300x29xf32>, %w: tensor<512x29xf32>) -> tensor<300x512xf32> attributes {graph.num_inputs = 1 : i64} {
  %t = "graph.permute_dims"(%w) {axes = array<i64: 1, 0>} : (tensor<512x29xf32>) -> tensor<29x512xf32>
  %y = "graph.matmul"(%x, %t) : (tensor<300x29xf32>, tensor<29x512xf32>) -> tensor<300x512xf32>
  return %y : tensor<300x512xf32>
}
