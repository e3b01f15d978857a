// RUN: relax-opt %s --pass-pipeline="builtin.module(relax-legalize-ops,relax-schedule{target=gpu})" | FileCheck %s

// Threads copy elements next to each other, and store some next to each other, 32 x 32 a group. What
// lies as the result does is read where it is.
// CHECK-LABEL: func.func private @permute_dims(
// CHECK:         %[[X:.*]] = memref.collapse_shape %arg0
// CHECK:         %[[Y:.*]] = memref.collapse_shape %arg1
// CHECK:         gpu.launch blocks(%[[GROUP:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %c12, {{.*}}) threads(%[[T:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %c256
// CHECK-SAME:        workgroup(%[[TILE:.*]] : memref<1056xf32, #gpu.address_space<workgroup>>)
// CHECK:           %[[ALONG:.*]] = arith.remui %[[T]], %c32
// CHECK:           %[[LINE:.*]] = arith.divui %[[T]], %c32
// CHECK:           scf.for %[[I:.*]] = %c0 to %c32 step %c8
// CHECK:             %[[ACROSS:.*]] = arith.addi %[[LINE]], %[[I]]
// CHECK:             %[[ROW:.*]] = arith.muli %[[ACROSS]], %c33
// CHECK:             %[[AT:.*]] = arith.addi %[[ROW]], %[[ALONG]]
// CHECK:             scf.if
// CHECK:               %[[LOADED:.*]] = memref.load %[[X]]
// CHECK-NEXT:          memref.store %[[LOADED]], %[[TILE]][%[[AT]]]
// CHECK:           gpu.barrier
// CHECK:           %[[COLUMN:.*]] = arith.muli %[[ALONG]], %c33
// CHECK:           scf.for %[[I:.*]] = %c0 to %c32 step %c8
// CHECK:             %[[ACROSS:.*]] = arith.addi %[[LINE]], %[[I]]
// CHECK:             %[[AT:.*]] = arith.addi %[[COLUMN]], %[[ACROSS]]
// CHECK:             scf.if
// CHECK:               %[[TURNED:.*]] = memref.load %[[TILE]][%[[AT]]]
// CHECK:               memref.store %[[TURNED]], %[[Y]]
func.func @main(%x: tensor<100x70xf32>) -> tensor<70x100xf32> {
  %0 = "graph.permute_dims"(%x) {axes = array<i64: 1, 0>} : (tensor<100x70xf32>) -> tensor<70x100xf32>
  return %0 : tensor<70x100xf32>
}

// The host has a thread for each element where an extent is short: this one always is.
// CHECK-LABEL: func.func private @permute_dims_1(
// CHECK:         gpu.launch
// CHECK-NOT:       workgroup(
// CHECK:           gpu.terminator
func.func @short(%x: tensor<?x7xf32, #graph.shape<["n", 7]>>) -> tensor<7x?xf32, #graph.shape<[7, "n"]>> {
  %0 = "graph.permute_dims"(%x) {axes = array<i64: 1, 0>}
      : (tensor<?x7xf32, #graph.shape<["n", 7]>>) -> tensor<7x?xf32, #graph.shape<[7, "n"]>>
  return %0 : tensor<7x?xf32, #graph.shape<[7, "n"]>>
}

// Heads stay together, whose elements are next to each other before and after.
// CHECK-LABEL: func.func private @permute_dims_2(
// CHECK:         gpu.launch
// CHECK-NOT:       workgroup(
// CHECK:           gpu.terminator
func.func @heads(%x: tensor<2x50x9x64xf32>) -> tensor<2x9x50x64xf32> {
  %0 = "graph.permute_dims"(%x) {axes = array<i64: 0, 2, 1, 3>} : (tensor<2x50x9x64xf32>) -> tensor<2x9x50x64xf32>
  return %0 : tensor<2x9x50x64xf32>
}
