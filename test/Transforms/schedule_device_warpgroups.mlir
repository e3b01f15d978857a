// RUN: relax-opt %s --pass-pipeline='relax-schedule{target=cuda:sm_90a}' | FileCheck %s

#lhs = affine_map<(i, j, k) -> (i, k)>
#rhs = affine_map<(i, j, k) -> (k, j)>
#out = affine_map<(i, j, k) -> (i, j)>

// A group of two warpgroups multiplies 128 x 128 elements of the result. Memory has four steps of 64
// along k, in rows of 128 bytes: of A along k, of B along columns, in two blocks of 64.
// CHECK-LABEL: func.func private @matmul(
// CHECK-SAME:    tir.schedule = "warpgroups"

// If rows of both sides begin at multiples of 16 bytes, the device copies boxes of them: of A 128 rows
// of 64 elements, of B two of 64 rows. A group does one tile after another: warps of two warpgroups
// multiply, and a thread of one more copies. Of each step in memory, there is a barrier that is complete
// when it is there, and one of the eight warps that read it.
//
// Larger products have tiles of 256 columns: where these take 8 clocks, and those of 128 columns 5, for
// the tiles of the group with most of them.
// CHECK:           arith.cmpi ult, %{{.*}}, %c1073741823
// CHECK:           %[[TAKES:.*]] = arith.muli %{{.*}}, %c8
// CHECK:           %[[NARROW:.*]] = arith.muli %{{.*}}, %c5
// CHECK:           %[[MOST:.*]] = arith.addi %[[NARROW]], %c1
// CHECK:           %[[IS_WIDE:.*]] = arith.cmpi ult, %[[TAKES]], %[[MOST]]
// CHECK:           scf.if %[[IS_WIDE]]
// CHECK:             gpu.launch {{.*}} in (%{{.*}} = %c288
// CHECK-SAME:          workgroup(%{{.*}} : memref<32768xbf16, {{.*}}>, %{{.*}} : memref<65536xbf16,
// CHECK:               nvvm.wgmma.mma_async {{.*}} <m = 64, n = 256, k = 16>
// CHECK:               nvvm.mbarrier.arrive.expect_tx %{{.*}}, %c49152_i32
// CHECK-COUNT-5:       nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK:           } else {
// CHECK:           %[[MAP_A:.*]] = nvgpu.tma.create.descriptor %{{.*}} box[%c128, %c64]
// CHECK-SAME:        <tensor = memref<128x64xbf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>
// CHECK:           %[[MAP_B:.*]] = nvgpu.tma.create.descriptor %{{.*}} box[%c64, %c64]
// CHECK:           gpu.launch {{.*}} threads(%[[THREAD:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %c288
// CHECK-SAME:          workgroup(%{{.*}} : memref<32768xbf16, {{.*}}>, %{{.*}} : memref<32768xbf16, {{.*}}>, %[[BARRIERS:.*]] : memref<8xi64, {{.*}}>, %[[OWN_SUMS:.*]] : memref<5120xf32,
// CHECK:             nvvm.mbarrier.init %{{.*}}, %c1_i32
// CHECK:             nvvm.mbarrier.init %{{.*}}, %c8_i32
// CHECK-COUNT-6:     nvvm.mbarrier.init
// CHECK-NEXT:        nvvm.fence.mbarrier.init
// CHECK:             gpu.barrier

// Who multiplies waits for a step, and says of the one before that it is read.
// CHECK:             %[[MULTIPLIES:.*]] = arith.cmpi ult, %[[THREAD]], %c256
// CHECK:             scf.if %[[MULTIPLIES]]
// CHECK-NOT:           gpu.barrier
// CHECK:               scf.for %[[TURN:.*]] = %c0 to
// CHECK:                 %[[BEGUN:.*]] = arith.muli %[[TURN]], %c4
// CHECK:                 scf.for %[[OWN:.*]] = %c0 to %c4 step %c1 iter_args(
// CHECK:                   %[[STEP:.*]] = arith.addi %[[BEGUN]], %[[OWN]]
// CHECK:                   %[[ROUND:.*]] = arith.divui %[[STEP]], %c4
// CHECK:                   %[[PARITY:.*]] = arith.remui %[[ROUND]], %c2
// CHECK:                   %[[WORD:.*]] = arith.index_cast %[[PARITY]]
// CHECK:                   scf.while
// CHECK-NEXT:                nvvm.mbarrier.try_wait %{{.*}}, %[[WORD]]
// CHECK:                   nvvm.wgmma.fence.aligned
// CHECK-COUNT-4:           nvvm.wgmma.mma_async
// CHECK-NEXT:              nvvm.wgmma.commit.group.sync.aligned
// CHECK-NEXT:              nvvm.wgmma.wait.group.sync.aligned 1
// CHECK:                   nvvm.mbarrier.arrive
// CHECK:                   nvvm.bar.warp.sync
// CHECK:                 nvvm.wgmma.wait.group.sync.aligned 0
// CHECK:                 nvvm.mbarrier.arrive
// CHECK:                 nvvm.bar.warp.sync

// Sums of the tile before may still be read: threads that multiply meet by a barrier of their own.
// CHECK:                 nvvm.barrier id = %c1_i32 number_of_threads = %c256_i32
// CHECK:                 memref.store {{.*}} %[[OWN_SUMS]]
// CHECK:                 nvvm.barrier id = %c1_i32 number_of_threads = %c256_i32
// CHECK:                 memref.load %[[OWN_SUMS]]

// Who copies waits until the memory of a step is empty, as it is the first time: phases are one ahead.
// CHECK:             } else {
// CHECK-NEXT:          %[[FIRST:.*]] = arith.cmpi ult, %[[THREAD]], %c257
// CHECK-NEXT:          scf.if %[[FIRST]]
// CHECK-NOT:             barrier {{.*}}id
// CHECK:                 %[[AT_A:.*]] = builtin.unrealized_conversion_cast %[[MAP_A]]
// CHECK:                 %[[AT_B:.*]] = builtin.unrealized_conversion_cast %[[MAP_B]]
// CHECK:                 scf.for
// CHECK:                   scf.for
// CHECK:                     %[[USED:.*]] = arith.divui %{{.*}}, %c4
// CHECK:                     %[[NEXT:.*]] = arith.addi %[[USED]], %c1
// CHECK:                     %[[EMPTY:.*]] = arith.remui %[[NEXT]], %c2
// CHECK:                     %[[BIT:.*]] = arith.index_cast %[[EMPTY]]
// CHECK:                     nvvm.mbarrier.try_wait %{{.*}}, %[[BIT]]
// CHECK:                     nvvm.mbarrier.arrive.expect_tx %{{.*}}, %c32768_i32
// CHECK:                     nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[AT_A]],
// CHECK-COUNT-2:             nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[AT_B]],

// Else threads copy them.
// CHECK:         gpu.launch {{.*}} in (%{{.*}} = %c256
// CHECK-SAME:        workgroup(%[[OWN_A:.*]] : memref<32768xbf16, #gpu.address_space<workgroup>>, %[[OWN_B:.*]] : memref<32768xbf16, #gpu.address_space<workgroup>>, %[[SUMS:.*]] : memref<5120xf32, #gpu.address_space<workgroup>>)

// Units of 16 bytes are in the order of their index xor that of their row.
// CHECK:           arith.xori
// CHECK:           nvgpu.device_async_copy %{{.*}}, %[[OWN_A]]
// CHECK-COUNT-2:   nvvm.cp.async.commit.group

// CHECK:           memref.extract_aligned_pointer_as_index %[[OWN_A]]
// CHECK:           memref.extract_aligned_pointer_as_index %[[OWN_B]]

// Each round: what threads copied is there, warpgroups see it, and multiply it while threads copy. What is
// copied next goes where the step before the last one was, which all have multiplied.
// CHECK:           %[[RESULT:.*]] = scf.for %{{.*}} = %c0 to %c256 step %c64 iter_args(
// CHECK:             nvvm.cp.async.wait.group 1
// CHECK-NEXT:        nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>
// CHECK-NEXT:        gpu.barrier
// CHECK:             nvvm.wgmma.fence.aligned
// CHECK-COUNT-4:     nvvm.wgmma.mma_async {{.*}} <m = 64, n = 128, k = 16>, D[<f32>, <one>], A[<bf16>, <one>, <row>], B[<bf16>, <one>, <row>]
// CHECK-NEXT:        nvvm.wgmma.commit.group.sync.aligned
// CHECK:             nvgpu.device_async_copy
// CHECK:             nvvm.cp.async.commit.group
// CHECK-NEXT:        nvvm.bar.warp.sync
// CHECK-NEXT:        nvvm.wgmma.wait.group.sync.aligned 1

// Sums go through memory of the group, 32 columns at a time.
// CHECK:           nvvm.wgmma.wait.group.sync.aligned 0
// CHECK:           llvm.extractvalue %[[RESULT]][0]
// CHECK:           memref.store {{.*}} %[[SUMS]]
// CHECK:           gpu.barrier
// CHECK:           scf.for
// CHECK:             memref.load %[[SUMS]]
// CHECK:             memref.store {{.*}} : memref<?xf32>
func.func private @matmul(%x: tensor<?x256xbf16>, %w: tensor<256x384xbf16>, %y: tensor<?x384xf32>) -> tensor<?x384xf32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %zeros = linalg.fill ins(%zero : f32) outs(%y : tensor<?x384xf32>) -> tensor<?x384xf32>
  %0 = linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x256xbf16>, tensor<256x384xbf16>) outs(%zeros : tensor<?x384xf32>) {
  ^bb0(%a: bf16, %b: bf16, %s: f32):
    %1 = arith.extf %a : bf16 to f32
    %2 = arith.extf %b : bf16 to f32
    %3 = arith.mulf %1, %2 : f32
    %4 = arith.addf %s, %3 : f32
    linalg.yield %4 : f32
  } -> tensor<?x384xf32>
  return %0 : tensor<?x384xf32>
}

// Few rows are multiplied by warps.
// CHECK-LABEL: func.func private @negative_rows(
// CHECK-SAME:    tir.schedule = "tensor_cores"
func.func private @negative_rows(%x: tensor<48x256xbf16>, %w: tensor<256x384xbf16>, %y: tensor<48x384xf32>) -> tensor<48x384xf32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %zeros = linalg.fill ins(%zero : f32) outs(%y : tensor<48x384xf32>) -> tensor<48x384xf32>
  %0 = linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<48x256xbf16>, tensor<256x384xbf16>) outs(%zeros : tensor<48x384xf32>) {
  ^bb0(%a: bf16, %b: bf16, %s: f32):
    %1 = arith.extf %a : bf16 to f32
    %2 = arith.extf %b : bf16 to f32
    %3 = arith.mulf %1, %2 : f32
    %4 = arith.addf %s, %3 : f32
    linalg.yield %4 : f32
  } -> tensor<48x384xf32>
  return %0 : tensor<48x384xf32>
}
