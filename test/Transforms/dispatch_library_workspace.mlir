// RUN: relax-opt %s --pass-pipeline='relax-dispatch-library{libraries=openblas_conv},relax-verify' --pretty | FileCheck %s
// RUN: relax-opt %s --pass-pipeline="relax-dispatch-library{libraries=openblas_conv when='n >= 2'},relax-lift-workspace" --pretty | FileCheck %s --check-prefix=WHEN

!x = tensor<?x3x?x9xf32, #graph.shape<["n", 3, "h", 9]>>
!y = tensor<?x4x?x4xf32, #graph.shape<["n", 4, "h", 4]>>

// A function that needs memory says how much: what the windows of one image see.
// CHECK: lib.function @openblas.conv2d() {{.*}}convention="im2col_sgemm"
// CHECK-LABEL: func @convolution(
// CHECK-NEXT:    graph.call_dps_library @openblas.conv2d(%arg0, %arg1; 1, 2, 1, 0, 1, 0, 1, 1) {graph.workspace=#graph.shape<["432*h"]>} : tensor<n x 4 x h x 4 x f32>
// Where the call decides, the workspace is needed in one branch.
// WHEN-LABEL: func @convolution(
// WHEN:         scf.if
// WHEN-NEXT:      graph.call_dps_library @openblas.conv2d{{.*}}tensor<432*h x ui8>
// WHEN-NEXT:      scf.yield
// WHEN-NEXT:    } {
// WHEN-NEXT:      graph.nn_conv2d
func.func @convolution(%x: !x, %f: tensor<4x3x3x3xf32>) -> !y {
  %0 = "graph.nn_conv2d"(%x, %f) {strides = array<i64: 1, 2>, padding = array<i64: 1, 0, 1, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (!x, tensor<4x3x3x3xf32>) -> !y
  return %0 : !y
}

// CHECK-LABEL: func @negative_groups(
// CHECK-NEXT:    graph.nn_conv2d
func.func @negative_groups(%x: !x, %f: tensor<3x1x3x3xf32>) -> tensor<?x3x?x4xf32, #graph.shape<["n", 3, "h", 4]>> {
  %0 = "graph.nn_conv2d"(%x, %f) {strides = array<i64: 1, 2>, padding = array<i64: 1, 0, 1, 0>, dilation = array<i64: 1, 1>, groups = 3 : i64} : (!x, tensor<3x1x3x3xf32>) -> tensor<?x3x?x4xf32, #graph.shape<["n", 3, "h", 4]>>
  return %0 : tensor<?x3x?x4xf32, #graph.shape<["n", 3, "h", 4]>>
}
