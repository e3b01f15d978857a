// RUN: relax-opt %s --pass-pipeline='relax-schedule{target=vulkan:8x16x16}' | FileCheck %s

#lhs = affine_map<(i, j, k) -> (i, k)>
#rhs = affine_map<(i, j, k) -> (j, k)>
#out = affine_map<(i, j, k) -> (i, j)>

// Four subgroups of a group of 128 threads multiply 32 x 32 elements each, as four by two matrices of
// 8 x 16 sums. Memory has a step of 32 along k, as the sides lie: both are along k. Another launch is
// for up to four rows.
// CHECK-LABEL: func.func private @matmul(
// CHECK-SAME:    tir.schedule = "cooperative"
// CHECK:         gpu.launch
// CHECK:         gpu.launch {{.*}} in (%{{.*}} = %c128, {{.*}} workgroup(%[[A:.*]] : memref<2560xf16, #gpu.address_space<workgroup>>, %[[B:.*]] : memref<2560xf16, #gpu.address_space<workgroup>>, %[[SUMS:.*]] : memref<1152xf32, #gpu.address_space<workgroup>>)
// CHECK:           %[[SUBGROUP:.*]] = gpu.subgroup_id upper_bound 128
// CHECK-NEXT:      %[[MULTIPLIES:.*]] = arith.cmpi ult, %[[SUBGROUP]], %c4
// CHECK:           %[[ZERO:.*]] = gpu.subgroup_mma_constant_matrix %{{.*}} : !gpu.mma_matrix<8x16xf32, "COp">

// Elements beyond a side are zero; subgroups after the fourth only copy.
// CHECK:           %[[FIRST:.*]] = arith.muli %{{.*}}, %[[SIZE:[0-9]+]] : index
// CHECK-NEXT:      %[[END:.*]] = arith.addi %[[FIRST]], %[[SIZE]]
// CHECK-NEXT:      %[[LAST:.*]] = arith.minui %[[END]], %{{.*}} : index
// CHECK-NEXT:      %[[RESULT:.*]]:8 = scf.for %{{.*}} = %[[FIRST]] to %[[LAST]] step %c32 iter_args(%[[SUM:arg[0-9]+]] = %[[ZERO]],
// CHECK:             scf.if {{.*}} -> (f16)
// CHECK:             memref.store %{{.*}}, %[[A]]
// CHECK:             memref.store %{{.*}}, %[[B]]
// CHECK:             gpu.barrier
// CHECK-NEXT:        scf.if %[[MULTIPLIES]] -> (!gpu.mma_matrix<8x16xf32, "COp">
// CHECK:               %[[LEFT:.*]] = gpu.subgroup_mma_load_matrix %[[A]]{{.*}} {leadDimension = 40 : index} : {{.*}} -> !gpu.mma_matrix<8x16xf16, "AOp">
// CHECK-COUNT-3:       gpu.subgroup_mma_load_matrix %[[A]]
// CHECK:               %[[RIGHT:.*]] = gpu.subgroup_mma_load_matrix %[[B]]{{.*}} {leadDimension = 40 : index, transpose} : {{.*}} -> !gpu.mma_matrix<16x16xf16, "BOp">
// CHECK:               gpu.subgroup_mma_load_matrix %[[B]]
// CHECK-NEXT:          gpu.subgroup_mma_compute %[[LEFT]], %[[RIGHT]], %[[SUM]]
// CHECK-COUNT-15:      gpu.subgroup_mma_compute
// CHECK-NOT:           gpu.subgroup_mma_compute
// CHECK:             } else {
// CHECK:             gpu.barrier
// CHECK-NEXT:        scf.yield

// Sums go through memory of the group, a row of matrices of each subgroup at a time.
// CHECK:           scf.if %[[MULTIPLIES]] {
// CHECK-NEXT:        gpu.subgroup_mma_store_matrix %[[RESULT]]#0, %[[SUMS]]{{.*}} {leadDimension = 72 : index}
// CHECK:           scf.if %[[MULTIPLIES]] {
// CHECK-NEXT:        gpu.subgroup_mma_store_matrix %[[RESULT]]#1
// CHECK:           gpu.barrier
// CHECK:             memref.load %[[SUMS]]
// CHECK:             memref.store {{.*}} : memref<?xf32>
// CHECK:           gpu.barrier
// CHECK:             gpu.subgroup_mma_store_matrix %[[RESULT]]#2
func.func private @matmul(%x: tensor<?x?xf16>, %w: tensor<?x?xf16>, %y: tensor<?x?xf32>) -> tensor<?x?xf32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %zeros = linalg.fill ins(%zero : f32) outs(%y : tensor<?x?xf32>) -> tensor<?x?xf32>
  %0 = linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x?xf16>, tensor<?x?xf16>) outs(%zeros : tensor<?x?xf32>) {
  ^bb0(%a: f16, %b: f16, %s: f32):
    %1 = arith.extf %a : f16 to f32
    %2 = arith.extf %b : f16 to f32
    %3 = arith.mulf %1, %2 : f32
    %4 = arith.addf %s, %3 : f32
    linalg.yield %4 : f32
  } -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
