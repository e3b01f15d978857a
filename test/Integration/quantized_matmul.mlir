// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-legalize-ops)' | FileCheck %s
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,symbol-dce)' | FileCheck %s --check-prefix=FUSED
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,relax-schedule{target=x86-64-v4+avx512vnni})' | FileCheck %s --check-prefix=VNNI
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,relax-schedule{target=x86-64-v3})' | FileCheck %s --check-prefix=AVX2
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,relax-schedule{target=x86-64-v3+avxvnni})' | FileCheck %s --check-prefix=SHORT
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,relax-schedule{target=sapphirerapids+-amx-tile})' | FileCheck %s --check-prefix=XEON
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,relax-schedule{target=znver5})' | FileCheck %s --check-prefix=ZEN5
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,relax-schedule{target=aarch64-v8.2})' | FileCheck %s --check-prefix=ARM
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,relax-schedule{target=x86-64-v4+avx512vnni+amx-tile+amx-int8})' | FileCheck %s --check-prefix=TILES

#three = array<i32: 1, 1, 1, 0, 0, 0>
!x = tensor<?x64xf32, #graph.shape<["n", 64]>>
!q = tensor<?x64xi8, #graph.shape<["n", 64]>>
!s = tensor<?x2xf32, #graph.shape<["n", 2]>>
!y = tensor<?x48xf32, #graph.shape<["n", 48]>>

// Decoding is a program like any other: element-wise, over panels.
// CHECK-LABEL: func.func private @dequantize(
// CHECK-SAME:    tensor<3x2x4x16x4xi8>, %{{.*}}: tensor<3x2x16xf16>, %{{.*}}: tensor<3x2x16xf16>, %{{.*}}: tensor<48x64xf32>)
// CHECK:         %[[ALL:.*]] = tensor.expand_shape %{{.*}} {{\[}}[0, 1], [2, 3, 4, 5]] output_shape [3, 16, 2, 2, 4, 4]
// CHECK:         linalg.generic
// CHECK-SAME:      outs(%[[ALL]] : tensor<3x16x2x2x4x4xf32>)
// CHECK:           linalg.index 3
// CHECK:           arith.shrui
// CHECK:           arith.andi
// CHECK:           arith.sitofp
// CHECK:           arith.mulf
// CHECK:           arith.addf
// CHECK:         tensor.collapse_shape

// Fused, numbers are decoded where they are multiplied: no f32 matrix is left.
// FUSED-LABEL: func.func @residual
// FUSED:         callee = @quantize_blocks
// FUSED:         callee = @fused_[[NAME:[a-z_]*]]_matmul_add,
// FUSED-NOT:     callee
// FUSED:         return
// FUSED-NOT:   48x64xf32
// FUSED-NOT:   64x48xf32
// FUSED:       func.func private @fused_[[NAME]]_matmul_add(
// FUSED:         iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction", "reduction"]
// FUSED:         arith.shrui %{{.*}} : i8
// FUSED:         arith.extf %{{.*}} : f16 to f32
// FUSED:         arith.addf
// FUSED-NOT:   48x64xf32
// FUSED-NOT:   64x48xf32

// The left side is copied, then multiplied: of a block of 32 by 16 columns, the weights are summed in
// their bytes and by a product with ones, for the offsets of all rows; one row more is 8 dot products,
// and the scales come after them. Two rows are the step of many.
// VNNI-LABEL: func.func private @fused_
// VNNI-SAME:    tir.schedule = "quantized_matmul"
// VNNI:         scf.parallel
// VNNI:           vector.reduction <add>
// VNNI:         scf.parallel
// VNNI-COUNT-7:     arith.addi %{{.*}} : vector<64xi8>
// VNNI-NEXT:        vpdpbusd.512
// VNNI-NEXT:        arith.sitofp
// VNNI-COUNT-8:     vpdpbusd.512
// VNNI-NOT:         vpdpbusd
// VNNI:             arith.sitofp
// VNNI:             scf.yield
// VNNI-COUNT-7:     arith.addi %{{.*}} : vector<64xi8>
// VNNI-NEXT:        vpdpbusd.512
// VNNI-NEXT:        arith.sitofp
// VNNI-COUNT-16:    vpdpbusd.512
// VNNI-NOT:         vpdpbusd
// VNNI:             arith.sitofp
// VNNI:             scf.yield
// VNNI:           arith.addf
// VNNI:           vector.maskedstore
// VNNI-NOT:     linalg

// Eight rows at once, which are read behind addresses in registers of their own.
// XEON-LABEL: func.func private @fused_
// XEON-SAME:    tir.schedule = "quantized_matmul"
// XEON:         scf.parallel
// XEON:         scf.parallel
// XEON:           scf.for %{{.*}} step %c8
// XEON-COUNT-3:     llvm.inline_asm "", "=r,0"
// XEON-COUNT-64:    vpdpbusd.512
// XEON-NOT:         vpdpbusd
// XEON:             arith.sitofp

// One row panel by panel, 6 KiB of numbers ahead. Four rows of two panels at once, and of the last panel, each number of
// a row loaded once, behind registers of its own; totals lie a known distance apart.
// ZEN5-LABEL: func.func private @fused_
// ZEN5-SAME:    tir.schedule = "quantized_matmul"
// ZEN5:         scf.parallel
// ZEN5:         scf.if
// ZEN5:           scf.parallel {{.*}} to (%c3)
// ZEN5:             scf.for %[[B:.*]] = %c0 to %c2
// ZEN5:               %[[AT:.*]] = arith.addi %{{.*}}, %[[B]]
// ZEN5:               arith.addi %[[AT]], %c24
// ZEN5-COUNT-6:       memref.prefetch %{{.*}}, read, locality<3>
// ZEN5-NOT:           memref.prefetch
// ZEN5-COUNT-8:       vpdpbusd.512
// ZEN5:         } else {
// ZEN5:         scf.parallel
// ZEN5:           scf.for %{{.*}} step %c2
// ZEN5:             scf.for %[[ROW:.*]] = %c0 to %{{.*}} step %c4
// ZEN5:               arith.muli %[[ROW]], %c48 : index
// ZEN5-COUNT-4:       llvm.inline_asm "", "=r,0"
// ZEN5-COUNT-2:       vpdpbusd.512
// ZEN5-NOT:           vpdpbusd
// ZEN5:               vector.broadcast
// ZEN5-COUNT-62:      vpdpbusd.512
// ZEN5-NOT:           vpdpbusd
// ZEN5:               arith.sitofp
// ZEN5:             scf.for %{{.*}} step %c4
// ZEN5-COUNT-32:      vpdpbusd.512
// ZEN5-NOT:           vpdpbusd
// ZEN5:               arith.sitofp

// Vectors of a panel together. Two products of a lane stay in 16 bits until all eight are added. Few rows decode weights
// as they multiply, and add them up in their bytes; many have a block's before, and four multiply at once.
// AVX2-LABEL: func.func private @fused_
// AVX2-SAME:    tir.schedule = "quantized_matmul"
// AVX2:         scf.parallel
// AVX2:         scf.parallel
// AVX2-COUNT-3:     pmadd.ub.sw
// AVX2-NEXT:        arith.addi %{{.*}} : vector<16xi16>
// AVX2-NEXT:        pmadd.ub.sw
// AVX2-NEXT:        arith.addi %{{.*}} : vector<16xi16>
// AVX2-NEXT:        arith.addi %{{.*}} : vector<32xi8>
// AVX2-COUNT-12:    pmadd.ub.sw
// AVX2-NEXT:        arith.addi %{{.*}} : vector<16xi16>
// AVX2-NEXT:        pmadd.wd
// AVX2:             arith.addi %{{.*}} : vector<32xi8>
// AVX2-COUNT-2:     pmadd.ub.sw
// AVX2-NOT:         pmadd.ub.sw
// AVX2:             scf.yield
// AVX2:             scf.for %{{.*}} step %c4
// AVX2-COUNT-64:      pmadd.ub.sw
// AVX2-NOT:           pmadd.ub.sw
// AVX2:               arith.sitofp
// AVX2-NOT:     linalg

// SHORT-LABEL: func.func private @fused_
// SHORT:           scf.parallel
// SHORT:           scf.parallel
// SHORT-COUNT-16:  vpdpbusd.256
// SHORT-NEXT:      arith.addi %{{.*}} : vector<32xi8>
// SHORT-NEXT:      vpdpbusd.256
// SHORT-NEXT:      arith.addi %{{.*}} : vector<32xi8>
// SHORT-NEXT:      vpdpbusd.256
// SHORT-NOT:       vpdpbusd
// SHORT:           arith.sitofp

// ARM-LABEL: func.func private @fused_
// ARM:           scf.parallel
// ARM:           scf.parallel
// ARM-COUNT-32:  neon.sdot
// ARM-NEXT:      arith.addi %{{.*}} : vector<16xi8>
// ARM-NEXT:      neon.sdot
// ARM-COUNT-3:   neon.sdot
// ARM-NOT:       neon.sdot
// ARM:           arith.sitofp
func.func @residual(%x: !x, %data: tensor<3x2x4x16x4xi8>, %scale: tensor<3x2x16xf16>, %minimum: tensor<3x2x16xf16>, %r: !y) -> !y {
  %q:3 = "graph.quantize_blocks"(%x) {symmetric = false} : (!x) -> (!q, !s, !s)
  %rounded = "graph.dequantize_blocks"(%q#0, %q#1, %q#2) {operandSegmentSizes = array<i32: 1, 1, 1>} : (!q, !s, !s) -> !x
  %w = "graph.dequantize"(%data, %scale, %minimum) {scheme = "q4_1", operandSegmentSizes = #three} : (tensor<3x2x4x16x4xi8>, tensor<3x2x16xf16>, tensor<3x2x16xf16>) -> tensor<48x64xf32>
  %t = "graph.permute_dims"(%w) {axes = array<i64: 1, 0>} : (tensor<48x64xf32>) -> tensor<64x48xf32>
  %product = "graph.matmul"(%rounded, %t) : (!x, tensor<64x48xf32>) -> !y
  %y = "graph.add"(%r, %product) : (!y, !y) -> !y
  return %y : !y
}

// Many rows in tile registers: a panel is decoded once, and products of a block are stored before the one ahead of them
// is scaled.
// TILES:       llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
// TILES:       llvm.call_intrinsic "llvm.x86.ldtilecfg"
// TILES:       scf.for
// TILES:         arith.andi %{{.*}}, %{{.*}} : vector<64xi8>
// TILES:       llvm.call_intrinsic "llvm.x86.tdpbssd"(%c0_i8, %c4_i8, %c6_i8)
// TILES:       scf.for {{.*}} iter_args({{.*}}) -> (vector<16xf32>, {{.*}}) {
// TILES:         llvm.call_intrinsic "llvm.x86.tilezero"(%c0_i8)
// TILES:         llvm.call_intrinsic "llvm.x86.tdpbssd"(%c0_i8, %c4_i8, %c6_i8)
// TILES:         llvm.call_intrinsic "llvm.x86.tilestored64"(%c0_i8,
// TILES-COUNT-16: arith.sitofp %{{.*}} : vector<16xi32> to vector<16xf32>
// TILES:         scf.yield
// TILES:       llvm.call_intrinsic "llvm.x86.tilerelease"
