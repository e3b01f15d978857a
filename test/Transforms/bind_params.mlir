// Arguments with a value become constants, and their symbols what the values say.
// RUN: relax-opt --relax-bind-params %s | FileCheck %s

!x = tensor<?x?xf32, #graph.shape<["n", "k"]>>
!w = tensor<?x2xf32, #graph.shape<["k", 2]>>
!y = tensor<?x2xf32, #graph.shape<["n", 2]>>

// CHECK-LABEL: func.func @symbols(
// CHECK-SAME:    %[[X:[a-z0-9]*]]: tensor<?x3xf32, #graph.shape<["n", 3]>> {graph.name = "x"},
// CHECK-SAME:    %[[B:[a-z0-9]*]]: tensor<2xf32> {graph.name = "b"}
// CHECK-SAME:    graph.facts = ["n <= 9"], graph.num_inputs = 1
// CHECK-NEXT:    %[[W:.*]] = arith.constant dense<{{.*}}> : tensor<3x2xf32>
// CHECK-NEXT:    %[[M:.*]] = "graph.matmul"(%[[X]], %[[W]])
// CHECK-NEXT:    "graph.add"(%[[M]], %[[B]])
func.func @symbols(%x: !x {graph.name = "x"}, %w: !w {graph.name = "w", graph.value = dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>},
    %b: tensor<2xf32> {graph.name = "b"})
    -> !y attributes {graph.num_inputs = 1 : i64, graph.facts = ["k <= 8", "n <= 3*k"]} {
  %0 = "graph.matmul"(%x, %w) : (!x, !w) -> !y
  %1 = "graph.add"(%0, %b) : (!y, tensor<2xf32>) -> !y
  return %1 : !y
}

// The results' dims follow; a dim that nothing says stays open for its readers.
// CHECK-LABEL: func.func @results(
// CHECK-SAME:    ) -> (tensor<2x4xi32>, tensor<?xf16>) attributes {graph.num_inputs = 0
// CHECK-DAG:     %[[C:.*]] = arith.constant dense<1> : tensor<4xi32>
// CHECK-DAG:     %[[H:.*]] = arith.constant dense<2.000000e+00> : tensor<300xf16>
// CHECK:         %[[O:.*]] = "graph.match_cast"(%[[H]]) : (tensor<300xf16>) -> tensor<?xf16>
// CHECK:         %[[R:.*]] = "graph.broadcast_to"(%[[C]]) {shape = #graph.shape<[2, 4]>}
// CHECK-NEXT:    return %[[R]], %[[O]]
!m = tensor<?xi32, #graph.shape<["m"]>>
!mm = tensor<2x?xi32, #graph.shape<[2, "m"]>>
func.func @results(%a: !m {graph.value = dense<1> : tensor<4xi32>}, %b: tensor<?xf16> {graph.value = dense<2.0> : tensor<300xf16>})
    -> (!mm, tensor<?xf16>) attributes {graph.num_inputs = 1 : i64} {
  %0 = "graph.broadcast_to"(%a) {shape = #graph.shape<[2, "m"]>} : (!m) -> !mm
  return %0, %b : !mm, tensor<?xf16>
}

// CHECK-LABEL: func.func @negative(
// CHECK-SAME:    %{{[a-z0-9]*}}: tensor<2xf32> {graph.name = "w"})
// CHECK-NEXT:    return
func.func @negative(%w: tensor<2xf32> {graph.name = "w"}) -> tensor<2xf32> {
  return %w : tensor<2xf32>
}
