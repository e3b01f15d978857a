// RUN: relax-opt %s --pass-pipeline='relax-schedule{target=x86-64-v4}' | FileCheck %s
// RUN: relax-opt %s --pass-pipeline='relax-schedule{target=x86-64-v3}' | FileCheck %s --check-prefix=V3

#cube = affine_map<(i, j, k) -> (i, j, k)>
#square = affine_map<(i, j, k) -> (i, j)>
#id = affine_map<(a, b) -> (a, b)>
#row = affine_map<(a, b) -> (a)>
#column = affine_map<(a, b) -> (b)>
#turned = affine_map<(a, b) -> (b, a)>
#flat = affine_map<(a) -> (a)>

// Encodings are removed and dims collapsed to one index: four vectors at a time, loads before
// stores, then one, then a masked one.
// CHECK-LABEL: func.func private @add
// CHECK-SAME:    %[[X:.*]]: memref<?x?xf32>, %[[Y:.*]]: memref<?x?xf32>
// CHECK-SAME:    tir.schedule = "elementwise", tir.scheduled
// CHECK:         scf.parallel
// CHECK-NEXT:      arith.muli
// CHECK:           scf.for
// CHECK-COUNT-4:     vector.load {{.*}} vector<16xf32>
// CHECK-COUNT-4:     vector.store
// CHECK:           scf.for
// CHECK-NEXT:        vector.load {{.*}} vector<16xf32>
// CHECK-NEXT:        arith.addf {{.*}} vector<16xf32>
// CHECK-NEXT:        vector.store
// CHECK:           scf.if
// CHECK-NEXT:        vector.create_mask
// CHECK-NEXT:        vector.maskedload
// CHECK-NEXT:        arith.addf
// CHECK-NEXT:        vector.maskedstore
// CHECK:         tir.grain
// CHECK:         return
// V3-LABEL:    func.func private @add
// V3:            vector.load {{.*}} vector<8xf32>
func.func private @add(%x: tensor<?x?xf32, #graph.shape<["n", "m"]>>, %y: tensor<?x?xf32, #graph.shape<["n", "m"]>>)
    -> tensor<?x?xf32, #graph.shape<["n", "m"]>> attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %in = tensor.cast %x : tensor<?x?xf32, #graph.shape<["n", "m"]>> to tensor<?x?xf32>
  %out = tensor.cast %y : tensor<?x?xf32, #graph.shape<["n", "m"]>> to tensor<?x?xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%in : tensor<?x?xf32>) outs(%out : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.addf %a, %a : f32
    linalg.yield %1 : f32
  } -> tensor<?x?xf32>
  %2 = tensor.cast %0 : tensor<?x?xf32> to tensor<?x?xf32, #graph.shape<["n", "m"]>>
  return %2 : tensor<?x?xf32, #graph.shape<["n", "m"]>>
}

// An extent that is a multiple of the lanes has no masked part.
// CHECK-LABEL: func.func private @divides
// CHECK-NOT:     mask
// CHECK:         return
func.func private @divides(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %0 = linalg.generic {indexing_maps = [#flat, #flat], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%y : tensor<64xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = math.exp %a : f32
    linalg.yield %1 : f32
  } -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// The sum of a row stays in a register between the two loops over the row. Each row prefetches the
// next one, unless there is one row only.
// CHECK-LABEL: func.func private @centre
// CHECK-SAME:    tir.schedule = "row_reduction"
// CHECK-NOT:     memref.alloc
// CHECK:         scf.parallel
// CHECK:           scf.for {{.*}} iter_args({{.*}}) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// CHECK:           vector.extract
// CHECK:           vector.broadcast
// CHECK:           scf.for
// CHECK-NOT:         memref.prefetch
// CHECK:             arith.subf {{.*}} : vector<16xf32>
// CHECK-NOT:         memref.prefetch
// CHECK:         scf.parallel
// CHECK:             memref.prefetch
// CHECK:             arith.subf {{.*}} : vector<16xf32>
// CHECK-NOT:     scf.parallel
// CHECK:         return
func.func private @centre(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>) -> tensor<?x?xf32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x?xf32>) outs(%f : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.addf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<?xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<?x?xf32>, tensor<?xf32>) outs(%y : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %1 = arith.subf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// Rows of 32 are two vectors, both loaded before the first is stored, without loops. Four rows at a
// time, all sums first, hide latencies. The rest are single rows.
// CHECK-LABEL: func.func private @centre_short
// CHECK:         scf.parallel
// CHECK-NOT:       scf.for
// CHECK-COUNT-4:   arith.addf {{.*}} : vector<16xf32>
// CHECK-NOT:       scf.for
// CHECK-COUNT-2:   arith.subf {{.*}} : vector<16xf32>
// CHECK-COUNT-2:   vector.store
// CHECK-COUNT-6:   arith.subf {{.*}} : vector<16xf32>
// CHECK-NOT:       arith.subf
// CHECK:         tir.grain
// CHECK-NEXT:    scf.for
// CHECK:           arith.addf {{.*}} : vector<16xf32>
// CHECK-COUNT-2:   arith.subf {{.*}} : vector<16xf32>
// CHECK-NOT:       arith.subf
func.func private @centre_short(%x: tensor<?x32xf32>, %y: tensor<?x32xf32>) -> tensor<?x32xf32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x32xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x32xf32>) outs(%f : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.addf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<?xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<?x32xf32>, tensor<?xf32>) outs(%y : tensor<?x32xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %1 = arith.subf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<?x32xf32>
  return %0 : tensor<?x32xf32>
}

// A reduction over the outer dim has adjacent results in the lanes of four vectors.
// CHECK-LABEL: func.func private @columns
// CHECK:         scf.for {{.*}} iter_args({{.*}}) -> (vector<64xf32>)
// CHECK-NEXT:      arith.muli
// CHECK-NEXT:      arith.addi
// CHECK-NEXT:      vector.load
// CHECK-NEXT:      arith.addf
// CHECK-NOT:     vector.extract
// CHECK:         return
func.func private @columns(%x: tensor<?x?xf32>, %y: tensor<?xf32>) -> tensor<?xf32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %0 = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<?x?xf32>) outs(%y : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.addf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// Rows of a table are copied: no gather.
// CHECK-LABEL: func.func private @take
// CHECK:         memref.load {{.*}} : memref<?xi32>
// CHECK:         vector.load {{.*}} vector<16xf32>
// CHECK-NOT:     vector.gather
// CHECK:         return
func.func private @take(%x: tensor<?x64xf32>, %i: tensor<?xi32>, %y: tensor<?x64xf32>) -> tensor<?x64xf32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %0 = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%i : tensor<?xi32>) outs(%y : tensor<?x64xf32>) {
  ^bb0(%a: i32, %b: f32):
    %1 = arith.index_cast %a : i32 to index
    %2 = linalg.index 1 : index
    %3 = tensor.extract %x[%1, %2] : tensor<?x64xf32>
    linalg.yield %3 : f32
  } -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}

// Squares are loaded by rows and transposed in registers.
// CHECK-LABEL: func.func private @transpose
// CHECK-COUNT-16: vector.load
// CHECK:          vector.shuffle
// CHECK:          vector.store
// CHECK:          return
func.func private @transpose(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>) -> tensor<?x?xf32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %0 = linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x?xf32>) outs(%y : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// Blocks of 32 of 9 heads of 64: no vector crosses a head, so that loads are contiguous.
// CHECK-LABEL: func.func private @blocks
// CHECK:         vector.load {{.*}} vector<16xf16>
// CHECK-NOT:     vector.gather
// CHECK:         return
func.func private @blocks(%x: tensor<?x9x64xf16>, %y: tensor<?x18xf32>) -> tensor<?x18xf32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x9x64xf16>
  %e = tensor.empty(%n) : tensor<?x9x64xf32>
  %0 = linalg.generic {indexing_maps = [#cube, #cube], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<?x9x64xf16>) outs(%e : tensor<?x9x64xf32>) {
  ^bb0(%a: f16, %b: f32):
    %1 = arith.extf %a : f16 to f32
    linalg.yield %1 : f32
  } -> tensor<?x9x64xf32>
  %rows = tensor.collapse_shape %0 [[0], [1, 2]] : tensor<?x9x64xf32> into tensor<?x576xf32>
  %blocks = tensor.expand_shape %rows [[0], [1, 2]] output_shape [%n, 18, 32]
      : tensor<?x576xf32> into tensor<?x18x32xf32>
  %2 = linalg.generic {indexing_maps = [#cube, #square], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%blocks : tensor<?x18x32xf32>) outs(%y : tensor<?x18xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.addf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<?x18xf32>
  return %2 : tensor<?x18xf32>
}
