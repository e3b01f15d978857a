// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='relax-to-host{target=x86-64-v3}' | FileCheck %s

// Arguments are checked, the result's memory is asked for, the kernel is called on both.
// CHECK-LABEL: func.func @rx_fn_main
// CHECK-SAME:    (%[[CTX:[a-z0-9]*]]: !llvm.ptr, %[[ARGS:[a-z0-9]*]]: !llvm.ptr
// CHECK:         call @rx_bind(%[[CTX]]
// CHECK:         cf.cond_br %{{.*}}, ^[[FAIL:bb[0-9]*]], ^
// CHECK:         call @rx_result(
// CHECK:         call @call.copy(%[[X:.*]], %[[N:.*]], %[[Y:.*]], %[[N]]) : (!llvm.ptr, index, !llvm.ptr, index) -> ()
// CHECK:       ^[[FAIL]]:
// CHECK:         return

// Memrefs are made for the kernel in one place.
// CHECK-LABEL: func.func private @call.copy
// CHECK-SAME:    (%{{.*}}: !llvm.ptr, %{{.*}}: index, %{{.*}}: !llvm.ptr, %{{.*}}: index) {
// CHECK:         %[[IN:.*]] = builtin.unrealized_conversion_cast {{.*}} to memref<?xf32>
// CHECK:         %[[OUT:.*]] = builtin.unrealized_conversion_cast {{.*}} to memref<?xf32>
// CHECK:         call @copy(%[[IN]], %[[OUT]]) : (memref<?xf32>, memref<?xf32>) -> ()
// CHECK:         return
// CHECK-LABEL: func.func @rx_metadata
func.func private @copy(%x: memref<?xf32>, %y: memref<?xf32>)
    attributes {tir.prim_func, tir.scheduled, tir.num_outs = 1 : i64} {
  return
}
func.func @main(%x: tensor<?xf32, #graph.shape<["n"]>>) -> tensor<?xf32, #graph.shape<["n"]>> {
  %0 = "graph.alloc_tensor"() {offset = #graph.shape<[0]>, operandSegmentSizes = array<i32: 0>} : () -> tensor<?xf32, #graph.shape<["n"]>>
  "graph.call_dps"(%x, %0) {callee = @copy, num_outs = 1 : i64, sym_args = #graph.shape<[]>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<?xf32, #graph.shape<["n"]>>, tensor<?xf32, #graph.shape<["n"]>>) -> ()
  return %0 : tensor<?xf32, #graph.shape<["n"]>>
}

// -----

// Dims that a kernel knows are not passed, symbols are. What is called from many places stays apart.
// CHECK-LABEL: func.func @rx_fn_main
// CHECK:         %[[FOUR:.*]] = arith.constant 4 : index
// CHECK:         call @call.grow_(%{{.*}}, %{{.*}}, %[[FOUR]]) : (!llvm.ptr, !llvm.ptr, index) -> ()
// CHECK-COUNT-4: call @call.grow_(%{{.*}}) : (!llvm.ptr, !llvm.ptr, index) -> ()
// CHECK:         call @call.call.grow(%{{.*}}, %{{.*}}) : (!llvm.ptr, !llvm.ptr) -> ()

// CHECK-LABEL: func.func private @call.grow_
// CHECK-SAME:    (%[[P:.*]]: !llvm.ptr, %[[Q:.*]]: !llvm.ptr, %[[S:.*]]: index) attributes {llvm.no_inline} {
// CHECK-DAG:     %[[ROWS:.*]] = arith.constant 4 : index
// CHECK-DAG:     %[[COLUMNS:.*]] = arith.constant 2 : index
// CHECK:         arith.muli %{{.*}}, %[[COLUMNS]] : index
// CHECK:         call @grow(%{{.*}}, %{{.*}}, %[[S]]) : (memref<4x2xf32>, memref<4x2xf32>, index) -> ()
// CHECK-LABEL: func.func private @call.call.grow
// CHECK-NOT:     no_inline
// CHECK:         call @call.grow(%{{.*}}, %{{.*}}) : (memref<4x2xf32>, memref<4x2xf32>) -> ()
func.func private @grow(%x: memref<4x2xf32>, %y: memref<4x2xf32>, %n: index)
    attributes {tir.prim_func, tir.scheduled, tir.num_outs = 1 : i64} {
  return
}
func.func private @call.grow(%x: memref<4x2xf32>, %y: memref<4x2xf32>)
    attributes {tir.prim_func, tir.scheduled, tir.num_outs = 1 : i64} {
  return
}
func.func @main(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %0 = "graph.alloc_tensor"() {offset = #graph.shape<[0]>, operandSegmentSizes = array<i32: 0>} : () -> tensor<4x2xf32>
  "graph.call_dps"(%x, %0) {callee = @grow, num_outs = 1 : i64, sym_args = #graph.shape<[4]>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4x2xf32>, tensor<4x2xf32>) -> ()
  "graph.call_dps"(%x, %0) {callee = @grow, num_outs = 1 : i64, sym_args = #graph.shape<[4]>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4x2xf32>, tensor<4x2xf32>) -> ()
  "graph.call_dps"(%x, %0) {callee = @grow, num_outs = 1 : i64, sym_args = #graph.shape<[4]>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4x2xf32>, tensor<4x2xf32>) -> ()
  "graph.call_dps"(%x, %0) {callee = @grow, num_outs = 1 : i64, sym_args = #graph.shape<[4]>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4x2xf32>, tensor<4x2xf32>) -> ()
  "graph.call_dps"(%x, %0) {callee = @grow, num_outs = 1 : i64, sym_args = #graph.shape<[4]>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4x2xf32>, tensor<4x2xf32>) -> ()
  "graph.call_dps"(%x, %0) {callee = @call.grow, num_outs = 1 : i64, sym_args = #graph.shape<[]>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4x2xf32>, tensor<4x2xf32>) -> ()
  return %0 : tensor<4x2xf32>
}

// -----

// expected-error @below {{is not scheduled; run relax-schedule before relax-to-host}}
func.func private @negative_not_scheduled(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  return %y : tensor<4xf32>
}

// -----

func.func @negative_operator(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{cannot be host code; run relax-legalize-ops and relax-lower-calls first}}
  %0 = "graph.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @negative_not_planned(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{is not planned; run relax-plan-memory before relax-to-host}}
  %0 = "graph.alloc_tensor"() {offset = #graph.shape<[0]>, operandSegmentSizes = array<i32: 0>} : () -> tensor<4xf32>
  return %x : tensor<4xf32>
}

// -----

func.func @negative_unbound_symbol() -> tensor<?xf32, #graph.shape<["n"]>> {
  // expected-error @below {{uses the symbol 'n', which nothing binds}}
  %0 = "graph.alloc_tensor"() {offset = #graph.shape<[0]>, operandSegmentSizes = array<i32: 0>} : () -> tensor<?xf32, #graph.shape<["n"]>>
  return %0 : tensor<?xf32, #graph.shape<["n"]>>
}
