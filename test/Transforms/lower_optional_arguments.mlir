// RUN: relax-opt %s --split-input-file --relax-lower-optional-arguments | FileCheck %s
// RUN: relax-opt %s --split-input-file --relax-dead-code-elimination | FileCheck %s --check-prefix=AUTO

// The branch that reads the argument casts it; symbols are bound there.
// CHECK-LABEL: func.func @main
// CHECK-SAME:    (%[[X:.*]]: tensor<f32>, %[[W:.*]]: tensor<?x?xf32> {graph.name = "w", graph.optional}, %[[P:.*]]: i1 {graph.name = "w.present", graph.presence}, %[[Y:.*]]: index)
// CHECK-NEXT:    %[[R:.*]] = scf.if %[[P]] -> (tensor<f32>) {
// CHECK-NEXT:      %[[C:.*]] = "graph.match_cast"(%[[W]]) : (tensor<?x?xf32>) -> tensor<?x4xf32, #graph.shape<["m", 4]>>
// CHECK-NEXT:      %[[S:.*]] = "graph.sum"(%[[C]])
// CHECK-NEXT:      scf.yield %[[S]] : tensor<f32>
// CHECK:         return %[[R]] : tensor<f32>
// AUTO-LABEL:  func.func @main
// AUTO-NEXT:     scf.if
!w = tensor<?x4xf32, #graph.shape<["m", 4]>>
func.func @main(%x: tensor<f32>, %w: !w {graph.optional, graph.name = "w"}, %y: index) -> tensor<f32> {
  %p = "graph.is_present"(%w) : (!w) -> i1
  %0 = scf.if %p -> tensor<f32> {
    %1 = "graph.sum"(%w) {axes = array<i64: 0, 1>, keepdims = false} : (!w) -> tensor<f32>
    scf.yield %1 : tensor<f32>
  } else {
    scf.yield %x : tensor<f32>
  }
  return %0 : tensor<f32>
}

// -----

// Leaves of the tree of what users pass move up; a question without a branch is the argument.
// CHECK-LABEL: func.func @tree
// CHECK-SAME:    (%{{.*}}: tensor<f32> {graph.optional}, %[[P:.*]]: i1 {{.*}}, %{{.*}}: i1, %{{.*}}: index)
// CHECK-SAME:    graph.argument_tree = [0, 1, [2, 3]]
// CHECK-NEXT:    return %[[P]] : i1
// AUTO-LABEL:  func.func @tree
func.func @tree(%x: tensor<f32> {graph.optional}, %a: i1, %b: index) -> i1
    attributes {graph.argument_tree = [0, [1, 2]], graph.result_tree = [0]} {
  %p = "graph.is_present"(%x) : (tensor<f32>) -> i1
  return %p : i1
}
