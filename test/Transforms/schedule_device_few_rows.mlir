// RUN: relax-opt %s --pass-pipeline='relax-schedule{target=vulkan}' | FileCheck %s

#lhs = affine_map<(i, j, k) -> (i, k)>
#rhs = affine_map<(i, j, k) -> (j, k)>
#out = affine_map<(i, j, k) -> (i, j)>

// The host has a launch for one row, one for up to four, and one for more. 32 threads share the sum of
// each of four columns, whose elements along k are next to each other.
// CHECK-LABEL: func.func private @matmul(
// CHECK:         %[[ROWS:.*]] = memref.dim %arg0, %c0
// CHECK:         arith.cmpi ult, %[[ROWS]], %c2
// CHECK:         gpu.launch {{.*}} threads(%[[T:[a-z0-9]*]], {{.*}} in (%{{.*}} = %c128, {{.*}} workgroup(%[[M:.*]] : memref<128xf32, #gpu.address_space<workgroup>>)
// CHECK:           %[[SLICE:.*]] = arith.remui %[[T]], %c32
// CHECK:           scf.for %{{.*}} = %[[SLICE]] to %{{.*}} step %c32 iter_args(%{{[^,]*}}) -> (f32)
// CHECK-COUNT-2:     memref.load %collapse_shape
// CHECK-NEXT:        math.fma
// CHECK:           memref.store %{{.*}}, %[[M]]
// CHECK-COUNT-5:   gpu.barrier
// CHECK:           arith.divui %[[T]], %c4
// CHECK:           memref.store {{.*}} : memref<?xf32>
// CHECK:         else
// CHECK:         arith.cmpi ult, %[[ROWS]], %c5
// CHECK:         gpu.launch {{.*}} memref<512xf32, #gpu.address_space<workgroup>>)
// CHECK:           iter_args({{.*}}) -> (f32, f32, f32, f32)
// CHECK-COUNT-5:     memref.load %collapse_shape
// CHECK-COUNT-4:     math.fma
// CHECK:         else
// CHECK:         gpu.launch {{.*}} memref<1024xf32, #gpu.address_space<workgroup>>,
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
