// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,relax-pack-weights{target=x86-64-v4+avx512bf16},symbol-dce' | FileCheck %s
// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,relax-pack-weights{target=x86-64-v4},symbol-dce' | FileCheck %s --check-prefix=WIDE
// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,relax-pack-weights{target=x86-64-v4+avx512bf16},symbol-dce,relax-schedule{target=x86-64-v4+avx512bf16}' | FileCheck %s --check-prefix=DOT
// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,relax-pack-weights{target=x86-64-v4+avx512bf16+amx-tile+amx-bf16},symbol-dce,relax-schedule{target=x86-64-v4+avx512bf16+amx-tile+amx-bf16}' | FileCheck %s --check-prefix=TILES
// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,relax-pack-weights{target=sapphirerapids+-amx-tile},symbol-dce,relax-schedule{target=sapphirerapids+-amx-tile}' | FileCheck %s --check-prefix=SINGLES

// Numbers of bf16 on both sides: neighbours along k lie side by side, whether or not the target multiplies such pairs.
// CHECK-LABEL: func.func @rounded
// CHECK:         callee = @pack_weights,
// CHECK-SAME:      -> tensor<2x32x32x2xbf16>
// WIDE-LABEL:  func.func @rounded
// WIDE:          callee = @pack_weights,
// WIDE-SAME:       -> tensor<2x32x32x2xbf16>
func.func @rounded(%x: tensor<?x64xbf16, #graph.shape<["n", 64]>>, %w: tensor<40x64xbf16>) -> tensor<?x40xf32, #graph.shape<["n", 40]>> attributes {graph.num_inputs = 1 : i64} {
  %l = "graph.astype"(%x) {dtype = f32} : (tensor<?x64xbf16, #graph.shape<["n", 64]>>) -> tensor<?x64xf32, #graph.shape<["n", 64]>>
  %r = "graph.astype"(%w) {dtype = f32} : (tensor<40x64xbf16>) -> tensor<40x64xf32>
  %t = "graph.permute_dims"(%r) {axes = array<i64: 1, 0>} : (tensor<40x64xf32>) -> tensor<64x40xf32>
  %0 = "graph.matmul"(%l, %t) : (tensor<?x64xf32, #graph.shape<["n", 64]>>, tensor<64x40xf32>) -> tensor<?x40xf32, #graph.shape<["n", 40]>>
  return %0 : tensor<?x40xf32, #graph.shape<["n", 40]>>
}

// The left side has more digits than bf16 holds: weights are widened in registers.
// CHECK-LABEL: func.func @exact
// CHECK:         callee = @pack_weights
// CHECK-SAME:      -> tensor<2x64x32xbf16>
func.func @exact(%x: tensor<?x64xf32, #graph.shape<["n", 64]>>, %w: tensor<40x64xbf16>) -> tensor<?x40xf32, #graph.shape<["n", 40]>> attributes {graph.num_inputs = 1 : i64} {
  %r = "graph.astype"(%w) {dtype = f32} : (tensor<40x64xbf16>) -> tensor<40x64xf32>
  %t = "graph.permute_dims"(%r) {axes = array<i64: 1, 0>} : (tensor<40x64xf32>) -> tensor<64x40xf32>
  %0 = "graph.matmul"(%x, %t) : (tensor<?x64xf32, #graph.shape<["n", 64]>>, tensor<64x40xf32>) -> tensor<?x40xf32, #graph.shape<["n", 40]>>
  return %0 : tensor<?x40xf32, #graph.shape<["n", 40]>>
}

// Of an odd number the last pair has a zero, where the target multiplies pairs.
// CHECK-LABEL: func.func @odd
// CHECK:         callee = @pack_weights
// CHECK-SAME:      -> tensor<2x4x32x2xbf16>
// WIDE-LABEL:  func.func @odd
// WIDE:          callee = @pack_weights
// WIDE-SAME:       -> tensor<2x7x32xbf16>
func.func @odd(%x: tensor<?x7xbf16, #graph.shape<["n", 7]>>, %w: tensor<40x7xbf16>) -> tensor<?x40xf32, #graph.shape<["n", 40]>> attributes {graph.num_inputs = 1 : i64} {
  %l = "graph.astype"(%x) {dtype = f32} : (tensor<?x7xbf16, #graph.shape<["n", 7]>>) -> tensor<?x7xf32, #graph.shape<["n", 7]>>
  %r = "graph.astype"(%w) {dtype = f32} : (tensor<40x7xbf16>) -> tensor<40x7xf32>
  %t = "graph.permute_dims"(%r) {axes = array<i64: 1, 0>} : (tensor<40x7xf32>) -> tensor<7x40xf32>
  %0 = "graph.matmul"(%l, %t) : (tensor<?x7xf32, #graph.shape<["n", 7]>>, tensor<7x40xf32>) -> tensor<?x40xf32, #graph.shape<["n", 40]>>
  return %0 : tensor<?x40xf32, #graph.shape<["n", 40]>>
}

// The product before rounds: the one behind it reads bf16 numbers, and multiplies pairs of them too.
// CHECK-LABEL: func.func @rounded_between_products
// CHECK:         callee = @pack_weights_4,
// CHECK-SAME:      -> tensor<2x24x32x2xbf16>
// CHECK:         callee = @fused_astype_permute_dims_matmul_relu_packed,
// CHECK-SAME:      -> tensor<?x48xbf16,
// CHECK:         callee = @fused_astype_permute_dims_matmul_3_packed,
func.func @rounded_between_products(%x: tensor<?x64xf32, #graph.shape<["n", 64]>>, %v: tensor<48x64xbf16>, %w: tensor<40x48xbf16>) -> tensor<?x40xf32, #graph.shape<["n", 40]>> attributes {graph.num_inputs = 1 : i64} {
  %q = "graph.astype"(%v) {dtype = f32} : (tensor<48x64xbf16>) -> tensor<48x64xf32>
  %s = "graph.permute_dims"(%q) {axes = array<i64: 1, 0>} : (tensor<48x64xf32>) -> tensor<64x48xf32>
  %0 = "graph.matmul"(%x, %s) : (tensor<?x64xf32, #graph.shape<["n", 64]>>, tensor<64x48xf32>) -> tensor<?x48xf32, #graph.shape<["n", 48]>>
  %1 = "graph.nn_relu"(%0) : (tensor<?x48xf32, #graph.shape<["n", 48]>>) -> tensor<?x48xf32, #graph.shape<["n", 48]>>
  %h = "graph.astype"(%1) {dtype = bf16} : (tensor<?x48xf32, #graph.shape<["n", 48]>>) -> tensor<?x48xbf16, #graph.shape<["n", 48]>>
  %l = "graph.astype"(%h) {dtype = f32} : (tensor<?x48xbf16, #graph.shape<["n", 48]>>) -> tensor<?x48xf32, #graph.shape<["n", 48]>>
  %r = "graph.astype"(%w) {dtype = f32} : (tensor<40x48xbf16>) -> tensor<40x48xf32>
  %t = "graph.permute_dims"(%r) {axes = array<i64: 1, 0>} : (tensor<40x48xf32>) -> tensor<48x40xf32>
  %2 = "graph.matmul"(%l, %t) : (tensor<?x48xf32, #graph.shape<["n", 48]>>, tensor<48x40xf32>) -> tensor<?x40xf32, #graph.shape<["n", 40]>>
  return %2 : tensor<?x40xf32, #graph.shape<["n", 40]>>
}

// CHECK-LABEL: func.func private @fused_astype_permute_dims_matmul_packed(
// CHECK:         linalg.generic
// CHECK-SAME:    iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]

// DOT-LABEL:   func.func private @fused_astype_permute_dims_matmul_packed(
// DOT-SAME:      memref<2x32x32x2xbf16>
// DOT:           %[[PANELS:.*]] = memref.collapse_shape {{.*}} : memref<2x32x32x2xbf16> into memref<4096xbf16>
// The first tile of a panel asks for what lies 8 KiB ahead, the others for what they load anyway.
// DOT:           %[[AHEAD:.*]] = arith.select %{{.*}}, %c4096, %c0 : index
// DOT:           %[[AT:.*]] = arith.addi %{{.*}}, %[[AHEAD]] : index
// DOT:           scf.for
// DOT:             %[[LINE:.*]] = arith.addi %[[AT]], %{{.*}} : index
// DOT:             memref.prefetch %[[PANELS]][%[[LINE]]], read, locality<2>, data : memref<4096xbf16>
// DOT:             llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// DOT-SAME:        (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>

// From five rows on, in tile registers: rows where they lie, panels as they are packed, sums of 2 by 2 tiles.
// TILES-LABEL: func.func private @fused_astype_permute_dims_matmul_packed(
// TILES-SAME:    %[[X:[a-z0-9_]+]]: memref<?x64xbf16>
// TILES:         llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// TILES:         scf.parallel
// TILES:           llvm.call_intrinsic "llvm.x86.ldtilecfg"
// TILES:           llvm.call_intrinsic "llvm.x86.tilezero"(%c0_i8)
// TILES:           scf.for
// TILES:             llvm.call_intrinsic "llvm.x86.tileloadd64"(%c4_i8, %{{.*}}, %c128_i64)
// TILES:             llvm.call_intrinsic "llvm.x86.tileloadd64"(%c6_i8, %{{.*}}, %c128_i64)
// TILES:             llvm.call_intrinsic "llvm.x86.tdpbf16ps"(%c0_i8, %c4_i8, %c6_i8)
// TILES:           llvm.call_intrinsic "llvm.x86.tilestored64"(%c0_i8, %{{.*}}, %c128_i64)
// TILES:           llvm.call_intrinsic "llvm.x86.tilerelease"
// TILES:         scf.reduce

// Where a pair takes longer than two numbers: pairs up to eight rows, from nine on each panel is made f32 numbers once.
// The loop over k of a tile that fills the registers does two steps at a time.
// SINGLES:       #[[$COUNT:.*]] = #llvm.loop_unroll<count = 2 : i32>
// SINGLES:       #[[$TWICE:.*]] = #llvm.loop_annotation<unroll = #[[$COUNT]]>
// SINGLES-LABEL: func.func private @fused_astype_permute_dims_matmul_packed(
// SINGLES:         scf.if
// SINGLES:           llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// SINGLES:         arith.cmpi ult, %{{.*}}, %c9 : index
// SINGLES:         scf.if
// SINGLES:           llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// SINGLES:         } else {
// SINGLES:           scf.parallel
// SINGLES:             arith.extf {{.*}} : vector<16xbf16> to vector<16xf32>
// SINGLES:           scf.parallel
// SINGLES:             scf.for
// SINGLES:               arith.shli
// SINGLES:               arith.andi
// Three rows of four are read by the instructions that multiply, behind an address for each vector.
// SINGLES:               %[[FIRST:.*]] = llvm.inline_asm "", "=r,0"
// SINGLES:               %[[SECOND:.*]] = llvm.inline_asm "", "=r,0" %[[FIRST]]
// SINGLES:               %[[A:.*]] = llvm.inttoptr %[[FIRST]]
// SINGLES:               llvm.load %[[A]]
// SINGLES:               %[[B:.*]] = llvm.inttoptr %[[SECOND]]
// SINGLES:               llvm.load %[[B]]
// SINGLES-COUNT-6:       vector.fma
// SINGLES:               memref.load
// SINGLES-COUNT-22:      vector.fma
// SINGLES-NEXT:          scf.yield
// SINGLES-NEXT:      } {llvm.loop_annotation = #[[$TWICE]]}
// SINGLES-NOT:       dpbf16ps
// SINGLES:           scf.reduce
