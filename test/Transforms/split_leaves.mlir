// RUN: relax-opt %s --relax-split-leaves | FileCheck %s
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-split-leaves,relax-lower-dataflow,relax-schedule{target=x86-64-v3})' | FileCheck %s --check-prefix=TASKS

#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
#out2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>
#up = array<i32: 1, 1, 1>
!k = tensor<?xi32, #graph.shape<["k"]>>
!n = tensor<?xi32, #graph.shape<["n"]>>

// A barrier is an edge all-to-all; what is returned beside shared tensors is a node of its own.
// CHECK-LABEL: func.func @ranks
// CHECK:         %[[COUNTS:.*]] = "graph.node"(%arg0, %arg1) {callee = @rank_until, edges = ["all_to_all", "one_to_one"]
// CHECK:         %[[RANKS:.*]] = "graph.node"(%[[COUNTS]], %arg1) {callee = @rank_after_own_alone, edges = ["all_to_all", "one_to_one"]
// CHECK-NOT:     graph.node
// CHECK:         return %[[COUNTS]], %[[RANKS]]
// CHECK-LABEL: func.func private @rank(
// CHECK-LABEL: func.func private @rank_after(
// CHECK-SAME:      {tir.access = "shared"}
// CHECK-LABEL: func.func private @rank_after_own_alone(
// CHECK-SAME:      %[[BINS:.*]]: tensor<?xi32, {{.*}}>, %{{.*}}: i32) -> i32
// CHECK:         tensor.extract %[[BINS]]
// CHECK-LABEL: func.func private @rank_until(
// CHECK-SAME:      {tir.access = "shared"}
// CHECK:         "tir.atomic"
// CHECK-NOT:     tir.barrier

// Tasks have a part of the result each, which are added in the end.
// TASKS-LABEL: func.func private @rank_until_node
// TASKS:         scf.parallel
// TASKS:           scf.for
// TASKS:             scf.if
// TASKS:               arith.addi
func.func @ranks(%bins: !k, %x: !n) -> (!k, !n) {
  %0, %1 = "graph.node"(%bins, %x) {callee = @rank, grid = #graph.shape<["n"]>,
      edges = ["all_to_all", "one_to_one"], operandSegmentSizes = #in2,
      resultSegmentSizes = #out2} : (!k, !n) -> (!k, !n)
  return %0, %1 : !k, !n
}
func.func private @rank(%bins: !k {tir.access = "shared"}, %x: i32) -> (!k, i32)
    attributes {tir.leaf} {
  %one = arith.constant 1 : i32
  %i = arith.index_cast %x : i32 to index
  %0 = "tir.atomic"(%one, %bins, %i) {kind = "add", operandSegmentSizes = #up} : (i32, !k, index) -> !k
  %1 = "tir.barrier"(%0) : (!k) -> !k
  %2 = tensor.extract %1[%i] : !k
  return %1, %2 : !k, i32
}
