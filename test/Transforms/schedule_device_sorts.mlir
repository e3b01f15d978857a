// RUN: relax-opt %s --pass-pipeline="builtin.module(relax-legalize-ops,relax-schedule{target=gpu})" | FileCheck %s

!x = tensor<?xf32, #graph.shape<["n"]>>
!i = tensor<?xi64, #graph.shape<["n"]>>
!rows = tensor<?x100xf32, #graph.shape<["m", 100]>>

// A launch for short lines, whose passes are between barriers; for long ones some for each digit.
// CHECK-LABEL: func.func private @sort(
// CHECK-SAME:      tir.schedule = "sorts"
// CHECK:         gpu.launch {{.*}} in (%{{.*}} = %c128, {{.*}}) workgroup(%{{.*}} : memref<2048xi64, {{.*}}>
// CHECK:           gpu.barrier
// CHECK:           scf.for
// CHECK:             arith.shrui
// CHECK:             gpu.barrier
// CHECK:         else
// CHECK:         gpu.launch
// CHECK:           arith.bitcast
// CHECK:         scf.for
// CHECK:           gpu.launch
// CHECK:             arith.shrui
// CHECK:             gpu.barrier
// CHECK:           gpu.launch
// CHECK-NOT:         arith.andi
// CHECK:           gpu.launch
// CHECK:             arith.shrui
// CHECK:         gpu.launch
func.func @line(%x: !x) -> (!x, !i) {
  %y, %i = "graph.sort"(%x) {axis = 0 : i64, descending = false} : (!x) -> (!x, !i)
  return %y, %i : !x, !i
}

// Lines of a known length have counts of 32 bits, and one of the two ways.
// CHECK-LABEL: func.func private @sort_1(
// CHECK-SAME:      tir.sort = {axis = 1 : i64, descending = true, unsigned = false}
// CHECK:         gpu.launch {{.*}} in (%{{.*}} = %c128, {{.*}}) workgroup(%{{.*}} : memref<2048xi32, {{.*}}>
// CHECK-NOT:     gpu.launch
func.func @rows(%x: !rows) -> !rows {
  %y, %i = "graph.sort"(%x) {axis = 1 : i64, descending = true} : (!rows) -> (!rows, tensor<?x100xi64, #graph.shape<["m", 100]>>)
  return %y : !rows
}
