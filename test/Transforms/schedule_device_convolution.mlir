// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,symbol-dce,relax-schedule{target=cuda:sm_80}' | FileCheck %s

!x = tensor<?x8x?x?xf32, #graph.shape<["n", 8, "h", "w"]>>
!y = tensor<?x32x?x?xf32, #graph.shape<["n", 32, "h", "w"]>>

// A filter for each channel leaves most of a tile unused.
// CHECK-LABEL: func.func private @conv2d(
// CHECK-SAME:    tir.schedule = "nests"
func.func @depthwise(%x: !x, %w: tensor<8x1x3x3xf32>) -> !x {
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 8 : i64} : (!x, tensor<8x1x3x3xf32>) -> !x
  return %0 : !x
}

// A group multiplies 64 filters by 64 pixels, of whatever images. Padding is memory of nobody: an
// element of a window is loaded if its row and column are those of the image, else it is zero.
// CHECK-LABEL: func.func private @fused_conv2d_relu(
// CHECK-SAME:    %[[X:.*]]: memref<?x8x?x?xf32>
// CHECK-SAME:    tir.schedule = "convolution"
// CHECK-NOT:     memref.alloc(
// CHECK-DAG:     %[[H:.*]] = memref.dim %[[X]], %c2
// CHECK-DAG:     %[[W:.*]] = memref.dim %[[X]], %c3
// CHECK-DAG:     %[[IMAGE:.*]] = memref.collapse_shape %[[X]]
// CHECK:         gpu.launch {{.*}} threads(%[[T:[a-z0-9]*]], {{.*}}) in (%{{.*}} = %c256
// CHECK-SAME:        workgroup(%[[A:.*]] : memref<1024xf32, #gpu.address_space<workgroup>>, %[[B:.*]] : memref<1024xf32, #gpu.address_space<workgroup>>)
// CHECK:           %[[ACROSS:.*]] = arith.divui %{{.*}}, %[[W]]
// CHECK:           %[[ROW:.*]] = arith.remui %[[ACROSS]], %[[H]]
// CHECK:           %[[COLUMN:.*]] = arith.remui %{{.*}}, %[[W]]
// CHECK:           scf.for %[[K:.*]] = %c0 to %c72 step %c16 iter_args
// CHECK-COUNT-4:     memref.load %{{.*}} : memref<2304xf32>
// CHECK:             %[[U:.*]] = arith.addi %[[ROW]], %{{.*}}
// CHECK:             %[[V:.*]] = arith.addi %[[COLUMN]], %{{.*}}
// CHECK:             %[[Y:.*]] = arith.addi %[[U]], %c-1
// CHECK:             %[[Z:.*]] = arith.addi %[[V]], %c-1
// CHECK:             arith.cmpi ult, %[[Y]], %[[H]]
// CHECK:             arith.cmpi ult, %[[Z]], %[[W]]
// CHECK:             scf.if {{.*}} -> (f32)
// CHECK:               memref.load %[[IMAGE]]
// CHECK:             else
// CHECK:               scf.yield %cst
// CHECK:             memref.store %{{.*}}, %[[B]]
// CHECK:             gpu.barrier
// CHECK-COUNT-16:      math.fma
// CHECK:             gpu.barrier
// CHECK:           arith.maximumf
// CHECK:           memref.store
func.func @tiles(%x: !x, %w: tensor<32x8x3x3xf32>) -> !y {
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (!x, tensor<32x8x3x3xf32>) -> !y
  %1 = "graph.nn_relu"(%0) : (!y) -> !y
  return %1 : !y
}
