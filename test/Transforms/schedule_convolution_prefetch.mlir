// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-schedule{target=znver5}' | FileCheck %s
// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-schedule{target=x86-64-v4}' | FileCheck %s --check-prefix=IN-ORDER

!x = tensor<?x64x?x?xf32, #graph.shape<["n", 64, "h", "w"]>>
!y = tensor<?x32x?x?xf32, #graph.shape<["n", 32, "h", "w"]>>

// On Zen 5, the receptive field is copied channel by channel, since rows of a channel are
// contiguous; each row is prefetched two channels ahead.
// CHECK-LABEL: func.func private @conv2d
// CHECK-SAME:    tir.schedule = "convolution"
// CHECK:         %[[IMAGE:.*]] = memref.collapse_shape %arg0
// CHECK:         scf.parallel
// CHECK:           %[[PATCH:.*]] = memref.alloc(%{{.*}}) : memref<?xf32>
// CHECK:           scf.for %[[C:.*]] = %c0 to %c64 step %c1 {
// CHECK-NOT:         memref.prefetch
// CHECK:             scf.for %{{.*}} step %c1 {
// CHECK:               scf.for %{{.*}} step %c16 {
// CHECK-NEXT:            arith.addi
// CHECK-NEXT:            memref.prefetch %[[IMAGE]][%{{.*}}], read, locality<3>
// CHECK-COUNT-2:       vector.maskedstore %[[PATCH]]
// CHECK:               %[[ROW:.*]] = vector.load %[[IMAGE]]
// CHECK:               vector.store %[[ROW]], %[[PATCH]]
// CHECK:           vector.fma

// IN-ORDER-LABEL: func.func private @conv2d
// IN-ORDER:         %[[IMAGE:.*]] = memref.collapse_shape %arg0
// IN-ORDER:         scf.parallel
// IN-ORDER:           %[[PATCH:.*]] = memref.alloc(%{{.*}}) : memref<?xf32>
// IN-ORDER:           scf.for %{{.*}} step %c1 {
// IN-ORDER:             scf.for %{{.*}} = %c0 to %c64 step %c1 {
// IN-ORDER-NOT:           memref.prefetch
// IN-ORDER:               %[[ROW:.*]] = vector.load %[[IMAGE]]
// IN-ORDER:               vector.store %[[ROW]], %[[PATCH]]
// IN-ORDER:           vector.fma
func.func @main(%x: !x, %w: tensor<32x64x3x3xf32>) -> !y {
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (!x, tensor<32x64x3x3xf32>) -> !y
  return %0 : !y
}
