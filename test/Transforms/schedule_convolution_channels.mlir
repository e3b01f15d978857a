// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-schedule{target=x86-64-v3}' | FileCheck %s

!x = tensor<?x20x?x?xf32, #graph.shape<["n", 20, "h", "w"]>>
!y = tensor<?x32x?x?xf32, #graph.shape<["n", 32, "h", "w"]>>

// With sixteen registers, eight channels of a pixel are contiguous in the copied image: squares of
// eight pixels are transposed. The last of three blocks of channels has four; the others repeat the
// last one.
// CHECK-LABEL: func.func private @conv2d
// CHECK-SAME:    tir.schedule = "convolution"
// CHECK:         %[[IMAGE:.*]] = memref.collapse_shape %arg0
// CHECK:         scf.parallel
// CHECK:           %[[COPY:.*]] = memref.alloc(%{{.*}}) : memref<?xf32>
// CHECK:           scf.for %{{.*}} = %c0 to %c3 step %c1 {
// CHECK:             arith.minui %{{.*}}, %c19
// CHECK:             scf.for %{{.*}} step %c1 {
// CHECK:               vector.store %{{.*}}, %[[COPY]]
// CHECK:             scf.for %{{.*}} step %c8 {
// CHECK-COUNT-8:       vector.load %[[IMAGE]]
// CHECK-COUNT-24:      vector.shuffle
// CHECK-COUNT-8:       vector.store %{{.*}}, %[[COPY]]

// A tile of six pixels by two vectors of filters multiplies two blocks of eight channels, then the
// rest, one element of each pixel at a time. Five pixels of a column of the windows that begins
// outside of the image.
// CHECK:           scf.for %{{.*}} = %c0 to %c2 step %c1
// CHECK-COUNT-80:    vector.fma
// CHECK-NEXT:        scf.yield
// CHECK:           scf.for %{{.*}} = %c0 to %c4 step %c1
// CHECK-COUNT-10:    vector.fma
// CHECK-NEXT:        scf.yield
func.func @main(%x: !x, %w: tensor<32x20x3x3xf32>) -> !y {
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (!x, tensor<32x20x3x3xf32>) -> !y
  return %0 : !y
}

!u = tensor<?x64x?x?xf32, #graph.shape<["n", 64, "h", "w"]>>

// 1x1 windows with lanes along filters: all pixels are one row, which is copied, then divided into
// pieces of 24.
// CHECK-LABEL: func.func private @conv2d_1
// CHECK:         {{^    }}} else {
// CHECK:           scf.parallel
// CHECK:             scf.for %{{.*}} = %c0 to %c8 step %c1 {
// CHECK:               scf.for %{{.*}} = %c0 to %{{.*}} step %c8 {
// CHECK-COUNT-24:        vector.shuffle
// CHECK:             scf.for %{{.*}} step %c1 {
// CHECK-NEXT:          arith.muli
// CHECK-NEXT:          arith.subi
// CHECK-NEXT:          arith.minui
// CHECK-NEXT:          arith.muli
// CHECK-NEXT:          scf.for %{{.*}} = %c0 to %{{.*}} step %c24 {
// CHECK:                 vector.fma
func.func @pointwise(%x: !u, %w: tensor<32x64x1x1xf32>) -> !y {
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (!u, tensor<32x64x1x1xf32>) -> !y
  return %0 : !y
}
