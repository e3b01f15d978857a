// RUN: relax-opt %s --pass-pipeline='relax-quantize{scheme=q4_32 skip=kept min-size=16}' 2>/dev/null | FileCheck %s
// RUN: relax-opt %s --pass-pipeline='relax-quantize{scheme=q8_32 activations=int8 skip=kept}' 2>/dev/null | FileCheck %s --check-prefix=INT8
// RUN: relax-opt %s --pass-pipeline='relax-quantize{scheme=q8_32 only=table},relax-quantize{scheme=q4_32_minimum only=second min-size=16}' 2>/dev/null | FileCheck %s --check-prefix=TWICE
// RUN: relax-opt %s --pass-pipeline='relax-quantize{scheme=q4_32},relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,symbol-dce,relax-schedule{target=x86-64-v4}' 2>/dev/null | FileCheck %s --check-prefix=FUSED

!x = tensor<?x64xf32, #graph.shape<["n", 64]>>
!h = tensor<?x40xf32, #graph.shape<["n", 40]>>
!i = tensor<?xi32, #graph.shape<["n"]>>

// Blocks lie along what is summed over: here dim 0. Of the last panel 8 rows are padding, cut off.
// CHECK-LABEL: func.func @product_quantize
// CHECK-SAME:    (%[[W:[a-z0-9]*]]: tensor<64x40xf32> {graph.name = "w"}, %[[B:[a-z0-9]*]]: tensor<40xf32> {graph.name = "b"})
// CHECK-SAME:    -> (tensor<3x2x4x16x4xi8>, tensor<3x2x16xf16>, tensor<40xf32>)
// CHECK-NEXT:    %[[P:.*]]:2 = "graph.quantize"(%[[W]])
// CHECK-SAME:      axis = 0 : i64
// CHECK-SAME:      scheme = "q4_0"
// CHECK-NEXT:    return %[[P]]#0, %[[P]]#1, %[[B]]
// CHECK-LABEL: func.func @product(
// CHECK-SAME:    %[[X:[a-z0-9]*]]: tensor<?x64xf32, #graph.shape<["n", 64]>> {graph.name = "x"}
// CHECK-SAME:    %[[D:[a-z0-9]*]]: tensor<3x2x4x16x4xi8> {graph.name = "w.data"}, %[[S:[a-z0-9]*]]: tensor<3x2x16xf16> {graph.name = "w.scale"}, %[[B:[a-z0-9]*]]: tensor<40xf32> {graph.name = "b"})
// CHECK-SAME:    graph.num_inputs = 1
// CHECK-NEXT:    %[[M:.*]] = "graph.dequantize"(%[[D]], %[[S]]) {{.*}}scheme = "q4_0"
// CHECK-NEXT:    %[[T:.*]] = "graph.permute_dims"(%[[M]])
// CHECK-NEXT:    %[[P:.*]] = "graph.matmul"(%[[X]], %[[T]])
// CHECK-NEXT:    %[[Y:.*]] = "graph.strided_slice"(%[[P]])
// CHECK-NEXT:    "graph.add"(%[[Y]], %[[B]])

// What is multiplied is rounded too.
// INT8-LABEL: func.func @product(
// INT8-SAME:    %[[X:[a-z0-9]*]]: tensor<?x64xf32
// INT8-NEXT:    %[[Q:.*]]:3 = "graph.quantize_blocks"(%[[X]]) {{.*}}symmetric = false
// INT8-NEXT:    %[[L:.*]] = "graph.dequantize_blocks"(%[[Q]]#0, %[[Q]]#1, %[[Q]]#2)
// INT8-NEXT:    "graph.dequantize"
// INT8:         "graph.matmul"(%[[L]],

// Two schemes, one function that makes all parameters.
// TWICE-LABEL: func.func @product(
// TWICE-NEXT:    "graph.matmul"
// TWICE-LABEL: func.func @tied_quantize(
// TWICE-NEXT:    %{{.*}}:2 = "graph.quantize"(%{{.*}}) {{.*}}scheme = "q8_0"
// TWICE-NEXT:    %{{.*}}:3 = "graph.quantize"(%{{.*}}) {{.*}}scheme = "q4_1"
// TWICE-NEXT:    return
// TWICE-LABEL: func.func @tied(
// TWICE-SAME:    {graph.name = "second.kept.minimum"}

// One kernel decodes, multiplies and adds: the schedule recognises it, and no f32 matrix is left.
// FUSED-LABEL: func.func private @fused_dequantize_permute_dims_matmul
// FUSED-SAME:    tir.schedule = "quantized_matmul"
func.func @product(%x: !x {graph.name = "x"}, %w: tensor<64x40xf32> {graph.name = "w"}, %b: tensor<40xf32> {graph.name = "b"}) -> !h
    attributes {graph.num_inputs = 1 : i64} {
  %0 = "graph.matmul"(%x, %w) : (!x, tensor<64x40xf32>) -> !h
  %1 = "graph.add"(%0, %b) : (!h, tensor<40xf32>) -> !h
  return %1 : !h
}

// A table that is read by rows and multiplied is there once.
// CHECK-LABEL: func.func @tied_quantize(
// CHECK:         %[[P:.*]]:2 = "graph.quantize"(%{{.*}}) {axis = 1 : i64
// CHECK-LABEL: func.func @tied(
// CHECK-SAME:    %[[D:[a-z0-9]*]]: tensor<4x2x4x16x4xi8> {graph.name = "table.data"}, %[[S:[a-z0-9]*]]: tensor<4x2x16xf16> {graph.name = "table.scale"}
// CHECK-NEXT:    %[[ROWS:.*]] = "graph.dequantize_rows"(%{{.*}}, %[[D]], %[[S]])
// CHECK-NEXT:    %[[H:.*]] = "graph.matmul"(%[[ROWS]]
// CHECK-NEXT:    %[[M:.*]] = "graph.dequantize"(%[[D]], %[[S]])
// CHECK-NEXT:    %[[T:.*]] = "graph.permute_dims"(%[[M]])
// CHECK-NEXT:    "graph.matmul"(%[[H]], %[[T]])
func.func @tied(%i: !i {graph.name = "i"}, %w: tensor<64x64xf32> {graph.name = "table"}, %v: tensor<64x64xf32> {graph.name = "second.kept"}) -> !x
    attributes {graph.num_inputs = 1 : i64} {
  %t = "graph.permute_dims"(%w) {axes = array<i64: 1, 0>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %0 = "graph.take"(%w, %i) {axis = 0 : i64} : (tensor<64x64xf32>, !i) -> !x
  %1 = "graph.matmul"(%0, %v) : (!x, tensor<64x64xf32>) -> !x
  %2 = "graph.matmul"(%1, %t) : (!x, tensor<64x64xf32>) -> !x
  return %2 : !x
}

// Constants are rounded at once.
// CHECK-LABEL: func.func @constant(
// CHECK-DAG:     %[[D:.*]] = arith.constant dense<{{.*}}> : tensor<1x1x4x16x4xi8>
// CHECK-DAG:     %[[S:.*]] = arith.constant dense<{{.*}}> : tensor<1x1x16xf16>
// CHECK-NOT:     tensor<2x32xf32>
// CHECK:         "graph.dequantize"(%[[D]], %[[S]])
// CHECK:         return
func.func @constant(%x: tensor<?x32xf32, #graph.shape<["n", 32]>>) -> tensor<?x2xf32, #graph.shape<["n", 2]>> {
  %w = arith.constant dense<[[1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0],
    [2.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0]]> : tensor<2x32xf32>
  %t = "graph.permute_dims"(%w) {axes = array<i64: 1, 0>} : (tensor<2x32xf32>) -> tensor<32x2xf32>
  %0 = "graph.matmul"(%x, %t) : (tensor<?x32xf32, #graph.shape<["n", 32]>>, tensor<32x2xf32>) -> tensor<?x2xf32, #graph.shape<["n", 2]>>
  return %0 : tensor<?x2xf32, #graph.shape<["n", 2]>>
}
