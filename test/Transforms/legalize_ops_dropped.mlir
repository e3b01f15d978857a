// RUN: relax-opt %s --relax-legalize-ops | FileCheck %s

// Where nobody asks for positions, the program sorts elements alone.
// CHECK-LABEL: func.func @sort_alone(
// CHECK:         "graph.call_tir"(%arg0) {callee = @sort{{.*}}resultSegmentSizes = array<i32: 1, 0,
// CHECK:         "graph.call_tir"(%arg0) {callee = @sort_1{{.*}}resultSegmentSizes = array<i32: 1, 1, 0,
// CHECK:       func.func private @sort({{.*}}tir.num_outs = 1
// CHECK:       func.func private @sort_1({{.*}}tir.num_outs = 2
func.func @sort_alone(%x: tensor<4x9xf32>) -> (tensor<4x9xf32>, tensor<4x9xi64>) {
  %0:2 = "graph.sort"(%x) {axis = 1 : i64, descending = false} : (tensor<4x9xf32>) -> (tensor<4x9xf32>, tensor<4x9xi64>)
  %1:2 = "graph.sort"(%x) {axis = 1 : i64, descending = false} : (tensor<4x9xf32>) -> (tensor<4x9xf32>, tensor<4x9xi64>)
  return %0#0, %1#1 : tensor<4x9xf32>, tensor<4x9xi64>
}
