// RUN: relax-opt %s --pass-pipeline='relax-schedule{target=x86-64-v4+avx512vnni}' | FileCheck %s
// RUN: relax-opt %s --pass-pipeline='relax-schedule{target=x86-64-v4+avx512vnni+amx-tile+amx-int8}' | FileCheck %s --check-prefix=TILES
// RUN: relax-opt %s --pass-pipeline='relax-schedule{target=sapphirerapids+-amx-tile}' | FileCheck %s --check-prefix=XEON
// RUN: relax-opt %s --pass-pipeline='relax-schedule{target=x86-64-v3}' | FileCheck %s --check-prefix=AVX2
// RUN: relax-opt %s --pass-pipeline='relax-schedule{target=aarch64-v8.2}' | FileCheck %s --check-prefix=SDOT
// RUN: relax-opt %s --pass-pipeline='relax-schedule{target=aarch64}' | FileCheck %s --check-prefix=PLAIN

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>

// Rows of the left side are summed while they are packed: sums start at -128 times that, since the
// other side is biased to unsigned integers while it is packed. 28 sums stay in registers.
// CHECK-LABEL: func.func private @product
// CHECK-SAME:    tir.schedule = "matmul"
// CHECK:         %[[FACTOR:.*]] = arith.constant dense<-128> : vector<16xi32>
// CHECK:         scf.parallel
// CHECK:           llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
// CHECK:           vector.reduction <add>
// CHECK:           arith.muli %{{.*}}, %[[FACTOR]]
// CHECK:         scf.parallel
// CHECK:           arith.xori %{{.*}}, %{{.*}} : vector<64xi8>
// CHECK:           memref.prefetch
// CHECK-COUNT-28:  llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
// CHECK:           scf.yield
// CHECK-NOT:     linalg

// Three rows of four are memory operands of the multiplications, with an address for each vector.
// XEON-LABEL: func.func private @product
// XEON:         scf.parallel
// XEON:         scf.parallel
// XEON:           %[[FIRST:.*]] = llvm.inline_asm "", "=r,0"
// XEON:           %[[SECOND:.*]] = llvm.inline_asm "", "=r,0" %[[FIRST]]
// XEON:           %[[A:.*]] = llvm.inttoptr %[[FIRST]]
// XEON:           llvm.load %[[A]]
// XEON:           %[[B:.*]] = llvm.inttoptr %[[SECOND]]
// XEON:           llvm.load %[[B]]
// XEON-COUNT-6:   vpdpbusd.512
// XEON:           memref.load
// XEON-COUNT-22:  vpdpbusd.512
// XEON:           scf.yield

// From five rows on, in tile registers, from the same panels: tiles start with rows of equal
// elements.
// TILES-LABEL: func.func private @product
// TILES-SAME:    tir.schedule = "matmul"
// TILES:         arith.cmpi ult, %{{.*}}, %c5
// TILES:         scf.parallel
// TILES-COUNT-8:   llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
// TILES:         } else {
// TILES:         scf.parallel
// TILES:           vector.reduction <add>
// TILES:         scf.parallel
// TILES:           llvm.call_intrinsic "llvm.x86.ldtilecfg"
// TILES:           llvm.call_intrinsic "llvm.x86.tileloadd64"(%c0_i8, %{{.*}}, %c64_i64)
// TILES:           llvm.call_intrinsic "llvm.x86.tileloadd64"(%c4_i8, %{{.*}}, %c64_i64)
// TILES:           llvm.call_intrinsic "llvm.x86.tileloadd64"(%c6_i8, %{{.*}}, %c128_i64)
// TILES:           llvm.call_intrinsic "llvm.x86.tdpbsud"(%c0_i8, %c4_i8, %c6_i8)
// TILES:           llvm.call_intrinsic "llvm.x86.tilestored64"(%c0_i8, %{{.*}}, %c128_i64)
// TILES:           llvm.call_intrinsic "llvm.x86.tilerelease"
// TILES-NOT:     linalg

// Products of 16-bit elements do not saturate; there is no bias.
// AVX2-LABEL:  func.func private @product
// AVX2-NOT:      arith.xori
// AVX2-NOT:      vector.reduction
// AVX2:          arith.extsi %{{.*}} : vector<16xi8> to vector<16xi16>
// AVX2-COUNT-12: llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"
// AVX2-NOT:      linalg

// SDOT-LABEL:  func.func private @product
// SDOT-NOT:      arith.xori
// SDOT-COUNT-28: llvm.call_intrinsic "llvm.aarch64.neon.sdot"
// SDOT-NOT:      linalg

// Without such instructions elements are widened to 32 bits while they are packed.
// PLAIN-LABEL: func.func private @product
// PLAIN-SAME:    tir.schedule = "matmul"
// PLAIN:         arith.extsi %{{.*}} : vector<4xi8> to vector<4xi32>
// PLAIN:         arith.muli %{{.*}} : vector<4xi32>
// PLAIN-NOT:     linalg
func.func private @product(%x: tensor<?x64xi8>, %w: tensor<96x64xi8>, %y: tensor<?x96xi32>) -> tensor<?x96xi32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %zero = arith.constant 0 : i32
  %init = linalg.fill ins(%zero : i32) outs(%y : tensor<?x96xi32>) -> tensor<?x96xi32>
  %z = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x64xi8>, tensor<96x64xi8>) outs(%init : tensor<?x96xi32>) {
  ^bb0(%a: i8, %b: i8, %s: i32):
    %l = arith.extsi %a : i8 to i32
    %r = arith.extsi %b : i8 to i32
    %p = arith.muli %l, %r : i32
    %t = arith.addi %s, %p : i32
    linalg.yield %t : i32
  } -> tensor<?x96xi32>
  return %z : tensor<?x96xi32>
}
