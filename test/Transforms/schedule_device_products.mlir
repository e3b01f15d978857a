// RUN: relax-opt %s --pass-pipeline='relax-schedule{target=cuda:sm_75}' | FileCheck %s

#lhs = affine_map<(i, j, k) -> (i, k)>
#rhs = affine_map<(i, j, k) -> (j, k)>
#out = affine_map<(i, j, k) -> (i, j)>
#id = affine_map<(i, j) -> (i, j)>

// A group multiplies 64 x 64 elements of the result: it copies 16 elements along k of 64 rows of both
// sides, whose k is contiguous, so that threads next to each other follow it. The sums of a thread
// stay in registers; the epilogue is computed for those that are elements of the result. The host
// divides long sums of few tiles into parts, whose sums are kept, and added up by another launch.
// CHECK-LABEL: func.func private @matmul(
// CHECK-SAME:    tir.schedule = "products"
// CHECK:         %[[IS_DIVIDED:.*]] = arith.cmpi ugt, %[[COUNT:.*]], %c1 : index
// CHECK:         gpu.launch {{.*}} threads(%[[T:[a-z0-9]*]], {{.*}}) in (%{{.*}} = %c256
// CHECK-SAME:        workgroup(%[[A:.*]] : memref<1024xf32, #gpu.address_space<workgroup>>, %[[B:.*]] : memref<1024xf32, #gpu.address_space<workgroup>>)
// CHECK:           arith.divui %[[T]], %c16
// CHECK:           %[[FIRST:.*]] = arith.muli %[[PART:.*]], %[[SIZE:.*]] :
// CHECK:           %[[END:.*]] = arith.addi %[[FIRST]], %[[SIZE]]
// CHECK:           %[[LAST:.*]] = arith.minui %[[END]], %{{.*}} : index
// CHECK:           scf.for %[[K:.*]] = %[[FIRST]] to %[[LAST]] step %c16 iter_args({{.*}}) -> (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)
// CHECK:             scf.if {{.*}} -> (f32)
// CHECK:               memref.load {{.*}} : memref<?xf16>
// CHECK:               arith.extf
// CHECK:             else
// CHECK:               scf.yield %cst
// CHECK:             memref.store {{.*}} %[[A]]
// CHECK:             memref.store {{.*}} %[[B]]
// CHECK:             gpu.barrier
// CHECK:             scf.for {{.*}} to %c16 step %c1 iter_args
// CHECK-COUNT-4:       memref.load %[[A]]
// CHECK-COUNT-4:       memref.load %[[B]]
// CHECK-COUNT-16:      math.fma
// CHECK:             gpu.barrier
// CHECK:           scf.if %[[IS_DIVIDED]] {
// CHECK:             memref.store %{{.*}}, %[[SUMS:.*]][%{{.*}}] : memref<?xf32>
// CHECK:           else
// CHECK:             memref.store {{.*}} : memref<?xf16>
// CHECK:           gpu.terminator
// CHECK:         scf.if %[[IS_DIVIDED]]
// CHECK:           gpu.launch
// CHECK:             scf.for %{{.*}} = %c1 to %[[COUNT]] step %c1
// CHECK:               memref.load %[[SUMS]]
// CHECK:               arith.addf
// CHECK:             arith.truncf
// CHECK:             memref.store {{.*}} : memref<?xf16>
func.func private @matmul(%x: tensor<?x?xf16>, %w: tensor<?x?xf16>, %y: tensor<?x?xf16>) -> tensor<?x?xf16>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %y, %c0 : tensor<?x?xf16>
  %n = tensor.dim %y, %c1 : tensor<?x?xf16>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty(%m, %n) : tensor<?x?xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x?xf32>) -> tensor<?x?xf32>
  %0 = linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x?xf16>, tensor<?x?xf16>) outs(%zeros : tensor<?x?xf32>) {
  ^bb0(%a: f16, %b: f16, %s: f32):
    %1 = arith.extf %a : f16 to f32
    %2 = arith.extf %b : f16 to f32
    %3 = arith.mulf %1, %2 : f32
    %4 = arith.addf %s, %3 : f32
    linalg.yield %4 : f32
  } -> tensor<?x?xf32>
  %5 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<?x?xf32>) outs(%y : tensor<?x?xf16>) {
  ^bb0(%a: f32, %b: f16):
    %6 = arith.truncf %a : f32 to f16
    linalg.yield %6 : f16
  } -> tensor<?x?xf16>
  return %5 : tensor<?x?xf16>
}
