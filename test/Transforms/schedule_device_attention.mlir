// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-schedule{target=cuda:sm_75}' | FileCheck %s
// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-schedule{target=vulkan}' | FileCheck %s --check-prefix=SMALL

!q = tensor<?x6x64xf16, #graph.shape<["n", 6, 64]>>
!c = tensor<2x?x64xf16, #graph.shape<[2, "c", 64]>>

// A tile has four rows for the three heads of a token, or sixteen for more tokens. The keys are in parts
// where there are few tiles: a second launch combines them.
// CHECK-LABEL: func.func private @attention(
// CHECK-SAME:    tir.schedule = "attention"
// CHECK:         scf.if
// CHECK:           memref.alloc
// CHECK:           gpu.launch {{.*}} in (%{{.*}} = %c128
// CHECK-SAME:          workgroup(%[[Q:.*]] : memref<256xf32, #gpu.address_space<workgroup>>, %[[K:.*]] : memref<2080xf32, #gpu.address_space<workgroup>>, %[[V:.*]] : memref<2048xf32, #gpu.address_space<workgroup>>, %[[S:.*]] : memref<132xf32, #gpu.address_space<workgroup>>,

// The queries, then blocks of 32 keys and values, are copied as f32.
// CHECK:             memref.store {{.*}}, %[[Q]]
// CHECK:             scf.for {{.*}} step %c32 iter_args({{.*}}) -> (f32, f32, f32, f32)
// CHECK:               memref.load {{.*}} : memref<?xf16>
// CHECK:               arith.extf
// CHECK:               memref.store {{.*}}, %[[K]]
// CHECK:               memref.store {{.*}}, %[[V]]
// CHECK:               gpu.barrier

// Scores, maxima of eight parts of a row, exponentials in place of scores, sums.
// CHECK:               math.fma
// CHECK:               memref.store {{.*}}, %[[S]]
// CHECK:               gpu.barrier
// CHECK:               arith.maximumf
// CHECK:               gpu.barrier
// CHECK-COUNT-8:       arith.maximumf
// CHECK:               math.exp {{.*}} fastmath<afn> {tir.not_positive}
// CHECK:               math.exp
// CHECK:               memref.store {{.*}}, %[[S]]
// CHECK:               gpu.barrier
// CHECK:               math.fma

// What causality hides is not added, whatever it is, in the blocks where there is some.
// CHECK:               arith.select
// CHECK:               gpu.barrier
// CHECK:           gpu.launch
// CHECK:             math.exp
// CHECK:             arith.divf
// CHECK:           gpu.launch {{.*}} workgroup(%{{.*}} : memref<1024xf32, #gpu.address_space<workgroup>>

// A group of a device with 16 KiB copies fewer keys.
// SMALL-LABEL: func.func private @attention(
// SMALL:         gpu.launch
// SMALL-SAME:        memref<1040xf32, #gpu.address_space<workgroup>>
func.func @main(%q: !q, %k: !c, %v: !c, %p: !graph.shape_value<["m"]>) -> !q {
  %0 = "graph.nn_attention"(%q, %k, %v) {position = #graph.shape<["m"]>, scale = 0.125 : f64, causal = true} : (!q, !c, !c) -> !q
  return %0 : !q
}
