// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,relax-pack-filters{target=x86-64-v4},symbol-dce' | FileCheck %s
// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,relax-pack-filters{target=x86-64-v4},symbol-dce,relax-schedule{target=x86-64-v4}' | FileCheck %s --check-prefix=SCHEDULE

!x = tensor<?x3x?x?xf32, #graph.shape<["n", 3, "h", "w"]>>
!y = tensor<?x40x?x?xf32, #graph.shape<["n", 40, "h", "w"]>>

// A parameter [40, 3, 3, 3] is read in two panels of 32 filters: columns, rows, channels, filters.
// CHECK-LABEL: func.func @parameter
// CHECK-SAME:    %[[X:[a-z0-9]*]]: tensor<?x3x?x?xf32
// CHECK-SAME:    %[[W:[a-z0-9]*]]: tensor<40x3x3x3xf32>
// CHECK:         %[[P:.*]] = "graph.call_tir"(%[[W]]) {callee = @pack_filters,
// CHECK-SAME:      -> tensor<2x3x3x3x32xf32>
// CHECK:         "graph.call_tir"(%[[X]], %[[P]]) {callee = @conv2d_packed,
// SCHEDULE:      func.func private @conv2d_packed
// SCHEDULE-SAME:   memref<2x3x3x3x32xf32>
// SCHEDULE-SAME:   tir.schedule = "convolution"
func.func @parameter(%x: !x, %w: tensor<40x3x3x3xf32>) -> !y attributes {graph.num_inputs = 1 : i64} {
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (!x, tensor<40x3x3x3xf32>) -> !y
  return %0 : !y
}

// What is no parameter changes from call to call.
// CHECK-LABEL: func.func @negative_input
// CHECK-NOT:     pack_filters
// CHECK:         return
func.func @negative_input(%x: !x, %w: tensor<40x3x3x3xf32>) -> !y attributes {graph.num_inputs = 2 : i64} {
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (!x, tensor<40x3x3x3xf32>) -> !y
  return %0 : !y
}

// CHECK-LABEL: func.func @negative_no_declared_parameters
// CHECK-NOT:     pack_filters
// CHECK:         return
func.func @negative_no_declared_parameters(%x: !x, %w: tensor<40x3x3x3xf32>) -> !y {
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (!x, tensor<40x3x3x3xf32>) -> !y
  return %0 : !y
}

// CHECK-LABEL: func.func @negative_groups
// CHECK-NOT:     pack_filters
// CHECK:         return
func.func @negative_groups(%x: !x, %w: tensor<39x1x3x3xf32>) -> tensor<?x39x?x?xf32, #graph.shape<["n", 39, "h", "w"]>> attributes {graph.num_inputs = 1 : i64} {
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 3 : i64} : (!x, tensor<39x1x3x3xf32>) -> tensor<?x39x?x?xf32, #graph.shape<["n", 39, "h", "w"]>>
  return %0 : tensor<?x39x?x?xf32, #graph.shape<["n", 39, "h", "w"]>>
}
