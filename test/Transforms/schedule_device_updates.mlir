// RUN: relax-opt %s --pass-pipeline="builtin.module(relax-legalize-ops,relax-schedule{target=gpu})" | FileCheck %s
// RUN: relax-opt %s --pass-pipeline="builtin.module(relax-legalize-ops,relax-schedule{target=vulkan})" | FileCheck %s --check-prefix=ORDER

!x = tensor<?xi32, #graph.shape<["n"]>>
!u = tensor<?xi32, #graph.shape<["k"]>>
!i = tensor<?x1xi64, #graph.shape<["k", 1]>>

// What is updated is read elsewhere, too.
// CHECK-LABEL: func.func private @read(
// CHECK:         gpu.launch {{.*}} in (%{{.*}} = %c1, %{{.*}} = %c1, %{{.*}} = %c1) {
// CHECK-NOT:     atomic_rmw
// CHECK:         return
func.func private @read(%at: tensor<500xindex>, %y: tensor<500xi32>) -> tensor<500xi32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 500 : index
  %s = scf.for %j = %c0 to %n step %c1 iter_args(%r = %y) -> (tensor<500xi32>) {
    %i = tensor.extract %at[%j] : tensor<500xindex>
    %x = tensor.extract %r[%j] : tensor<500xi32>
    %old = tensor.extract %r[%i] : tensor<500xi32>
    %sum = arith.addi %old, %x : i32
    %next = tensor.insert %sum into %r[%i] : tensor<500xi32>
    scf.yield %next : tensor<500xi32>
  }
  return %s : tensor<500xi32>
}

// A launch that copies, and one of a thread for each update.
// CHECK-LABEL: func.func private @scatter_nd(
// CHECK-SAME:      %{{.*}}, %{{.*}}, %[[U:.*]]: memref<?xi32>, %[[OUT:.*]]: memref<?xi32>)
// CHECK:         gpu.launch {{.*}} in (%{{.*}} = %c256
// CHECK:           memref.store %{{.*}}, %[[OUT]]
// CHECK:         gpu.launch {{.*}} in (%{{.*}} = %c256
// CHECK:           scf.if
// CHECK:             %[[VALUE:.*]] = memref.load %[[U]]
// CHECK-NEXT:        memref.atomic_rmw addi %[[VALUE]], %[[OUT]]
// CHECK-NOT:       memref.store
// CHECK:         return
// ORDER-LABEL: func.func private @scatter_nd(
// ORDER-SAME:      %{{.*}}, %{{.*}}, %[[U:.*]]: memref<?xi32>, %[[OUT:.*]]: memref<?xi32>)
// ORDER:         gpu.launch {{.*}} in (%{{.*}} = %c128
// ORDER-NOT:     atomic_rmw
// ORDER-NOT:     atomic_rmw
// ORDER:         gpu.launch {{.*}} in (%{{.*}} = %c128
// ORDER:           scf.if
// ORDER:             scf.for
// ORDER:               %[[WORD:.*]] = memref.load %{{.*}} : memref<?xi64>
// ORDER:               %[[AT:.*]] = arith.index_cast %[[WORD]]
// ORDER:               scf.if
// ORDER:                 %[[BEYOND:.*]] = arith.subi %[[AT]], %{{.*}}
// ORDER-NEXT:            %[[IS_OWN:.*]] = arith.cmpi ult, %[[BEYOND]], %{{.*}}
// ORDER-NEXT:            scf.if %[[IS_OWN]] {
// ORDER-NEXT:              %[[MORE:.*]] = memref.load %[[U]]
// ORDER-NEXT:              %[[OLD:.*]] = memref.load %[[OUT]][%[[AT]]]
// ORDER-NEXT:              %[[NEW:.*]] = arith.addi %[[OLD]], %[[MORE]]
// ORDER-NEXT:              memref.store %[[NEW]], %[[OUT]][%[[AT]]]
// ORDER:         return
func.func @updates(%x: !x, %i: !i, %u: !u) -> !x {
  %0 = "graph.scatter_nd"(%x, %i, %u) {reduction = "add"} : (!x, !i, !u) -> !x
  return %0 : !x
}
