// RUN: relax-opt %s --pass-pipeline='relax-schedule{target=gpu}' | FileCheck %s
// RUN: relax-opt %s --pass-pipeline='relax-schedule{target=vulkan}' | FileCheck %s --check-prefix=TREE

#id = affine_map<(a, b) -> (a, b)>
#row = affine_map<(a, b) -> (a)>

// A group for each row: its threads add up every 128th element. The lanes of a warp exchange their
// sums, and the sums of warps are exchanged again. The first thread stores the total. Without warps,
// they add up the sums of each other in memory, half as many in each round.
// CHECK-LABEL: func.func private @sums(
// CHECK:         gpu.launch blocks(%[[GROUP:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %c8, {{.*}}) threads(%[[T:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %c128
// CHECK-SAME:        workgroup(%[[SHARED:.*]] : memref<4xf32, #gpu.address_space<workgroup>>)
// CHECK:           %[[OWN:.*]] = scf.for %{{.*}} = %[[T]] to %c512 step %c128
// CHECK:           %[[OTHER:.*]], %{{.*}} = gpu.shuffle xor %[[OWN]], %c1_i32, %c32_i32 : f32
// CHECK-NEXT:      arith.addf %[[OWN]], %[[OTHER]]
// CHECK-NEXT:      gpu.shuffle xor {{.*}}, %c2_i32, %c32_i32
// CHECK:           gpu.shuffle xor {{.*}}, %c4_i32
// CHECK:           gpu.shuffle xor {{.*}}, %c8_i32
// CHECK:           gpu.shuffle xor {{.*}}, %c16_i32
// CHECK-NEXT:      %[[OF_WARP:.*]] = arith.addf
// CHECK:           %[[LANE:.*]] = arith.remui %[[T]], %c32
// CHECK:           %[[WARP:.*]] = arith.divui %[[T]], %c32
// CHECK:           scf.if
// CHECK-NEXT:        memref.store %[[OF_WARP]], %[[SHARED]][%[[WARP]]]
// CHECK:           gpu.barrier
// CHECK-NEXT:      %[[ITS_WARP:.*]] = arith.remui %[[LANE]], %c4
// CHECK-NEXT:      memref.load %[[SHARED]][%[[ITS_WARP]]]
// CHECK-NEXT:      gpu.shuffle xor {{.*}}, %c1_i32
// CHECK:           gpu.shuffle xor {{.*}}, %c2_i32
// CHECK-NOT:       gpu.barrier
// CHECK:           %[[IS_FIRST:.*]] = arith.cmpi ult, %[[T]], %c1
// CHECK:           scf.if %[[IS_FIRST]]
// CHECK-NEXT:        memref.store {{.*}}[%[[GROUP]]] : memref<8xf32>

// TREE-LABEL: func.func private @sums(
// TREE:         gpu.launch blocks(%[[GROUP:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %c8, {{.*}}) threads(%[[T:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %c128
// TREE-SAME:        workgroup(%[[SHARED:.*]] : memref<128xf32, #gpu.address_space<workgroup>>)
// TREE:           %[[OWN:.*]] = scf.for %{{.*}} = %[[T]] to %c512 step %c128
// TREE-NOT:       gpu.shuffle
// TREE:           memref.store %[[OWN]], %[[SHARED]][%[[T]]]
// TREE:           scf.for
// TREE-NEXT:        gpu.barrier
// TREE:             arith.addf
// TREE:             memref.store {{.*}} %[[SHARED]][%[[T]]]
// TREE:           gpu.barrier
// TREE:           memref.load %[[SHARED]][%c0]
// TREE:           %[[IS_FIRST:.*]] = arith.cmpi ult, %[[T]], %c1
// TREE:           scf.if %[[IS_FIRST]]
// TREE-NEXT:        memref.store {{.*}}[%[[GROUP]]] : memref<8xf32>
func.func private @sums(%x: tensor<8x512xf32>, %y: tensor<8xf32>) -> tensor<8xf32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %zeros = linalg.fill ins(%zero : f32) outs(%y : tensor<8xf32>) -> tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x512xf32>) outs(%zeros : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.addf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// Threads for 8 rows of 64 elements, 16 each, are a group: of each warp, they are for two rows. What
// is left of these has a group for each row, which is half a warp.
// CHECK-LABEL: func.func private @several(
// CHECK:         %[[REST:.*]] = arith.remui %[[N:.*]], %c8
// CHECK:         %[[GROUPS:.*]] = arith.divui %[[N]], %c8
// CHECK:         gpu.launch {{.*}} threads(%[[T:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %c128
// CHECK-NOT:         workgroup
// CHECK:           %[[I:.*]] = arith.divui %[[T]], %c16
// CHECK:           %[[OWN:.*]] = arith.remui %[[T]], %c16
// CHECK:           %[[FIRST_ROW:.*]] = arith.muli %{{.*}}, %c8
// CHECK:           %[[OWN_ROW:.*]] = arith.addi %[[FIRST_ROW]], %[[I]]
// CHECK:           %[[SUM:.*]] = scf.for %{{.*}} = %[[OWN]] to %c64 step %c16
// CHECK:           gpu.shuffle xor %[[SUM]], %c1_i32, %c32_i32
// CHECK-COUNT-3:   gpu.shuffle xor {{.*}}, %c32_i32
// CHECK-NOT:       gpu.shuffle
// CHECK:           scf.if
// CHECK-NEXT:        memref.store {{.*}}[%[[OWN_ROW]]]
// CHECK:         %[[LAST:.*]] = arith.subi %[[N]], %[[REST]]
// CHECK:         gpu.launch blocks(%[[GROUP:[a-z0-9]*]], {{.*}}) threads({{.*}}) in (%{{.*}} = %c16
// CHECK-COUNT-4:   gpu.shuffle xor {{.*}}, %c16_i32
// CHECK-NOT:       gpu.shuffle
// CHECK:           gpu.terminator

// TREE-LABEL: func.func private @several(
// TREE:         gpu.launch {{.*}} threads(%[[T:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %c128
// TREE-SAME:        workgroup(%[[SHARED:.*]] : memref<128xf32, #gpu.address_space<workgroup>>)
// TREE:           %[[SUM:.*]] = scf.for
// TREE:           memref.store %[[SUM]], %[[SHARED]][%[[T]]]
// TREE:           scf.for %{{.*}} = %c0 to %c4
// TREE-NEXT:        gpu.barrier
// TREE:         gpu.launch {{.*}} threads({{.*}}) in (%{{.*}} = %c16
// TREE:           scf.for %{{.*}} = %c0 to %c4
// TREE-NEXT:        gpu.barrier
func.func private @several(%x: tensor<?x64xf32, #graph.shape<["n", 64]>>, %y: tensor<?xf32, #graph.shape<["n"]>>)
    -> tensor<?xf32, #graph.shape<["n"]>> attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %in = tensor.cast %x : tensor<?x64xf32, #graph.shape<["n", 64]>> to tensor<?x64xf32>
  %out = tensor.cast %y : tensor<?xf32, #graph.shape<["n"]>> to tensor<?xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%out : tensor<?xf32>) -> tensor<?xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%in : tensor<?x64xf32>) outs(%zeros : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.addf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<?xf32>
  %2 = tensor.cast %0 : tensor<?xf32> to tensor<?xf32, #graph.shape<["n"]>>
  return %2 : tensor<?xf32, #graph.shape<["n"]>>
}


// The largest element and its index, which have 64 bits each, and the position in the loop that the
// first of equal elements is found by: all are two words. Others are given what the first lane has.
// CHECK-LABEL: func.func private @best(
// CHECK:         %[[BEST:.*]]:3 = scf.for
// CHECK:         %[[LATE:.*]] = arith.shrui %[[BEST]]#0, %c32_i64
// CHECK:         %[[LOW:.*]] = arith.trunci %[[BEST]]#0 : i64 to i32
// CHECK:         gpu.shuffle xor %[[LOW]], %c1_i32, %c32_i32 : i32
// CHECK:         %[[HIGH:.*]] = arith.trunci %[[LATE]] : i64 to i32
// CHECK:         gpu.shuffle xor %[[HIGH]], %c1_i32, %c32_i32 : i32
// CHECK-COUNT-40: gpu.shuffle xor
// CHECK:         %[[LANE:.*]] = arith.index_cast {{.*}} : index to i32
// CHECK-COUNT-4: gpu.shuffle idx {{.*}}, %[[LANE]], %c32_i32 : i32
// CHECK-NOT:     gpu.shuffle
// CHECK:         gpu.terminator
func.func private @best(%x: tensor<2x1000xi64>, %y: tensor<2xi64>, %at: tensor<2xi64>) -> (tensor<2xi64>, tensor<2xi64>)
    attributes {tir.prim_func, tir.num_outs = 2 : i64} {
  %least = arith.constant -9223372036854775808 : i64
  %zero = arith.constant 0 : i64
  %0 = linalg.fill ins(%least : i64) outs(%y : tensor<2xi64>) -> tensor<2xi64>
  %1 = linalg.fill ins(%zero : i64) outs(%at : tensor<2xi64>) -> tensor<2xi64>
  %2:2 = linalg.generic {indexing_maps = [#id, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<2x1000xi64>) outs(%0, %1 : tensor<2xi64>, tensor<2xi64>) {
  ^bb0(%a: i64, %b: i64, %c: i64):
    %j = linalg.index 1 : index
    %i = arith.index_cast %j : index to i64
    %3 = arith.cmpi sgt, %a, %b : i64
    %4 = arith.select %3, %a, %b : i64
    %5 = arith.select %3, %i, %c : i64
    linalg.yield %4, %5 : i64, i64
  } -> (tensor<2xi64>, tensor<2xi64>)
  return %2#0, %2#1 : tensor<2xi64>, tensor<2xi64>
}

// What is added to is read by all threads, which wait before the first one stores there.
// CHECK-LABEL: func.func private @more(
// CHECK:         gpu.launch {{.*}} threads(%[[T:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %c32,
// CHECK:         %[[BEFORE:.*]] = memref.load %[[Y:.*]][%[[ROW:.*]]] : memref<4xf32>
// CHECK-COUNT-5: gpu.shuffle
// CHECK:         %[[TOTAL:.*]] = arith.addf %[[BEFORE]]
// CHECK-NEXT:    gpu.barrier
// CHECK:         scf.if
// CHECK-NEXT:      memref.store %[[TOTAL]], %[[Y]][%[[ROW]]]
// CHECK-NOT:     gpu.barrier
// CHECK:         gpu.terminator
func.func private @more(%x: tensor<4x32xf32>, %y: tensor<4xf32>) -> tensor<4xf32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x32xf32>) outs(%y : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.addf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
