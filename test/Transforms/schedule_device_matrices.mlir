// RUN: relax-opt %s --pass-pipeline='relax-schedule{target=cuda:sm_80}' | FileCheck %s

#lhs = affine_map<(i, j, k) -> (i, k)>
#rhs = affine_map<(i, j, k) -> (k, j)>
#out = affine_map<(i, j, k) -> (i, j)>

// A group of four warps multiplies 128 x 64 elements of the result. Memory has two steps of 32 along
// k: rows of A are along k, those of B along columns, as they lie. The host finds out whether arrays
// and their rows begin at multiples of 16 bytes; the row of B has 48 elements, so only the array counts.
// CHECK-LABEL: func.func private @matmul(
// CHECK-SAME:    tir.schedule = "tensor_cores"
// CHECK:         %[[A:.*]] = memref.collapse_shape %arg0
// CHECK:         %[[B:.*]] = memref.collapse_shape %arg1
// CHECK:         memref.extract_aligned_pointer_as_index %[[A]]
// CHECK:         %[[ALIGNED_A:.*]] = arith.andi
// CHECK:         memref.extract_aligned_pointer_as_index %[[B]]
// CHECK:         %[[ALIGNED_B:.*]] = arith.cmpi eq
// CHECK-NOT:     arith.andi
// CHECK:         gpu.launch
// CHECK:         gpu.launch {{.*}} in (%{{.*}} = %c128, {{.*}} workgroup(%[[OWN_A:.*]] : memref<10240xf16, #gpu.address_space<workgroup>>, %[[OWN_B:.*]] : memref<4608xf16, #gpu.address_space<workgroup>>, %[[SUMS:.*]] : memref<2304xf32, #gpu.address_space<workgroup>>)

// The first step is copied: 16 bytes at a time, or element by element.
// CHECK:           %[[FIRST:.*]] = arith.muli %{{.*}}, %[[SIZE:[0-9]+]] : index
// CHECK:           %[[END:.*]] = arith.addi %[[FIRST]], %[[SIZE]]
// CHECK:           %[[LAST:.*]] = arith.minui %[[END]], %{{.*}} : index
// CHECK:           scf.if %[[ALIGNED_A]] {
// CHECK-COUNT-4:     nvgpu.device_async_copy %[[A]][{{.*}}], %[[OWN_A]][{{.*}}], 8, %{{.*}} {bypassL1}
// CHECK:           } else {
// CHECK:             scf.for
// CHECK:               scf.if {{.*}} -> (f16)
// CHECK:               memref.store %{{.*}}, %[[OWN_A]]
// CHECK:           scf.if %[[ALIGNED_B]] {
// CHECK-COUNT-2:     nvgpu.device_async_copy %[[B]]
// CHECK:           nvvm.cp.async.commit.group

// Each round waits for what is multiplied, copies what the next one needs, and multiplies: four
// matrices of A by four of B, twice along k.
// CHECK:           %[[RESULT:.*]]:16 = scf.for %{{.*}} = %[[FIRST]] to %[[LAST]] step %c32 iter_args(
// CHECK:             nvvm.cp.async.wait.group 0
// CHECK-NEXT:        gpu.barrier
// CHECK:             nvgpu.device_async_copy
// CHECK:             nvvm.cp.async.commit.group
// CHECK-NEXT:        nvvm.bar.warp.sync
// CHECK-COUNT-4:     nvgpu.ldmatrix %[[OWN_A]]{{.*}} {numTiles = 4 : i32, transpose = false}
// CHECK-COUNT-2:     nvgpu.ldmatrix %[[OWN_B]]{{.*}} {numTiles = 4 : i32, transpose = true}
// CHECK-COUNT-16:    nvgpu.mma.sync(%{{.*}}) {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>)
// CHECK-COUNT-16:    nvgpu.mma.sync

// Sums go through memory of the group, 16 rows of each warp at a time.
// CHECK:           vector.extract %[[RESULT]]#0[0, 0]
// CHECK:           memref.store {{.*}} %[[SUMS]]
// CHECK:           gpu.barrier
// CHECK:           scf.for
// CHECK:             scf.if
// CHECK:               memref.load %[[SUMS]]
// CHECK:               arith.truncf {{.*}} : f32 to f16
// CHECK:               memref.store {{.*}} : memref<?xf16>
// CHECK:           gpu.barrier
// CHECK:           memref.store {{.*}} %[[SUMS]]
func.func private @matmul(%x: tensor<?x?xf16>, %w: tensor<?x48xf16>, %y: tensor<?x48xf16>) -> tensor<?x48xf16>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %y, %c0 : tensor<?x48xf16>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty(%m) : tensor<?x48xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x48xf32>) -> tensor<?x48xf32>
  %0 = linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x?xf16>, tensor<?x48xf16>) outs(%zeros : tensor<?x48xf32>) {
  ^bb0(%a: f16, %b: f16, %s: f32):
    %1 = arith.extf %a : f16 to f32
    %2 = arith.extf %b : f16 to f32
    %3 = arith.mulf %1, %2 : f32
    %4 = arith.addf %s, %3 : f32
    linalg.yield %4 : f32
  } -> tensor<?x48xf32>
  %5 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<?x48xf32>) outs(%y : tensor<?x48xf16>) {
  ^bb0(%a: f32, %b: f16):
    %6 = arith.truncf %a : f32 to f16
    linalg.yield %6 : f16
  } -> tensor<?x48xf16>
  return %5 : tensor<?x48xf16>
}

// Of integers of 8 bits, rows have 16 elements in 16 bytes. B is not along k, so that it is transposed
// by element on the way to memory of the group.
// CHECK-LABEL: func.func private @bytes(
// CHECK-SAME:    tir.schedule = "tensor_cores"
// CHECK:         gpu.launch {{.*}} in (%{{.*}} = %c128
// CHECK-SAME:        workgroup(%[[A:.*]] : memref<20480xi8, #gpu.address_space<workgroup>>, %[[B:.*]] : memref<10240xi8, #gpu.address_space<workgroup>>, %{{.*}} : memref<2304xi32, #gpu.address_space<workgroup>>)
// CHECK:           nvgpu.device_async_copy {{.*}} %[[A]][{{.*}}], 16 {bypassL1}
// CHECK-NOT:       nvgpu.device_async_copy {{.*}} %[[B]]
// CHECK:           scf.for %{{.*}} = %c0 to %c128 step %c64
// CHECK:             nvgpu.ldmatrix %[[B]]{{.*}} {numTiles = 4 : i32, transpose = false} : memref<10240xi8, #gpu.address_space<workgroup>> -> vector<4x4xi8>
// CHECK:             nvgpu.mma.sync(%{{.*}}) {mmaShape = [16, 8, 32]} : (vector<4x4xi8>, vector<2x4xi8>, vector<2x2xi32>)
func.func private @bytes(%x: tensor<256x128xi8>, %w: tensor<128x64xi8>, %y: tensor<256x64xi32>) -> tensor<256x64xi32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %zero = arith.constant 0 : i32
  %zeros = linalg.fill ins(%zero : i32) outs(%y : tensor<256x64xi32>) -> tensor<256x64xi32>
  %0 = linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<256x128xi8>, tensor<128x64xi8>) outs(%zeros : tensor<256x64xi32>) {
  ^bb0(%a: i8, %b: i8, %s: i32):
    %1 = arith.extsi %a : i8 to i32
    %2 = arith.extsi %b : i8 to i32
    %3 = arith.muli %1, %2 : i32
    %4 = arith.addi %s, %3 : i32
    linalg.yield %4 : i32
  } -> tensor<256x64xi32>
  return %0 : tensor<256x64xi32>
}
