// RUN: relax-opt %s --pass-pipeline='relax-schedule{target=x86-64-v4}' | FileCheck %s
// RUN: relax-opt %s --pass-pipeline='relax-schedule{target=x86-64-v3}' | FileCheck %s --check-prefix=AVX2

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>
#row = affine_map<(m, n) -> (n)>

// Few rows stream the weights, four rows of them at a time, with a horizontal reduction by
// shuffles; more rows use packed panels and tiles of 14 by 32, whose 28 sums stay in registers.
// Both add the bias to a block of sums. The loop over panels is inside the one over blocks of rows
// if these are the larger side, or if the L2 cache is large enough.
// CHECK-LABEL: func.func private @linear
// CHECK-SAME:    memref<?x64xf32>, %{{.*}}: memref<96x64xf32>, %{{.*}}: memref<96xf32>, %{{.*}}: memref<?x96xf32>)
// CHECK-SAME:    tir.schedule = "matmul"
// CHECK:         %[[FEW:.*]] = arith.cmpi ult
// CHECK:         scf.if %[[FEW]]
// CHECK:           scf.parallel
// CHECK:             vector.fma
// CHECK:             vector.shuffle
// CHECK:             arith.addf
// CHECK:             vector.maskedstore
// CHECK:         else
// CHECK:           %[[LARGER:.*]] = arith.cmpi ugt, %{{.*}}, %c96
// CHECK:           %[[MANY:.*]] = arith.cmpi ugt, %{{.*}}, %c63
// CHECK:           arith.ori %[[LARGER]], %[[MANY]]
// CHECK:           scf.parallel
// CHECK-COUNT-64:    vector.shuffle
// CHECK-COUNT-28:    vector.fma
// CHECK-NOT:         vector.fma
// CHECK:             scf.yield
// CHECK:             vector.maskedstore
// CHECK-NOT:     linalg
// AVX2-LABEL:  func.func private @linear
// AVX2:        else
// AVX2-NOT:      arith.ori
// AVX2-COUNT-24:   vector.shuffle
// AVX2-COUNT-12:   vector.fma
// AVX2-NOT:        vector.fma
// AVX2:            scf.yield
func.func private @linear(%x: tensor<?x64xf32>, %w: tensor<96x64xf32>, %b: tensor<96xf32>, %out: tensor<?x96xf32>) -> tensor<?x96xf32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %init = linalg.fill ins(%zero : f32) outs(%out : tensor<?x96xf32>) -> tensor<?x96xf32>
  %c = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x64xf32>, tensor<96x64xf32>) outs(%init : tensor<?x96xf32>) {
  ^bb0(%a: f32, %bb: f32, %s: f32):
    %p = arith.mulf %a, %bb : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<?x96xf32>
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%c, %b : tensor<?x96xf32>, tensor<96xf32>) outs(%out : tensor<?x96xf32>) {
  ^bb0(%a: f32, %bb: f32, %o: f32):
    %t = arith.addf %a, %bb : f32
    linalg.yield %t : f32
  } -> tensor<?x96xf32>
  return %d : tensor<?x96xf32>
}

// A constant extent of one row: no branch, and no tiles.
// CHECK-LABEL: func.func private @one_row
// CHECK-SAME:    tir.schedule = "matmul"
// CHECK-NOT:     scf.if
// CHECK:         scf.parallel
// CHECK-COUNT-8:   vector.fma
// CHECK-NOT:       vector.fma
// CHECK-COUNT-10:  vector.shuffle
// CHECK-NOT:       vector.shuffle
// CHECK-LABEL: func.func private @integers
func.func private @one_row(%x: tensor<1x64xf32>, %w: tensor<96x64xf32>, %out: tensor<1x96xf32>) -> tensor<1x96xf32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %init = linalg.fill ins(%zero : f32) outs(%out : tensor<1x96xf32>) -> tensor<1x96xf32>
  %c = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1x64xf32>, tensor<96x64xf32>) outs(%init : tensor<1x96xf32>) {
  ^bb0(%a: f32, %bb: f32, %s: f32):
    %p = arith.mulf %a, %bb : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x96xf32>
  return %c : tensor<1x96xf32>
}

// Integers are multiplied and added modulo their width, in tiles of the same size.
// CHECK-SAME:    tir.schedule = "matmul"
// CHECK:         else
// CHECK-COUNT-28:  arith.muli %{{.*}} : vector<16xi32>
// CHECK:           scf.yield
func.func private @integers(%x: tensor<?x64xi32>, %w: tensor<96x64xi32>, %out: tensor<?x96xi32>) -> tensor<?x96xi32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %zero = arith.constant 0 : i32
  %init = linalg.fill ins(%zero : i32) outs(%out : tensor<?x96xi32>) -> tensor<?x96xi32>
  %c = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x64xi32>, tensor<96x64xi32>) outs(%init : tensor<?x96xi32>) {
  ^bb0(%a: i32, %bb: i32, %s: i32):
    %p = arith.muli %a, %bb : i32
    %t = arith.addi %s, %p : i32
    linalg.yield %t : i32
  } -> tensor<?x96xi32>
  return %c : tensor<?x96xi32>
}
