// RUN: relax-opt %s --pass-pipeline="builtin.module(relax-legalize-ops)" | FileCheck %s --check-prefix=TASKS
// RUN: relax-opt %s --pass-pipeline="builtin.module(relax-legalize-ops,relax-schedule{target=gpu})" | FileCheck %s

!x = tensor<?x?xf32, #graph.shape<["n", "m"]>>
!u = tensor<?x?xf32, #graph.shape<["k", "m"]>>
!i = tensor<?x1xi64, #graph.shape<["k", 1]>>

// Totals of a block of columns are in memory; that of one is a value, so that groups share columns.
// TASKS-LABEL: func.func private @cumsum(
// TASKS:         scf.forall {{.*}} step (64)
// TASKS:           arith.minsi {{.*}} {tir.block}
// CHECK-LABEL: func.func private @cumsum(
// CHECK:         gpu.launch {{.*}} in (%{{.*}} = %c128, {{.*}}) workgroup(%{{.*}} : memref<4xf64
// CHECK:           scf.for {{.*}} iter_args(%{{.*}}) -> (f64)
func.func @totals(%x: !x) -> !x {
  %0 = "graph.cumsum"(%x) {axis = 0 : i64, exclusive = false, reverse = false} : (!x) -> !x
  return %0 : !x
}

// A thread has all updates of a column, in order.
// CHECK-LABEL: func.func private @scatter_nd(
// CHECK-SAME:      %{{.*}}: memref<?x?xf32>, %{{.*}}, %[[U:.*]]: memref<?x?xf32>, %[[OUT:.*]]: memref<?x?xf32>)
// CHECK:         %[[M:.*]] = memref.dim %[[OUT]], %c1
// CHECK:         gpu.launch {{.*}} threads(%[[T:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %c256
// CHECK:           %[[J:.*]] = arith.addi %{{.*}}, %[[T]]
// CHECK-NEXT:      arith.cmpi ult, %[[J]], %[[M]]
// CHECK-NOT:       arith.minsi
// CHECK:           scf.for
// CHECK:             scf.if
// CHECK-NOT:           scf.for
// CHECK:               memref.store
// CHECK:         return
func.func @updates(%x: !x, %i: !i, %u: !u) -> !x {
  %0 = "graph.scatter_nd"(%x, %i, %u) {reduction = "add"} : (!x, !i, !u) -> !x
  return %0 : !x
}
