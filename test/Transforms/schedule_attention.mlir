// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-schedule{target=x86-64-v4+avx512bf16}' | FileCheck %s
// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-schedule{target=x86-64-v4+avx512bf16+amx-tile+amx-bf16}' | FileCheck %s --check-prefix=TILES
// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-schedule{target=sapphirerapids+-amx-tile}' | FileCheck %s --check-prefix=SINGLES
// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-schedule{target=znver5}' | FileCheck %s --check-prefix=AHEAD
// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-schedule{target=znver3}' | FileCheck %s --check-prefix=EARLY

!q = tensor<?x6x64xbf16, #graph.shape<["n", 6, 64]>>
!c = tensor<2x?x64xbf16, #graph.shape<[2, "c", 64]>>

func.func @main(%q: !q, %k: !c, %v: !c, %p: !graph.shape_value<["m"]>) -> !q {
  %0 = "graph.nn_attention"(%q, %k, %v) {position = #graph.shape<["m"]>, scale = 0.125 : f64, causal = true} : (!q, !c, !c) -> !q
  return %0 : !q
}

// Up to 192 keys, many rows are treated as few. By vectors: tiles of keys and rows, exponentials rounded in pairs of keys, tiles of rows and features.
// CHECK-LABEL: func.func private @attention(
// CHECK-SAME: {{.*}}tir.schedule = "attention"
// CHECK:         %[[KEYS:.*]] = arith.cmpi ult, %{{.*}}, %c193{{.*}} : index
// CHECK-NEXT:    %[[FEW:.*]] = arith.ori %{{.*}}, %[[KEYS]] : i1
// CHECK-NEXT:    scf.if %[[FEW]] {
// CHECK-NOT:       memref.prefetch
// CHECK:         } else {
// CHECK:           scf.parallel
// CHECK:             llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// CHECK:             math.exp {{.*}} fastmath<afn> {tir.not_positive} : vector<16xf32>
// CHECK:             llvm.call_intrinsic "llvm.x86.avx512bf16.cvtneps2bf16.512"
// CHECK:             llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// CHECK-NOT:     tdpbf16ps

// Values that are masked for some rows of a block are tested: 0 times them has to be 0.
// CHECK:             %[[HIDES:.*]] = arith.cmpi ult, %{{.*}}, %{{.*}} : index
// CHECK-NEXT:        %[[FINITE:.*]] = scf.if %[[HIDES]] -> (i1) {
// CHECK:               llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// CHECK:               arith.cmpf ord
// CHECK:               vector.reduction <and>
// CHECK:             scf.if %[[FINITE]] {
// CHECK:               dpbf16ps
// CHECK:             } else {
// CHECK-NOT:           dpbf16ps
// CHECK:               vector.fma

// On Zen 5, one row prefetches keys and values one page ahead.
// AHEAD-LABEL: func.func private @attention(
// AHEAD:         scf.if
// AHEAD:           memref.prefetch {{.*}}, read, locality<3>, data : memref<?xbf16>
// AHEAD:           llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// AHEAD:           memref.prefetch {{.*}}, read, locality<3>, data : memref<?xbf16>
// AHEAD:         } else {
// AHEAD-NOT:       memref.prefetch

// So it does before Zen 4. There, 16 registers have the sums of three heads by four vectors of
// values, loaded one by one, and of six rows by two vectors in blocks.
// EARLY-LABEL: func.func private @attention(
// EARLY:         scf.if
// EARLY:           memref.prefetch {{.*}}, read, locality<3>, data : memref<?xbf16>
// EARLY:           %{{.*}}:12 = scf.for
// EARLY:             memref.prefetch {{.*}}, read, locality<3>, data : memref<?xbf16>
// EARLY-COUNT-3:     vector.broadcast
// EARLY-NOT:         vector.broadcast
// EARLY:             scf.yield
// EARLY:         } else {
// EARLY-NOT:       memref.prefetch
// EARLY:           scf.for {{.*}} step %c6
// EARLY:             %{{.*}}:12 = scf.for

// By vectors of f32, extended after loads, where a pair takes longer than two f32 products.
// SINGLES-LABEL: func.func private @attention(
// SINGLES-SAME:    {{.*}}tir.schedule = "attention"
// SINGLES-NOT:     dpbf16ps
// SINGLES:         arith.extf {{.*}} : vector<16xbf16> to vector<16xf32>
// SINGLES:         memref.prefetch
// SINGLES:         vector.fma
// SINGLES:         } else {
// SINGLES-NOT:     dpbf16ps
// SINGLES:         vector.fma
// SINGLES-NOT:     dpbf16ps
// SINGLES:         scf.reduce

// In tile registers, from four rows on: 32 keys in place (fewer than 16 are copied) by 48 rows;
// TILES-LABEL: func.func private @attention(
// TILES-SAME:    memref<?x6x64xbf16>, %[[K:[a-z0-9_]+]]: memref<2x?x64xbf16>
// TILES:         %[[KEYS:.*]] = memref.collapse_shape %[[K]]
// fewer rows, by vectors of f32, prefetch keys;
// TILES:         scf.parallel
// TILES:           arith.extf {{.*}} : vector<16xbf16> to vector<16xf32>
// TILES:           memref.prefetch %[[KEYS]]
// TILES:           vector.fma
// TILES:         scf.parallel
// TILES:           llvm.call_intrinsic "llvm.x86.ldtilecfg"
// TILES:           scf.for %{{.*}} step %c32
// TILES:             arith.select %{{.*}}, %{{.*}}, %[[KEYS]] : memref<?xbf16>
// TILES:             scf.for %{{.*}} step %c3
// TILES:               llvm.call_intrinsic "llvm.x86.tilezero"(%c2_i8)
// TILES:               scf.for %{{.*}} = %c0 to %c32 step %c16
// TILES:                 llvm.call_intrinsic "llvm.x86.tileloadd64"(%c4_i8, %{{.*}}, %c128_i64)
// TILES:                 llvm.call_intrinsic "llvm.x86.tileloadd64"(%c6_i8, %{{.*}}, %c192_i64)
// TILES:                 llvm.call_intrinsic "llvm.x86.tdpbf16ps"(%c0_i8, %c4_i8, %c6_i8)
// TILES:               llvm.call_intrinsic "llvm.x86.tilestored64"(%c2_i8, %{{.*}}, %c192_i64)
// scores are masked in blocks with masked keys, exponentials are transposed in registers,
// TILES:             scf.if
// TILES:               arith.cmpi slt, {{.*}} : vector<16xi32>
// TILES:             scf.for
// TILES-COUNT-32:      math.exp2 {{.*}} fastmath<afn> : vector<16xf32>
// TILES:               llvm.call_intrinsic "llvm.x86.avx512bf16.cvtneps2bf16.512"
// and sums are rescaled if necessary, and loaded and stored as tiles.
// TILES:               vector.reduction <or>
// TILES-NEXT:          scf.if
// TILES:                 arith.mulf
// TILES:               llvm.call_intrinsic "llvm.x86.tileloadd64"(%c0_i8, %{{.*}}, %c256_i64)
// TILES:               llvm.call_intrinsic "llvm.x86.tdpbf16ps"(%c3_i8, %c4_i8, %c7_i8)
// TILES:               llvm.call_intrinsic "llvm.x86.tilestored64"(%c3_i8, %{{.*}}, %c256_i64)
// TILES:           llvm.call_intrinsic "llvm.x86.tilerelease"
// TILES:         scf.reduce
