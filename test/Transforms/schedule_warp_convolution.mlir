// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,symbol-dce,relax-schedule{target=cuda:sm_80}' | FileCheck %s

// Where channels are last in memory, windows are copied by 16 bytes, which are of one pixel, or zero.
// CHECK-LABEL: func.func private @channels_last(
// CHECK-SAME:    tir.schedule = "warp_convolution"
// CHECK:         gpu.launch
// CHECK-SAME:        workgroup(%[[WINDOWS:.*]] : memref<5120xf16, #gpu.address_space<workgroup>>, %[[FILTERS:.*]] : memref<4608xf16, #gpu.address_space<workgroup>>
// CHECK:           scf.for %[[K:.*]] = %c0 to %c144 step %c32 iter_args
// CHECK:             %[[C:.*]] = arith.remui %{{.*}}, %c16
// CHECK:             nvgpu.device_async_copy {{.*}} %[[WINDOWS]]
// CHECK:             nvgpu.device_async_copy {{.*}} %[[FILTERS]]
func.func private @channels_last(%x: tensor<1x9x11x16xf16>, %w: tensor<3x3x16x24xf16>, %y: tensor<1x7x9x24xf32>) -> tensor<1x7x9x24xf32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %zeros = linalg.fill ins(%zero : f32) outs(%y : tensor<1x7x9x24xf32>) -> tensor<1x7x9x24xf32>
  %0 = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<1x9x11x16xf16>, tensor<3x3x16x24xf16>) outs(%zeros : tensor<1x7x9x24xf32>) -> tensor<1x7x9x24xf32>
  return %0 : tensor<1x7x9x24xf32>
}
func.func @last(%x: tensor<1x9x11x16xf16>, %w: tensor<3x3x16x24xf16>) -> tensor<1x7x9x24xf32> {
  %0 = "graph.call_tir"(%x, %w) {callee = @channels_last, sym_args = #graph.shape<[]>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<1x9x11x16xf16>, tensor<3x3x16x24xf16>) -> tensor<1x7x9x24xf32>
  return %0 : tensor<1x7x9x24xf32>
}

!x = tensor<?x8x?x?xf16, #graph.shape<["n", 8, "h", "w"]>>
!y = tensor<?x32x?x?xf16, #graph.shape<["n", 32, "h", "w"]>>

// Four warps multiply 32 filters by 64 pixels, of whatever images. Filters are copied by 16 bytes where
// their array begins at such a multiple. A thread has one pixel, whose image, row and column are
// computed in front of the loop; what is in padding is zero.
// CHECK-LABEL: func.func private @fused_conv2d_relu(
// CHECK-SAME:    %[[X:.*]]: memref<?x8x?x?xf16>
// CHECK-SAME:    tir.schedule = "warp_convolution"
// CHECK-NOT:     memref.alloc(
// CHECK-DAG:     %[[H:.*]] = memref.dim %[[X]], %c2
// CHECK-DAG:     %[[W:.*]] = memref.dim %[[X]], %c3
// CHECK-DAG:     %[[IMAGE:.*]] = memref.collapse_shape %[[X]]
// CHECK:         memref.extract_aligned_pointer_as_index
// CHECK:         %[[ALIGNED:.*]] = arith.cmpi eq
// CHECK-NOT:     memref.extract_aligned_pointer_as_index
// CHECK:         gpu.launch {{.*}} in (%{{.*}} = %c128
// CHECK-SAME:        workgroup(%[[FILTERS:.*]] : memref<2560xf16, #gpu.address_space<workgroup>>, %[[WINDOWS:.*]] : memref<4608xf16, #gpu.address_space<workgroup>>, %{{.*}} : memref<2304xf32, #gpu.address_space<workgroup>>)
// CHECK:           %[[ACROSS:.*]] = arith.divui %{{.*}}, %[[W]]
// CHECK:           %[[ROW:.*]] = arith.remui %[[ACROSS]], %[[H]]
// CHECK:           %[[COLUMN:.*]] = arith.remui %{{.*}}, %[[W]]
// CHECK:           scf.for %{{.*}} = %c0 to %c72 step %c32 iter_args
// CHECK:             scf.if %[[ALIGNED]]
// CHECK:               nvgpu.device_async_copy {{.*}} %[[FILTERS]]
// CHECK:             scf.for
// CHECK:               %[[U:.*]] = arith.addi %[[ROW]], %{{.*}}
// CHECK:               %[[V:.*]] = arith.addi %[[COLUMN]], %{{.*}}
// CHECK:               %[[Y:.*]] = arith.addi %[[U]], %c-1
// CHECK:               %[[Z:.*]] = arith.addi %[[V]], %c-1
// CHECK:               arith.cmpi ult, %[[Y]], %[[H]]
// CHECK:               arith.cmpi ult, %[[Z]], %[[W]]
// CHECK:               scf.if {{.*}} -> (f16)
// CHECK:                 memref.load %[[IMAGE]]
// CHECK:               memref.store %{{.*}}, %[[WINDOWS]]
// CHECK:             nvgpu.ldmatrix %[[FILTERS]]{{.*}} transpose = false
// CHECK:             nvgpu.ldmatrix %[[WINDOWS]]{{.*}} transpose = true
// CHECK:             nvgpu.mma.sync
// CHECK:           arith.maximumf
// CHECK:           memref.store
func.func @images(%x: !x, %w: tensor<32x8x3x3xf16>) -> !y {
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (!x, tensor<32x8x3x3xf16>) -> !y
  %1 = "graph.nn_relu"(%0) : (!y) -> !y
  return %1 : !y
}
