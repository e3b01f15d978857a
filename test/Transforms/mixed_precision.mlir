// RUN: relax-opt %s --relax-mixed-precision --pretty | FileCheck %s
// RUN: relax-opt %s --relax-mixed-precision='dtype=f16' --pretty | FileCheck %s --check-prefix=HALF

!x = tensor<?x8xf32, #graph.shape<["n", 8]>>
!w = tensor<8x8xf32>

// What follows a product keeps its precision, with parameters and constants; exponentials do not,
// and what is returned has the type that the signature says.
// CHECK-LABEL: func @follows(%arg0: tensor<n x 8 x f32>, %arg1: tensor<8 x 8 x f32>, %arg2: tensor<8 x f32>) -> tensor<n x 8 x f32>, tensor<n x 8 x f32>
// CHECK-DAG:     %[[X:.*]] = graph.astype(%arg0)
// CHECK-DAG:     %[[W:.*]] = graph.astype(%arg1)
// CHECK:         %[[P:.*]] = graph.matmul(%[[X]], %[[W]]) : tensor<n x 8 x bf16>
// CHECK:         %[[B:.*]] = graph.astype(%arg2) {{.*}} : tensor<8 x bf16>
// CHECK-NEXT:    %[[S:.*]] = graph.add(%[[P]], %[[B]]) : tensor<n x 8 x bf16>
// CHECK-NEXT:    %[[R:.*]] = graph.nn_relu(%[[S]]) : tensor<n x 8 x bf16>
// CHECK-NEXT:    %[[F:.*]] = graph.astype(%[[R]]) {{.*}} : tensor<n x 8 x f32>
// CHECK-NEXT:    %[[E:.*]] = graph.exp(%[[F]]) : tensor<n x 8 x f32>
// CHECK-NEXT:    %[[Q:.*]] = graph.matmul(%[[R]], %[[W]]) : tensor<n x 8 x bf16>
// CHECK-NEXT:    %[[T:.*]] = graph.astype(%[[Q]]) {{.*}} : tensor<n x 8 x f32>
// CHECK-NEXT:    return %[[E]], %[[T]]
// HALF-LABEL: func @follows(
// HALF:         graph.nn_relu({{.*}}) : tensor<n x 8 x f16>
func.func @follows(%x: !x, %w: !w, %b: tensor<8xf32>) -> (!x, !x) attributes {graph.num_inputs = 1 : i64} {
  %0 = "graph.matmul"(%x, %w) : (!x, !w) -> !x
  %1 = "graph.add"(%0, %b) : (!x, tensor<8xf32>) -> !x
  %2 = "graph.nn_relu"(%1) : (!x) -> !x
  %3 = "graph.exp"(%2) : (!x) -> !x
  %4 = "graph.matmul"(%2, %w) : (!x, !w) -> !x
  return %3, %4 : !x, !x
}

// A sum with an input, an op that follows no product, and one with a number too small for f16.
// CHECK-LABEL: func @negative_inputs(
// CHECK-NEXT:    graph.add(%arg0, %arg0) : tensor<n x 8 x f32>
// CHECK:         graph.multiply({{.*}}) : tensor<n x 8 x bf16>
// CHECK:         graph.add({{.*}}, %arg0) : tensor<n x 8 x f32>
// HALF-LABEL: func @negative_inputs(
// HALF:         graph.multiply({{.*}}) : tensor<n x 8 x f32>
func.func @negative_inputs(%x: !x, %w: !w) -> (!x, !x) {
  %0 = "graph.add"(%x, %x) : (!x, !x) -> !x
  %1 = "graph.matmul"(%0, %w) : (!x, !w) -> !x
  %small = arith.constant dense<1.0e-6> : tensor<f32>
  %2 = "graph.multiply"(%1, %small) : (!x, tensor<f32>) -> !x
  %3 = "graph.add"(%1, %x) : (!x, !x) -> !x
  return %2, %3 : !x, !x
}

// What a branch converts is there in the branch only. Other types stay.
// CHECK-LABEL: func @branches(
// CHECK:         scf.if
// CHECK:           graph.astype(%arg1) {{.*}} : tensor<n x 8 x bf16>
// CHECK:           graph.matmul
// CHECK:         } {
// CHECK:           graph.astype(%arg1) {{.*}} : tensor<n x 8 x bf16>
// CHECK:           graph.matmul
// CHECK:         graph.matmul({{.*}}) : tensor<2 x 2 x f64>
func.func @branches(%c: i1, %x: !x, %w: !w, %d: tensor<2x2xf64>) -> (!x, tensor<2x2xf64>) {
  %0 = scf.if %c -> !x {
    %1 = "graph.matmul"(%x, %w) : (!x, !w) -> !x
    scf.yield %1 : !x
  } else {
    %1 = "graph.matmul"(%x, %w) : (!x, !w) -> !x
    %2 = "graph.negative"(%1) : (!x) -> !x
    scf.yield %2 : !x
  }
  %3 = "graph.matmul"(%d, %d) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
  return %0, %3 : !x, tensor<2x2xf64>
}
