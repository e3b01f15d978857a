// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-lower-calls' | FileCheck %s

// CHECK-LABEL: func.func @fresh_output
// CHECK-SAME:    %[[X:.*]]: tensor<?xf32, #graph.shape<["n"]>>)
func.func @fresh_output(%x: tensor<?xf32, #graph.shape<["n"]>>) -> tensor<?xf32, #graph.shape<["n"]>> {
  // CHECK:      %[[OUT:.*]] = "graph.alloc_tensor"() {{.*}} tensor<?xf32, #graph.shape<["n"]>>
  // CHECK-NEXT: "graph.call_dps"(%[[X]], %[[OUT]]) {callee = @exp, num_outs = 1 : i64
  // CHECK-NEXT: return %[[OUT]]
  %0 = "graph.exp"(%x) : (tensor<?xf32, #graph.shape<["n"]>>) -> tensor<?xf32, #graph.shape<["n"]>>
  return %0 : tensor<?xf32, #graph.shape<["n"]>>
}

// A kernel that only reshapes costs nothing.
// CHECK-LABEL: func.func @reshape_is_view
// CHECK-SAME:    %[[X:.*]]: tensor<?x16xf32
func.func @reshape_is_view(%x: tensor<?x16xf32, #graph.shape<["n", 16]>>) -> tensor<?xf32, #graph.shape<["16*n"]>> {
  // CHECK-NEXT: %[[VIEW:.*]] = "graph.view"(%[[X]])
  // CHECK-NEXT: return %[[VIEW]]
  %0 = "graph.reshape"(%x) {shape = #graph.shape<["16*n"]>} : (tensor<?x16xf32, #graph.shape<["n", 16]>>) -> tensor<?xf32, #graph.shape<["16*n"]>>
  return %0 : tensor<?xf32, #graph.shape<["16*n"]>>
}

// The caches are destinations, and the position is passed as an index.
// CHECK-LABEL: func.func @inplace
// CHECK-SAME:    (%[[K:[a-z0-9]*]]: tensor<2x?x4xf32, #graph.shape<[2, "c", 4]>> {graph.inout = 0 : i64}, %[[V:[a-z0-9]*]]: tensor<2x?x4xf32, #graph.shape<[2, "c", 4]>> {graph.inout = 1 : i64}, %[[NEW:[a-z0-9]*]]: tensor<?x2x4xf32, #graph.shape<["n", 2, 4]>>
func.func @inplace(%k: tensor<2x?x4xf32, #graph.shape<[2, "c", 4]>> {graph.inout = 0 : i64}, %v: tensor<2x?x4xf32, #graph.shape<[2, "c", 4]>> {graph.inout = 1 : i64}, %new: tensor<?x2x4xf32, #graph.shape<["n", 2, 4]>>, %m: !graph.shape_value<["m"]>)
    -> (tensor<2x?x4xf32, #graph.shape<[2, "c", 4]>>, tensor<2x?x4xf32, #graph.shape<[2, "c", 4]>>) {
  // CHECK-NOT:  graph.alloc_tensor
  // CHECK:      "graph.call_dps"(%[[NEW]], %[[NEW]], %[[K]], %[[V]])
  // CHECK-SAME:   num_outs = 2
  // CHECK-SAME:   sym_args = #graph.shape<["m"]>
  // CHECK-NEXT: return %[[K]], %[[V]]
  %0:2 = "graph.nn_kv_append"(%k, %v, %new, %new) {position = #graph.shape<["m"]>} : (tensor<2x?x4xf32, #graph.shape<[2, "c", 4]>>, tensor<2x?x4xf32, #graph.shape<[2, "c", 4]>>, tensor<?x2x4xf32, #graph.shape<["n", 2, 4]>>, tensor<?x2x4xf32, #graph.shape<["n", 2, 4]>>) -> (tensor<2x?x4xf32, #graph.shape<[2, "c", 4]>>, tensor<2x?x4xf32, #graph.shape<[2, "c", 4]>>)
  return %0#0, %0#1 : tensor<2x?x4xf32, #graph.shape<[2, "c", 4]>>, tensor<2x?x4xf32, #graph.shape<[2, "c", 4]>>
}

// CHECK-LABEL: func.func @dataflow_is_dissolved
func.func @dataflow_is_dissolved(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NOT: scf.execute_region
  // CHECK:     "graph.call_dps"
  %0 = scf.execute_region -> tensor<4xf32> no_inline {
    %1 = "graph.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  } {graph.dataflow}
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @negative_no_calls
func.func @negative_no_calls(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: return
  return %x : tensor<4xf32>
}

// A graph function fills its results too; what it updates is a destination as it stands.
// CHECK-LABEL: func.func @caller
// CHECK-SAME:    (%[[X:[a-z0-9]*]]: tensor<4xf32>, %[[C:[a-z0-9]*]]: tensor<4xf32>
func.func @caller(%x: tensor<4xf32>, %c: tensor<4xf32> {graph.inout = 1 : i64}) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: %[[Y:.*]] = "graph.alloc_tensor"()
  // CHECK-NEXT: "graph.call_dps"(%[[X]], %[[C]], %[[Y]])
  // CHECK-SAME:   callee = @callee, num_outs = 2
  // CHECK-NEXT: return %[[Y]], %[[C]]
  %0:2 = "graph.call"(%c, %x) {callee = @callee, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %0#1, %0#0 : tensor<4xf32>, tensor<4xf32>
}
func.func private @callee(%c: tensor<4xf32> {graph.inout = 0 : i64}, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  return %c, %x : tensor<4xf32>, tensor<4xf32>
}
