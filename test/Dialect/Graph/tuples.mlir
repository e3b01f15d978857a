// RUN: relax-opt %s --relax-verify | relax-opt --relax-verify | FileCheck %s

// Dims in tuples are written canonically, as other dims are.
// CHECK-LABEL: func.func @tuples
// CHECK-SAME:    tuple<tensor<?xf32, #graph.shape<["n + 1"]>>, tuple<index>>
func.func @tuples(%t: tuple<tensor<?xf32, #graph.shape<["1+n"]>>, tuple<index>>, %e: tuple<>) -> tuple<tuple<index>, tuple<>> {
  // CHECK: "graph.tuple_get"(%{{.*}}) {index = 1 : i64} : (tuple<tensor<?xf32, #graph.shape<["n + 1"]>>, tuple<index>>) -> tuple<index>
  %0 = "graph.tuple_get"(%t) {index = 1 : i64} : (tuple<tensor<?xf32, #graph.shape<["1+n"]>>, tuple<index>>) -> tuple<index>
  // CHECK: "graph.tuple"(%{{.*}}, %{{.*}}) {{.*}} : (tuple<index>, tuple<>) -> tuple<tuple<index>, tuple<>>
  %1 = "graph.tuple"(%0, %e) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tuple<index>, tuple<>) -> tuple<tuple<index>, tuple<>>
  return %1 : tuple<tuple<index>, tuple<>>
}
