// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-infer-shapes --pretty | FileCheck %s

// The dims of @symbolic are (n, 2, 2) -> (n, 4) -> (4*n): each says how it follows from the
// argument's, so memory can be planned and equal dims are known to be equal (paper Figure 3).

func.func @symbolic(%x: tensor<?x2x2xf32, #graph.shape<["n", 2, 2]>>) -> tensor<?xf32> {
  %0 = "graph.reshape"(%x) {shape = #graph.shape<["n", 4]>} : (tensor<?x2x2xf32, #graph.shape<["n", 2, 2]>>) -> tensor<?x4xf32>
  %1 = "graph.reshape"(%0) {shape = #graph.shape<["4*n"]>} : (tensor<?x4xf32>) -> tensor<?xf32>
  %2 = "graph.add"(%1, %1) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %2 : tensor<?xf32>
}
// CHECK-LABEL: func @symbolic(%arg0: tensor<n x 2 x 2 x f32>)
// CHECK-NEXT:    %0 = graph.reshape(%arg0) {{.*}} : tensor<n x 4 x f32>
// CHECK-NEXT:    %1 = graph.reshape(%0) {{.*}} : tensor<4*n x f32>
// CHECK-NEXT:    %2 = graph.add(%1, %1) : tensor<4*n x f32>

// -----

// Without symbols nothing relates one unknown dim to another: (?, 2, 2) -> (?).
func.func @unknown(%x: tensor<?x2x2xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %0 = "graph.exp"(%x) : (tensor<?x2x2xf32>) -> tensor<?x2x2xf32>
  %1 = "graph.add"(%y, %y) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %1 : tensor<?xf32>
}
// CHECK-LABEL: func @unknown(%arg0: tensor<? x 2 x 2 x f32>, %arg1: tensor<? x f32>)
// CHECK-NEXT:    %0 = graph.exp(%arg0) : tensor<? x 2 x 2 x f32>
// CHECK-NEXT:    %1 = graph.add(%arg1, %arg1) : tensor<? x f32>

// -----

// A cast gives the unknown dims names, checked at run time; from there on they are known.
func.func @match_cast(%x: tensor<?x2x2xf32>) -> tensor<?xf32> {
  %0 = "graph.match_cast"(%x) : (tensor<?x2x2xf32>) -> tensor<?x2x2xf32, #graph.shape<["k", 2, 2]>>
  %1 = "graph.reshape"(%0) {shape = #graph.shape<["4*k"]>} : (tensor<?x2x2xf32, #graph.shape<["k", 2, 2]>>) -> tensor<?xf32>
  return %1 : tensor<?xf32>
}
// CHECK-LABEL: func @match_cast(%arg0: tensor<? x 2 x 2 x f32>)
// CHECK-NEXT:    %0 = graph.match_cast(%arg0) : tensor<k x 2 x 2 x f32>
// CHECK-NEXT:    %1 = graph.reshape(%0) {{.*}} : tensor<4*k x f32>

// -----

// A shape that cannot hold the elements is an error, for every n.
func.func @wrong(%x: tensor<?x2x2xf32, #graph.shape<["n", 2, 2]>>) -> tensor<?xf32> {
  // expected-error @below {{'graph.reshape' op has 4*n elements, which 'tensor<4*n + 1 x f32>' cannot hold}}
  %0 = "graph.reshape"(%x) {shape = #graph.shape<["4*n + 1"]>} : (tensor<?x2x2xf32, #graph.shape<["n", 2, 2]>>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
