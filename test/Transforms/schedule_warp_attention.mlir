// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-schedule{target=cuda:sm_80}' | FileCheck %s

!q = tensor<?x6x64xf16, #graph.shape<["n", 6, 64]>>
!c = tensor<2x?x64xf16, #graph.shape<[2, "c", 64]>>

// One token has four rows, which threads compute; of more tokens, four warps have 16 rows each. Memory
// has all queries and two blocks of 64 keys and values. The host finds out whether all three arrays
// begin at multiples of 16 bytes.
// CHECK-LABEL: func.func private @attention(
// CHECK-SAME:    tir.schedule = "attention"
// CHECK:         gpu.launch {{.*}} workgroup(%{{.*}} : memref<256xf32, #gpu.address_space<workgroup>>
// CHECK:         memref.extract_aligned_pointer_as_index
// CHECK:         %[[ALIGNED:.*]] = arith.cmpi ult, %{{.*}}, %c1
// CHECK:         gpu.launch {{.*}} in (%{{.*}} = %c128
// CHECK-SAME:        workgroup(%[[Q:.*]] : memref<4608xf16, #gpu.address_space<workgroup>>, %[[K:.*]] : memref<9216xf16, #gpu.address_space<workgroup>>, %[[V:.*]] : memref<9216xf16, #gpu.address_space<workgroup>>)
// CHECK:           scf.if %[[ALIGNED]]
// CHECK:             nvgpu.device_async_copy {{.*}} %[[Q]]
// CHECK:           nvvm.cp.async.commit.group

// A round waits for its block, copies the next one, and multiplies queries by keys.
// CHECK:           scf.for %{{.*}} step %c64 iter_args(
// CHECK:             nvvm.cp.async.wait.group 0
// CHECK-NEXT:        gpu.barrier
// CHECK:             nvgpu.device_async_copy {{.*}} %[[K]]
// CHECK:             nvgpu.device_async_copy {{.*}} %[[V]]
// CHECK:             nvvm.cp.async.commit.group
// CHECK-NEXT:        nvvm.bar.warp.sync
// CHECK:             nvgpu.ldmatrix %[[Q]]{{.*}} transpose = false
// CHECK:             nvgpu.ldmatrix %[[K]]{{.*}} transpose = false
// CHECK-COUNT-32:    nvgpu.mma.sync

// Four lanes have a row of scores. Their exponentials are a left side as they are.
// CHECK-COUNT-16:    arith.maximumf
// CHECK:             gpu.shuffle xor
// CHECK:             arith.maximumf
// CHECK:             gpu.shuffle xor
// CHECK-COUNT-17:    math.exp {{.*}} fastmath<afn> {tir.not_positive}
// CHECK:             arith.truncf
// CHECK:             vector.from_elements {{.*}} : vector<4x2xf16>

// Values are added key by key where one is not finite and hidden from a row; else all at once.
// CHECK:             %[[POISON:.*]] = arith.cmpf uno
// CHECK:             scf.if %[[POISON]]
// CHECK:               scf.for
// CHECK:                 nvgpu.ldmatrix %[[V]]{{.*}} transpose = true
// CHECK:                 nvgpu.mma.sync
// CHECK:                 arith.select
// CHECK:             } else {
// CHECK:               nvgpu.ldmatrix %[[V]]{{.*}} transpose = true
// CHECK-COUNT-32:      nvgpu.mma.sync
// CHECK:           arith.divf
// CHECK:         gpu.launch
func.func @main(%q: !q, %k: !c, %v: !c, %p: !graph.shape_value<["m"]>) -> !q {
  %0 = "graph.nn_attention"(%q, %k, %v) {position = #graph.shape<["m"]>, scale = 0.125 : f64, causal = true} : (!q, !c, !c) -> !q
  return %0 : !q
}
