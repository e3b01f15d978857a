// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,symbol-dce,relax-schedule{target=x86-64-v4}' | FileCheck %s

!x = tensor<?x3x?x?xf32, #graph.shape<["n", 3, "h", "w"]>>
!y = tensor<?x40x?x?xf32, #graph.shape<["n", 40, "h", "w"]>>
!z = tensor<?x3x?x?xf32, #graph.shape<["n", 3, "(h + 1) floordiv 2", "(w + 1) floordiv 2"]>>

// The best of three rows is stored to a line, from which every second element is loaded three
// times.
// CHECK-LABEL: func.func private @max_pool2d
// CHECK-SAME:    tir.schedule = "pooling"
// CHECK-NOT:     memref.alloc(
// CHECK:         scf.parallel
// CHECK:           arith.maximumf
// CHECK-COUNT-3:   vector.shuffle
// CHECK-NOT:     vector.gather
// CHECK:         return
func.func @pooling(%x: !x) -> !z {
  %0 = "graph.nn_max_pool2d"(%x) {window = array<i64: 3, 3>, strides = array<i64: 2, 2>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>} : (!x) -> !z
  return %0 : !z
}

// CHECK-LABEL: func.func private @sum_pool2d
// CHECK-SAME:    tir.schedule = "pooling"
// CHECK-NOT:     memref.alloc(
// CHECK:         scf.parallel
// CHECK:           arith.addf
// CHECK-NOT:     vector.gather
// CHECK:         return
func.func @sums(%x: !x) -> !z {
  %0 = "graph.nn_sum_pool2d"(%x) {window = array<i64: 3, 3>, strides = array<i64: 2, 2>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>} : (!x) -> !z
  return %0 : !z
}

// One filter for each channel does not fill lanes.
// CHECK-LABEL: func.func private @conv2d
// CHECK-NOT:     tir.schedule = "convolution"
// CHECK:         return
func.func @depthwise(%x: !x, %w: tensor<3x1x3x3xf32>) -> !x {
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 3 : i64} : (!x, tensor<3x1x3x3xf32>) -> !x
  return %0 : !x
}

// If flags allow it, 16 products are four pixels: tiles are transformed, then filters; sums of 8
// filters by vectors of tiles are in registers, then pairs of rows of pixels are stored. Few tiles
// are computed directly.
// CHECK-LABEL: func.func private @conv2d_1
// CHECK:         scf.if
// CHECK:           scf.parallel
// CHECK-COUNT-16:    vector.shuffle
// CHECK:             arith.mulf
// CHECK-COUNT-24:    vector.fma
// CHECK-COUNT-4:     vector.shuffle
// CHECK:         } else {
// CHECK:           scf.parallel
// CHECK-COUNT-28:    vector.fma
!u = tensor<?x16x?x?xf32, #graph.shape<["n", 16, "h", "w"]>>
!v = tensor<?x32x?x?xf32, #graph.shape<["n", 32, "h", "w"]>>
func.func @algebraic(%x: !u, %w: tensor<32x16x3x3xf32>) -> !v {
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64, graph.fastmath = #arith.fastmath<reassoc,nnan,ninf>} : (!u, tensor<32x16x3x3xf32>) -> !v
  return %0 : !v
}

// Filters are packed into panels. Tiles of 14 pixels by 32 filters have 28 sums in registers along
// channels, which are transposed, biased and stored. Only the copy of a block of the image is
// padded. Filters are prefetched.
// CHECK-LABEL: func.func private @fused_conv2d_add
// CHECK-SAME:    tir.schedule = "convolution"
// CHECK:         memref.alloc() : memref<1728xf32>
// CHECK:         scf.parallel
// CHECK-COUNT-64:  vector.shuffle
// CHECK:         scf.parallel
// CHECK:           %[[AHEAD:.*]] = arith.addi %{{.*}}, %c2048 : index
// CHECK-NEXT:      memref.prefetch %{{.*}}[%[[AHEAD]]], read, locality<2>, data : memref<1728xf32>
// CHECK:           vector.broadcast
// CHECK-COUNT-28:  vector.fma
// CHECK-COUNT-128: vector.shuffle
// CHECK:           arith.addf
// CHECK:           vector.maskedstore
// CHECK-NOT:     linalg
func.func @convolution(%x: !x, %w: tensor<40x3x3x3xf32>, %b: tensor<40x1x1xf32>) -> !y {
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (!x, tensor<40x3x3x3xf32>) -> !y
  %1 = "graph.add"(%0, %b) : (!y, tensor<40x1x1xf32>) -> !y
  return %1 : !y
}

// 1x1 windows: 8 filters by 3 vectors of pixels, whose sums are not transposed. If many lanes of
// the last vector would be unused, lanes run along filters.
// CHECK-LABEL: func.func private @fused_conv2d_add_1
// CHECK:         arith.cmpi ult
// CHECK:         scf.if
// CHECK:           scf.parallel
// CHECK:             memref.prefetch
// CHECK-COUNT-24:    vector.fma
// CHECK-NOT:         vector.shuffle
// CHECK:             vector.store
// CHECK:         } else {
// CHECK:           scf.parallel
// CHECK-COUNT-128:   vector.shuffle
func.func @pointwise(%x: !x, %w: tensor<40x3x1x1xf32>, %b: tensor<40x1x1xf32>) -> !y {
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (!x, tensor<40x3x1x1xf32>) -> !y
  %1 = "graph.add"(%0, %b) : (!y, tensor<40x1x1xf32>) -> !y
  return %1 : !y
}
