// RUN: relax-opt %s --split-input-file --relax-bind-symbols='symbols=batch=1,k=2,m=3' --pretty | FileCheck %s

// CHECK-LABEL: func @arithmetic(%arg0: tensor<1 x 2 x f32>, %arg1: tensor<3 x n x f32>, %arg2: tensor<1 x 6 x f32>, %arg3: tensor<f32>, %arg4: tensor<2 x f32>) -> tensor<n + 3 x f32>
// CHECK-NEXT:    %0 = graph.full({{.*}}) {shape=#graph.shape<["n + 3"]>} : tensor<n + 3 x f32>
// CHECK-NEXT:    return %0
func.func @arithmetic(
    %x: tensor<?x?xf32, #graph.shape<["batch", "m - 1"]>>, %y: tensor<?x?xf32, #graph.shape<["m", "n"]>>,
    %z: tensor<?x?xf32, #graph.shape<["batch", "k*m"]>>, %v: tensor<f32>,
    %w: tensor<?xf32, #graph.shape<["k"]>>)
    -> tensor<?xf32, #graph.shape<["m + n"]>> {
  %0 = "graph.full"(%v) {shape = #graph.shape<["m + n"]>} : (tensor<f32>) -> tensor<?xf32, #graph.shape<["m + n"]>>
  return %0 : tensor<?xf32, #graph.shape<["m + n"]>>
}

// -----

#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>

// Facts that follow go, others are about what is left; the m of a private function is its own, and
// what its call returns becomes finer.
// CHECK-LABEL: func @calls(
// CHECK-SAME:    %arg0: tensor<2 x 3 x f32>
// CHECK-SAME:    facts 3 <= n {
// CHECK-NEXT:    %0 = graph.call @f(%arg0) : tensor<6 x f32>
// CHECK-LABEL: func private @f(%arg0: tensor<m x n x f32>)
func.func @calls(%x: tensor<?x?xf32, #graph.shape<["k", "m"]>>, %y: tensor<?xf32, #graph.shape<["n"]>>, %z: tensor<?xf32, #graph.shape<["batch"]>>)
    -> tensor<?xf32> attributes {graph.facts = ["m mod 3 == 0", "m <= n"]} {
  %0 = "graph.call"(%x) {callee = @f, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<?x?xf32, #graph.shape<["k", "m"]>>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func private @f(%x: tensor<?x?xf32, #graph.shape<["m", "n"]>>) -> tensor<?xf32, #graph.shape<["m*n"]>> {
  %0 = "graph.reshape"(%x) {shape = #graph.shape<["m*n"]>} : (tensor<?x?xf32, #graph.shape<["m", "n"]>>) -> tensor<?xf32, #graph.shape<["m*n"]>>
  return %0 : tensor<?xf32, #graph.shape<["m*n"]>>
}
