// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-schedule{target=x86-64-v3}' | FileCheck %s
// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-schedule{target=x86-64-v4}' | FileCheck %s --check-prefix=V4

!x = tensor<?x?xf32, #graph.shape<["m", "n"]>>

// Of 16 registers, the constants of an exponential leave room for one sum; of 32, for four.
// The next row is asked for meanwhile, line by line: every second vector of 32 bytes does so.
// CHECK-LABEL: func.func private @softmax(
// CHECK:         } else {
// CHECK:           scf.for %{{.*}} step %c32 iter_args(
// CHECK-SAME:        vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
// CHECK-COUNT-4:     arith.cmpf ogt
// CHECK:           scf.for %{{.*}} step %c16 iter_args(%[[SUM:[^ ]*]] = %{{[^ ]*}})
// CHECK:             memref.prefetch
// CHECK:             math.exp {{.*}} fastmath<afn> {tir.not_positive} : vector<8xf32>
// CHECK-NEXT:        %[[FIRST:.*]] = arith.addf %{{.*}}, %[[SUM]]
// CHECK-NOT:         memref.prefetch
// CHECK:             math.exp {{.*}} fastmath<afn> {tir.not_positive} : vector<8xf32>
// CHECK-NEXT:        %[[SECOND:.*]] = arith.addf %{{.*}}, %[[FIRST]]
// CHECK-COUNT-2:     vector.store
// CHECK-NEXT:        scf.yield %[[SECOND]] : vector<8xf32>

// V4-LABEL: func.func private @softmax(
// V4:         step %c64 iter_args(
// V4-SAME:      vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// V4-COUNT-4:   math.exp {{.*}} fastmath<afn> {tir.not_positive} : vector<16xf32>
// V4-COUNT-4:   vector.store
func.func @rows(%x: !x) -> !x {
  %y = "graph.nn_softmax"(%x) {axis = -1 : i64} : (!x) -> !x
  return %y : !x
}

// 256 bytes of each row at a time, whatever a vector holds.
// CHECK-LABEL: func.func private @softmax_1(
// CHECK:         math.exp {{.*}} : vector<64xf32>
// V4-LABEL:    func.func private @softmax_1(
// V4:            math.exp {{.*}} : vector<64xf32>
func.func @columns(%x: !x) -> !x {
  %y = "graph.nn_softmax"(%x) {axis = 0 : i64} : (!x) -> !x
  return %y : !x
}
