// RUN: relax-opt %s --pass-pipeline='relax-schedule{target=gpu}' | FileCheck %s

#id = affine_map<(a, b) -> (a, b)>
#row = affine_map<(a, b) -> (a)>

// Both axes are one: a thread for each element, of groups that a grid of three dims counts. The host
// launches nothing where there is nothing to do.
// CHECK-LABEL: func.func private @exp(
// CHECK-SAME:    tir.schedule = "nests", tir.scheduled
// CHECK:         %[[X:.*]] = memref.collapse_shape %arg0 {{.*}} into memref<?xf32>
// CHECK:         %[[COUNT:.*]] = arith.muli
// CHECK:         %[[GROUPS:.*]] = arith.divui %{{.*}}, %c256
// CHECK:         %[[SOME:.*]] = arith.cmpi ugt, %[[GROUPS]], %c0
// CHECK:         scf.if %[[SOME]]
// CHECK:           gpu.launch blocks({{.*}}) threads(%[[THREAD:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %c256
// CHECK:             arith.cmpi ult, %[[GROUP:.*]], %[[GROUPS]]
// CHECK:             %[[FIRST:.*]] = arith.muli %[[GROUP]], %c256
// CHECK:             %[[I:.*]] = arith.addi %[[FIRST]], %[[THREAD]]
// CHECK:             %[[HAS:.*]] = arith.cmpi ult, %[[I]], %[[COUNT]]
// CHECK:             scf.if %[[HAS]]
// CHECK-NEXT:          memref.load %[[X]][%[[I]]]
// CHECK-NEXT:          math.exp
// CHECK-NEXT:          memref.store
// CHECK:             gpu.terminator
func.func private @exp(%x: tensor<?x?xf32, #graph.shape<["n", "m"]>>, %y: tensor<?x?xf32, #graph.shape<["n", "m"]>>)
    -> tensor<?x?xf32, #graph.shape<["n", "m"]>> attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %in = tensor.cast %x : tensor<?x?xf32, #graph.shape<["n", "m"]>> to tensor<?x?xf32>
  %out = tensor.cast %y : tensor<?x?xf32, #graph.shape<["n", "m"]>> to tensor<?x?xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%in : tensor<?x?xf32>) outs(%out : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = math.exp %a : f32
    linalg.yield %1 : f32
  } -> tensor<?x?xf32>
  %2 = tensor.cast %0 : tensor<?x?xf32> to tensor<?x?xf32, #graph.shape<["n", "m"]>>
  return %2 : tensor<?x?xf32, #graph.shape<["n", "m"]>>
}

// Short rows have a thread each.
// CHECK-LABEL: func.func private @short(
// CHECK:         gpu.launch {{.*}} threads(%[[T:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %c8,
// CHECK-NOT:       workgroup
// CHECK:           scf.for %{{.*}} = %c0 to %c5 step %c1
// CHECK:           memref.store {{.*}}[%[[T]]] : memref<8xf32>
func.func private @short(%x: tensor<8x5xf32>, %y: tensor<8xf32>) -> tensor<8xf32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %zeros = linalg.fill ins(%zero : f32) outs(%y : tensor<8xf32>) -> tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x5xf32>) outs(%zeros : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.addf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// A program of loops: those of which no iteration needs another are threads.
// CHECK-LABEL: func.func private @running(
// CHECK-SAME:    tir.schedule = "serial"
// CHECK:         gpu.launch {{.*}} threads(%[[T:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %c8,
// CHECK:           scf.for %[[J:.*]] = %c0 to %c5 step %c1
// CHECK:             %[[ROW:.*]] = arith.muli %{{.*}}, %c5
// CHECK:             arith.addi %[[ROW]], %[[J]]
// CHECK:             memref.store {{.*}} : memref<40xf32>
func.func private @running(%x: tensor<8x5xf32>, %y: tensor<8x5xf32>) -> tensor<8x5xf32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %zero = arith.constant 0.0 : f32
  %0 = scf.forall (%i) in (8) shared_outs(%o = %y) -> (tensor<8x5xf32>) {
    %row = tensor.extract_slice %o[%i, 0] [1, 5] [1, 1] : tensor<8x5xf32> to tensor<1x5xf32>
    %s:2 = scf.for %j = %c0 to %c5 step %c1 iter_args(%r = %row, %sum = %zero) -> (tensor<1x5xf32>, f32) {
      %v = tensor.extract %x[%i, %j] : tensor<8x5xf32>
      %more = arith.addf %sum, %v : f32
      %next = tensor.insert %more into %r[%c0, %j] : tensor<1x5xf32>
      scf.yield %next, %more : tensor<1x5xf32>, f32
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s#0 into %o[%i, 0] [1, 5] [1, 1] : tensor<1x5xf32> into tensor<8x5xf32>
    }
  }
  return %0 : tensor<8x5xf32>
}
