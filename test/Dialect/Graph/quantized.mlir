// RUN: relax-opt %s --relax-infer-shapes --relax-verify --pretty | FileCheck %s

#two = array<i32: 1, 1, 0, 0, 0, 0>

// CHECK-LABEL: func @known(
// CHECK-NEXT:    %0, %1 = graph.quantize(%arg0) {{.*}} : tensor<3 x 2 x 2 x 4 x 16 x 4 x i8>, tensor<3 x 2 x 16 x f16>
// CHECK-NEXT:    %2 = graph.dequantize(%0, %1) {{.*}} : tensor<48 x 64 x f32>
// CHECK-NEXT:    %3 = graph.dequantize_rows(%arg1, %0, %1) {{.*}} : tensor<3 x 64 x f32>
func.func @known(%w: tensor<33x64xf32>, %i: tensor<3xi64>) {
  %d, %s = "graph.quantize"(%w) {scheme = "q8_0", axis = 1 : i64} : (tensor<33x64xf32>) -> (tensor<*xi8>, tensor<*xf16>)
  %0 = "graph.dequantize"(%d, %s) {scheme = "q8_0", operandSegmentSizes = #two} : (tensor<*xi8>, tensor<*xf16>) -> tensor<*xf32>
  %1 = "graph.dequantize_rows"(%i, %d, %s) {scheme = "q8_0", operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0>} : (tensor<3xi64>, tensor<*xi8>, tensor<*xf16>) -> tensor<*xf32>
  return
}

// Panels of n rows are counted; of unknown rows nothing is known.
// CHECK-LABEL: func @symbolic(
// CHECK-NEXT:    %0, %1 = graph.quantize(%arg0) {{.*}} : tensor<(n + 15) floordiv 16 x 2 x 2 x 4 x 16 x 4 x i8>, tensor<(n + 15) floordiv 16 x 2 x 16 x f16>
// CHECK-NEXT:    %2 = graph.dequantize(%0, %1) {{.*}} : tensor<16*((n + 15) floordiv 16) x 64 x f32>
func.func @symbolic(%w: tensor<?x64xf32, #graph.shape<["n", 64]>>) {
  %d, %s = "graph.quantize"(%w) {scheme = "q8_0", axis = 1 : i64} : (tensor<?x64xf32, #graph.shape<["n", 64]>>) -> (tensor<*xi8>, tensor<*xf16>)
  %0 = "graph.dequantize"(%d, %s) {scheme = "q8_0", operandSegmentSizes = #two} : (tensor<*xi8>, tensor<*xf16>) -> tensor<*xf32>
  return
}

// CHECK-LABEL: func @unknown(
// CHECK-NEXT:    %0, %1 = graph.quantize(%arg0) {{.*}} : tensor<? x 2 x 2 x 4 x 16 x 4 x i8>, tensor<? x 2 x 16 x f16>
// CHECK-NEXT:    %2 = graph.dequantize(%0, %1) {{.*}} : tensor<? x 64 x f32>
func.func @unknown(%w: tensor<?x64xf32, #graph.shape<["?", 64]>>) {
  %d, %s = "graph.quantize"(%w) {scheme = "q8_0", axis = 1 : i64} : (tensor<?x64xf32, #graph.shape<["?", 64]>>) -> (tensor<*xi8>, tensor<*xf16>)
  %0 = "graph.dequantize"(%d, %s) {scheme = "q8_0", operandSegmentSizes = #two} : (tensor<*xi8>, tensor<*xf16>) -> tensor<*xf32>
  return
}
