// RUN: relax-opt %s --relax-legalize-ops | FileCheck %s

!x = tensor<?x8xf32, #graph.shape<["n", 8]>>
!y = tensor<?x4xf32, #graph.shape<["n", 4]>>

// A program is private, takes inputs, then outputs, and works on plain tensors inside.
// CHECK-LABEL: func.func @matmul_symbolic
// CHECK-SAME:    %[[X:.*]]: tensor<?x8xf32, #graph.shape<["n", 8]>>, %[[W:.*]]: tensor<8x4xf32>)
func.func @matmul_symbolic(%x: !x, %w: tensor<8x4xf32>) -> !y {
  // CHECK-NEXT: %[[Y:.*]] = "graph.call_tir"(%[[X]], %[[W]]) {callee = @matmul
  // CHECK-SAME:   sym_args = #graph.shape<[]>
  // CHECK-SAME:   -> tensor<?x4xf32, #graph.shape<["n", 4]>>
  // CHECK-NEXT: return %[[Y]]
  %0 = "graph.matmul"(%x, %w) : (!x, tensor<8x4xf32>) -> !y
  return %0 : !y
}

// Equal programs are built once, whatever function uses them; others get a name of their own.
// CHECK-LABEL: func.func @sharing
func.func @sharing(%x: !x, %w: tensor<8x4xf32>, %v: tensor<8x5xf32>) {
  // CHECK: callee = @matmul,
  // CHECK: callee = @matmul_1,
  // CHECK: callee = @exp,
  // CHECK: callee = @exp,
  %0 = "graph.matmul"(%x, %w) : (!x, tensor<8x4xf32>) -> !y
  %1 = "graph.matmul"(%x, %v) : (!x, tensor<8x5xf32>) -> tensor<?x5xf32, #graph.shape<["n", 5]>>
  %2 = "graph.exp"(%0) : (!y) -> !y
  %3 = "graph.exp"(%2) : (!y) -> !y
  return
}

// CHECK-LABEL: func.func @broadcast_symbolic
func.func @broadcast_symbolic(%x: tensor<?x1xf32, #graph.shape<["n", 1]>>, %y: tensor<?xf32, #graph.shape<["m"]>>) -> tensor<?x?xf32, #graph.shape<["n", "m"]>> {
  // CHECK: callee = @add,
  %0 = "graph.add"(%x, %y) : (tensor<?x1xf32, #graph.shape<["n", 1]>>, tensor<?xf32, #graph.shape<["m"]>>) -> tensor<?x?xf32, #graph.shape<["n", "m"]>>
  return %0 : tensor<?x?xf32, #graph.shape<["n", "m"]>>
}

// An operand whose dim may be 1 at run time is read at its last element from there on; others are
// read as they lie.
// CHECK-LABEL: func.func @broadcast_at_run_time
func.func @broadcast_at_run_time(%x: !x, %y: tensor<?xf32, #graph.shape<["m"]>>, %z: tensor<?xf32, #graph.shape<["k"]>>) {
  // CHECK: callee = @add_1,
  %0 = "graph.add"(%y, %z) : (tensor<?xf32, #graph.shape<["m"]>>, tensor<?xf32, #graph.shape<["k"]>>) -> tensor<?xf32, #graph.shape<["max(k, m)*min(k, m, 1)"]>>
  // CHECK: callee = @add_2,
  %1 = "graph.add"(%y, %z) : (tensor<?xf32, #graph.shape<["m"]>>, tensor<?xf32, #graph.shape<["k"]>>) -> tensor<?xf32, #graph.shape<["m"]>>
  return
}

// What no tensor argument has as a dim is an index argument.
// CHECK-LABEL: func.func @slice_symbolic
func.func @slice_symbolic(%x: !x, %r: !graph.shape_value<["r"]>) -> tensor<?x8xf32, #graph.shape<["r", 8]>> {
  // CHECK: "graph.call_tir"(%{{.*}}) {callee = @strided_slice,
  // CHECK-SAME: sym_args = #graph.shape<["n - r"]>
  %0 = "graph.strided_slice"(%x) {axes = array<i64: 0>, begin = #graph.shape<["n - r"]>, end = #graph.shape<["n"]>, strides = array<i64: 1>} : (!x) -> tensor<?x8xf32, #graph.shape<["r", 8]>>
  return %0 : tensor<?x8xf32, #graph.shape<["r", 8]>>
}

!cache = tensor<2x?x4xf32, #graph.shape<[2, "c", 4]>>
!new = tensor<?x2x4xf32, #graph.shape<["n", 2, 4]>>

// The caches reach the program as outputs only.
// CHECK-LABEL: func.func @kv_append_inplace
// CHECK-SAME:    (%[[K:[a-z0-9]*]]: {{.*}}, %[[V:[a-z0-9]*]]: {{.*}}, %[[NEW:[a-z0-9]*]]: tensor<?x2x4xf32
func.func @kv_append_inplace(%k: !cache {graph.inout = 0 : i64}, %v: !cache {graph.inout = 1 : i64}, %new: !new, %m: !graph.shape_value<["m"]>) -> (!cache, !cache) {
  // CHECK: "graph.call_tir_inplace"(%[[K]], %[[V]], %[[NEW]], %[[NEW]]) {callee = @kv_append, inplace_indices = array<i64: 0, 1>,
  // CHECK-SAME: sym_args = #graph.shape<["m"]>
  %0:2 = "graph.nn_kv_append"(%k, %v, %new, %new) {position = #graph.shape<["m"]>} : (!cache, !cache, !new, !new) -> (!cache, !cache)
  return %0#0, %0#1 : !cache, !cache
}

// A program that only renames dims is marked, so that its call can be a view.
// CHECK-LABEL: func.func @reshape_marked
func.func @reshape_marked(%x: !x) -> tensor<?xf32, #graph.shape<["8*n"]>> {
  // CHECK: callee = @reshape,
  %0 = "graph.reshape"(%x) {shape = #graph.shape<["8*n"]>} : (!x) -> tensor<?xf32, #graph.shape<["8*n"]>>
  return %0 : tensor<?xf32, #graph.shape<["8*n"]>>
}

// Half precision multiplies and adds in f32, and rounds once.
// CHECK-LABEL: func.func @matmul_f16
func.func @matmul_f16(%x: tensor<2x8xf16>, %w: tensor<8x4xf16>) -> tensor<2x4xf16> {
  // CHECK: callee = @matmul_2,
  %0 = "graph.matmul"(%x, %w) : (tensor<2x8xf16>, tensor<8x4xf16>) -> tensor<2x4xf16>
  return %0 : tensor<2x4xf16>
}

// CHECK-LABEL: func.func @nested
func.func @nested(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK:      scf.execute_region
  // CHECK-NEXT:   callee = @exp_1,
  %0 = scf.execute_region -> tensor<4xf32> no_inline {
    %1 = "graph.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  } {graph.dataflow}
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @negative_shape_values
func.func @negative_shape_values(%x: !x) -> !graph.shape_value<["n", 8]> {
  // CHECK-NEXT: "graph.shape_of"
  %0 = "graph.shape_of"(%x) : (!x) -> !graph.shape_value<["n", 8]>
  return %0 : !graph.shape_value<["n", 8]>
}

// CHECK-LABEL: func.func private @matmul
// CHECK-SAME:    %[[A:.*]]: tensor<?x8xf32, #graph.shape<["n", 8]>>, %[[B:.*]]: tensor<8x4xf32>, %[[OUT:.*]]: tensor<?x4xf32, #graph.shape<["n", 4]>>)
// CHECK-SAME:    -> tensor<?x4xf32, #graph.shape<["n", 4]>>
// CHECK-SAME:    tir.num_outs = 1 : i64, tir.prim_func
// CHECK-DAG:     %[[PLAIN_A:.*]] = tensor.cast %[[A]]
// CHECK-DAG:     %[[PLAIN_OUT:.*]] = tensor.cast %[[OUT]]
// CHECK:         %[[ZERO:.*]] = linalg.fill {{.*}} outs(%[[PLAIN_OUT]] : tensor<?x4xf32>)
// CHECK:         %[[SUMS:.*]] = linalg.generic
// CHECK-SAME:      iterator_types = ["parallel", "parallel", "reduction"]
// CHECK-SAME:      ins(%[[PLAIN_A]], %[[B]] : tensor<?x8xf32>, tensor<8x4xf32>) outs(%[[ZERO]] : tensor<?x4xf32>)
// CHECK:         %[[RESULT:.*]] = tensor.cast %[[SUMS]]
// CHECK-NEXT:    return %[[RESULT]]

// CHECK-LABEL: func.func private @add_1
// CHECK:         %[[OUT:.*]] = tensor.cast %arg2
// CHECK:         %[[REACHED:.*]] = tensor.dim %[[OUT]]
// CHECK:         %[[LAST:.*]] = arith.subi %{{.*}}, %c1
// CHECK-NEXT:    tensor.empty(%[[REACHED]])
// CHECK-NEXT:    linalg.generic {{.*}}iterator_types = ["parallel"]}
// CHECK:           %[[I:.*]] = linalg.index 0
// CHECK-NEXT:      %[[AT:.*]] = arith.minsi %[[I]], %[[LAST]]
// CHECK-NEXT:      tensor.extract %{{.*}}[%[[AT]]]
// CHECK-LABEL: func.func private @add_2
// CHECK-NOT:     tensor.extract

// CHECK-LABEL: func.func private @strided_slice
// CHECK-SAME:    %[[BEGIN:[a-z0-9]*]]: index {tir.sym = "n - r"})
// CHECK:         tensor.extract_slice %{{.*}}[%[[BEGIN]], 0]

// CHECK-LABEL: func.func private @kv_append
// CHECK-SAME:    %[[KEYS:[a-z0-9]*]]: tensor<?x2x4xf32{{.*}}, %[[VALUES:[a-z0-9]*]]: tensor<?x2x4xf32{{.*}}, %[[K:[a-z0-9]*]]: tensor<2x?x4xf32{{.*}}, %[[V:[a-z0-9]*]]: tensor<2x?x4xf32
// CHECK-SAME:    index {tir.sym = "m"})
// CHECK-SAME:    tir.num_outs = 2

// CHECK-LABEL: func.func private @reshape
// CHECK-SAME:    tir.reshape
// CHECK:         tensor.collapse_shape

// CHECK-LABEL: func.func private @matmul_2
// CHECK:         linalg.generic {{.*}} ins({{.*}} : tensor<2x8xf16>, tensor<8x4xf16>) outs({{.*}} : tensor<2x4xf32>)
// CHECK:         arith.extf
// CHECK:         linalg.generic {{.*}} ins({{.*}} : tensor<2x4xf32>) outs({{.*}} : tensor<2x4xf16>)
// CHECK:         arith.truncf
