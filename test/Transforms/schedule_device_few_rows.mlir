// RUN: relax-opt %s --pass-pipeline='relax-schedule{target=gpu}' | FileCheck %s
// RUN: relax-opt %s --pass-pipeline='relax-schedule{target=vulkan}' | FileCheck %s --check-prefix=TREE

#lhs = affine_map<(i, j, k) -> (i, k)>
#rhs = affine_map<(i, j, k) -> (j, k)>
#columns = affine_map<(i, j, k) -> (k, j)>
#out = affine_map<(i, j, k) -> (i, j)>

// The host has a launch for one row, one for up to four, and one for more. 32 threads share the sum of
// each of four columns, whose elements along k are next to each other: a warp exchanges its sums, and
// its lane r has the epilogue of row r. Without warps, they are added up in memory.
// CHECK-LABEL: func.func private @matmul(
// CHECK:         %[[ROWS:.*]] = memref.dim %arg0, %c0
// CHECK:         arith.cmpi ult, %[[ROWS]], %c2
// CHECK:         gpu.launch {{.*}} threads(%[[T:[a-z0-9]*]], {{.*}} in (%{{.*}} = %c128
// CHECK-NOT:         workgroup
// CHECK:           %[[SLICE:.*]] = arith.remui %[[T]], %c32
// CHECK:           %[[SUM:.*]] = scf.for %{{.*}} = %[[SLICE]] to %{{.*}} step %c32 iter_args(%{{[^,]*}}) -> (f32)
// CHECK-COUNT-2:     memref.load %collapse_shape
// CHECK-NEXT:        math.fma
// CHECK:           gpu.shuffle xor %[[SUM]], %c1_i32, %c32_i32
// CHECK-COUNT-4:   gpu.shuffle xor
// CHECK-NOT:       gpu.{{shuffle|barrier}}
// CHECK:           arith.cmpi ult, %[[SLICE]]
// CHECK:           memref.store {{.*}} : memref<?xf32>
// CHECK:         else
// CHECK:         arith.cmpi ult, %[[ROWS]], %c5
// CHECK:         gpu.launch
// CHECK:           iter_args({{.*}}) -> (f32, f32, f32, f32)
// CHECK-COUNT-5:     memref.load %collapse_shape
// CHECK-COUNT-4:     math.fma
// CHECK-COUNT-20:  gpu.shuffle xor
// CHECK-NOT:       gpu.{{shuffle|barrier}}
// CHECK-COUNT-3:   arith.select
// CHECK:         else
// CHECK:         gpu.launch {{.*}} memref<1024xf32, #gpu.address_space<workgroup>>,

// TREE-LABEL: func.func private @matmul(
// TREE:         gpu.launch {{.*}} threads(%[[T:[a-z0-9]*]], {{.*}} workgroup(%[[M:.*]] : memref<128xf32, #gpu.address_space<workgroup>>)
// TREE:           %[[SUM:.*]] = scf.for
// TREE-NOT:       gpu.shuffle
// TREE:           memref.store %[[SUM]], %[[M]][%[[T]]]
// TREE:           scf.for %{{.*}} = %c0 to %c5
// TREE-NEXT:        gpu.barrier
// TREE:           gpu.barrier
// TREE-NEXT:      memref.load %[[M]]
func.func private @matmul(%x: tensor<?x?xf32>, %w: tensor<?x?xf32>, %y: tensor<?x?xf32>) -> tensor<?x?xf32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %zeros = linalg.fill ins(%zero : f32) outs(%y : tensor<?x?xf32>) -> tensor<?x?xf32>
  %0 = linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x?xf32>, tensor<?x?xf32>) outs(%zeros : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %1 = arith.mulf %a, %b : f32
    %2 = arith.addf %s, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// Elements along columns are next to each other: 8 threads share the sum of each of 16 columns, and one
// thread adds them up.
// CHECK-LABEL: func.func private @along_columns(
// CHECK:         gpu.launch {{.*}} threads(%[[T:[a-z0-9]*]], {{.*}} in (%{{.*}} = %c128, {{.*}} workgroup(%[[M:.*]] : memref<128xf32, #gpu.address_space<workgroup>>)
// CHECK:           %[[SLICE:.*]] = arith.divui %[[T]], %c16
// CHECK:           %[[SUM:.*]] = scf.for %{{.*}} = %[[SLICE]] to %{{.*}} step %c8
// CHECK:           memref.store %[[SUM]], %[[M]]
// CHECK-NEXT:      gpu.barrier
// CHECK-NOT:       gpu.barrier
// CHECK:           scf.if
// CHECK-COUNT-8:     memref.load %[[M]]
// CHECK-COUNT-7:     arith.addf
// CHECK:             memref.store {{.*}} : memref<?xf32>
func.func private @along_columns(%x: tensor<?x?xf32>, %w: tensor<?x?xf32>, %y: tensor<?x?xf32>) -> tensor<?x?xf32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %zeros = linalg.fill ins(%zero : f32) outs(%y : tensor<?x?xf32>) -> tensor<?x?xf32>
  %0 = linalg.generic {indexing_maps = [#lhs, #columns, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x?xf32>, tensor<?x?xf32>) outs(%zeros : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %1 = arith.mulf %a, %b : f32
    %2 = arith.addf %s, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
