// RUN: relax-compile %s --emit=mlir-plan-memory | FileCheck %s

// Arithmetic on dims: concat adds them, reshape multiplies and divides them, a slice subtracts.

!a    = tensor<?x6xf32, #graph.shape<["n", 6]>>
!b    = tensor<?x6xf32, #graph.shape<["m", 6]>>
!ab   = tensor<?x6xf32, #graph.shape<["m + n", 6]>>
!flat = tensor<?xf32, #graph.shape<["6*m + 6*n"]>>
!t    = tensor<6x?xf32, #graph.shape<[6, "m + n"]>>
!tail = tensor<?x6xf32, #graph.shape<["n", 6]>>
#two_ins = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#one_out = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>

func.func @main(%a: !a {graph.name = "a"}, %b: !b {graph.name = "b"}) -> (!flat, !t, !tail) {
  %0 = "graph.concat"(%a, %b) {axis = 0 : i64, operandSegmentSizes = #two_ins, resultSegmentSizes = #one_out}
      : (!a, !b) -> !ab
  %1 = "graph.reshape"(%0) {shape = #graph.shape<["6*m + 6*n"]>} : (!ab) -> !flat
  %2 = "graph.permute_dims"(%0) {axes = array<i64: 1, 0>} : (!ab) -> !t
  %3 = "graph.exp"(%2) : (!t) -> !t
  %4 = "graph.strided_slice"(%0) {axes = array<i64: 0>, begin = #graph.shape<["m"]>,
      end = #graph.shape<["m + n"]>, strides = array<i64: 1>} : (!ab) -> !tail
  return %1, %3, %4 : !flat, !t, !tail
}

// The flat result is a view of the joined rows, and the slice is told where it begins.
// CHECK-LABEL: func.func @main
// CHECK-SAME:    %[[A:[a-z0-9]*]]: tensor<?x6xf32{{.*}} %[[B:[a-z0-9]*]]: tensor<?x6xf32
// CHECK:         %[[ROWS:.*]] = "graph.alloc_tensor"()
// CHECK-NEXT:    "graph.call_dps"(%[[A]], %[[B]], %[[ROWS]]) {callee = @concat
// CHECK-NEXT:    %[[FLAT:.*]] = "graph.view"(%[[ROWS]])
// CHECK:         "graph.call_dps"(%[[ROWS]], %[[TAIL:[a-z0-9]*]]) {callee = @strided_slice{{.*}}sym_args = #graph.shape<["m"]>
// CHECK-NEXT:    return %[[FLAT]], {{.*}}, %[[TAIL]]
