// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='relax-to-host{target=x86-64-v3}' | FileCheck %s

// Arguments are checked, the result's memory is asked for, the kernel is called on both.
// CHECK-LABEL: func.func @rx_fn_main
// CHECK-SAME:    (%[[CTX:[a-z0-9]*]]: !llvm.ptr, %[[ARGS:[a-z0-9]*]]: !llvm.ptr, %{{.*}}: i32, %[[RESULTS:[a-z0-9]*]]: !llvm.ptr
// CHECK:         call @rx_bind(%[[CTX]]
// CHECK:         cf.cond_br %{{.*}}, ^[[FAIL:bb[0-9]*]], ^
// CHECK:         %[[N:.*]] = llvm.load
// CHECK:         %[[Y:.*]] = call @rx_result(%[[CTX]], %[[RESULTS]]
// CHECK:         cf.cond_br %{{.*}}, ^[[FAIL]], ^
// CHECK:         %[[X:.*]] = llvm.load %[[ARGS]]
// CHECK:         call @call.copy(%[[X]], %[[N]], %[[Y]], %[[N]]) : (!llvm.ptr, i64, !llvm.ptr, i64) -> ()
// CHECK:         return %c0_i32
// CHECK:       ^[[FAIL]]:
// CHECK:         return %c1_i32

// Memrefs are made for the kernel in one place, which calls it if there is something to write.
// CHECK-LABEL: func.func private @call.copy
// CHECK-SAME:    (%{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: !llvm.ptr, %[[M:.*]]: i64) {
// CHECK:         %[[EMPTY:.*]] = arith.cmpi eq, %[[M]], %c0_i64
// CHECK:         cf.cond_br %[[EMPTY]], ^[[END:bb[0-9]*]], ^
// CHECK:         %[[IN:.*]] = builtin.unrealized_conversion_cast {{.*}} to memref<?xf32>
// CHECK:         %[[OUT:.*]] = builtin.unrealized_conversion_cast {{.*}} to memref<?xf32>
// CHECK:         call @copy(%[[IN]], %[[OUT]]) : (memref<?xf32>, memref<?xf32>) -> ()
// CHECK:         return
// CHECK:       ^[[END]]:
// CHECK:         return
// CHECK-LABEL: func.func @rx_metadata
func.func private @copy(%x: memref<?xf32>, %y: memref<?xf32>)
    attributes {tir.prim_func, tir.scheduled, tir.num_outs = 1 : i64} {
  return
}
func.func @main(%x: tensor<?xf32, #graph.shape<["n"]>>) -> tensor<?xf32, #graph.shape<["n"]>> {
  %0 = "graph.alloc_tensor"() {offset = #graph.shape<[0]>, operandSegmentSizes = array<i32: 0>} : () -> tensor<?xf32, #graph.shape<["n"]>>
  "graph.call_dps"(%x, %0) {callee = @copy, num_outs = 1 : i64, sym_args = #graph.shape<[]>, updates = array<i64>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<?xf32, #graph.shape<["n"]>>, tensor<?xf32, #graph.shape<["n"]>>) -> ()
  return %0 : tensor<?xf32, #graph.shape<["n"]>>
}

// -----

// Dims that a kernel knows are not passed, symbols are. What is called from many places stays apart.
// CHECK-LABEL: func.func @rx_fn_main
// CHECK:         call @call.grow_1(%{{.*}}, %{{.*}}, %c4_i64) : (!llvm.ptr, !llvm.ptr, i64) -> ()
// CHECK-COUNT-4: call @call.grow_1(%{{.*}}) : (!llvm.ptr, !llvm.ptr, i64) -> ()
// CHECK:         call @call.call.grow(%{{.*}}, %{{.*}}) : (!llvm.ptr, !llvm.ptr) -> ()

// CHECK-LABEL: func.func private @call.grow_1
// CHECK-SAME:    (%[[P:.*]]: !llvm.ptr, %[[Q:.*]]: !llvm.ptr, %[[S:.*]]: i64) attributes {llvm.no_inline} {
// CHECK:         %[[N:.*]] = arith.index_cast %[[S]] : i64 to index
// CHECK:         call @grow(%{{.*}}, %{{.*}}, %[[N]]) : (memref<4x2xf32>, memref<4x2xf32>, index) -> ()
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
  "graph.call_dps"(%x, %0) {callee = @grow, num_outs = 1 : i64, sym_args = #graph.shape<[4]>, updates = array<i64>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4x2xf32>, tensor<4x2xf32>) -> ()
  "graph.call_dps"(%x, %0) {callee = @grow, num_outs = 1 : i64, sym_args = #graph.shape<[4]>, updates = array<i64>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4x2xf32>, tensor<4x2xf32>) -> ()
  "graph.call_dps"(%x, %0) {callee = @grow, num_outs = 1 : i64, sym_args = #graph.shape<[4]>, updates = array<i64>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4x2xf32>, tensor<4x2xf32>) -> ()
  "graph.call_dps"(%x, %0) {callee = @grow, num_outs = 1 : i64, sym_args = #graph.shape<[4]>, updates = array<i64>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4x2xf32>, tensor<4x2xf32>) -> ()
  "graph.call_dps"(%x, %0) {callee = @grow, num_outs = 1 : i64, sym_args = #graph.shape<[4]>, updates = array<i64>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4x2xf32>, tensor<4x2xf32>) -> ()
  "graph.call_dps"(%x, %0) {callee = @call.grow, num_outs = 1 : i64, sym_args = #graph.shape<[]>, updates = array<i64>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4x2xf32>, tensor<4x2xf32>) -> ()
  return %0 : tensor<4x2xf32>
}

// -----

// A symbol that a cast binds is a dim of what is cast; nothing is checked. What depends on it comes
// behind, and leaves the function if 64 bits do not hold it.
// CHECK-LABEL: func.func @rx_fn_main
// CHECK-NOT:     call @rx_match_cast
// CHECK:         %[[FIELD:.*]] = llvm.getelementptr %arg1[0, 7]
// CHECK:         %[[SHAPE:.*]] = llvm.load %[[FIELD]] : !llvm.ptr -> !llvm.ptr
// CHECK:         %[[K:.*]] = llvm.load %[[SHAPE]] : !llvm.ptr -> i64
// CHECK:         %[[BOTH:.*]] = "llvm.intr.smul.with.overflow"(%[[K]], %c4_i64)
// CHECK:         %[[FLAG:.*]] = llvm.extractvalue %[[BOTH]][1]
// CHECK:         %[[BYTES:.*]] = llvm.extractvalue %[[BOTH]][0]
// CHECK:         cf.cond_br %[[FLAG]], ^[[COLD:bb[0-9]*]], ^
// CHECK:         call @rx_arena(%arg0, %[[BYTES]])
// CHECK:         return %c0_i32
// CHECK:       ^[[COLD]]:
// CHECK:         call @rx_refuse_sizes(%arg0
// CHECK:         cf.br ^[[FAIL:bb[0-9]*]]
// CHECK:       ^[[FAIL]]:
// CHECK:         return %c1_i32
func.func private @copy(%x: memref<?xf32>, %y: memref<?xf32>)
    attributes {tir.prim_func, tir.scheduled, tir.num_outs = 1 : i64} {
  return
}
func.func @main(%x: tensor<?xf32>) {
  %0 = "graph.match_cast"(%x) : (tensor<?xf32>) -> tensor<?xf32, #graph.shape<["k"]>>
  %s = "graph.alloc_storage"() {size = #graph.shape<["4*k"]>} : () -> !graph.storage
  %1 = "graph.alloc_tensor"(%s) {offset = #graph.shape<[0]>, operandSegmentSizes = array<i32: 1>} : (!graph.storage) -> tensor<?xf32, #graph.shape<["k"]>>
  "graph.call_dps"(%0, %1) {callee = @copy, num_outs = 1 : i64, sym_args = #graph.shape<[]>, updates = array<i64>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<?xf32, #graph.shape<["k"]>>, tensor<?xf32, #graph.shape<["k"]>>) -> ()
  return
}

// -----

// Facts bound what needs no check.
// CHECK-LABEL: func.func @rx_fn_main
// CHECK:         %[[N:.*]] = llvm.load
// CHECK:         %[[BYTES:.*]] = arith.muli %[[N]], %c4_i64 : i64
// CHECK-NOT:     overflow
// CHECK:         call @rx_arena(%arg0, %[[BYTES]])
func.func @main(%x: tensor<?xf32, #graph.shape<["n"]>>) attributes {graph.facts = ["n <= 2048"]} {
  %s = "graph.alloc_storage"() {size = #graph.shape<["4*n"]>} : () -> !graph.storage
  return
}

// -----

// What a cast has to compute or compare, and what a fact says, the runtime looks at.
// CHECK-LABEL: func.func @rx_fn_main
// CHECK:         call @rx_match_cast(%arg0
// CHECK:         cf.cond_br %{{.*}}, ^[[FAIL:bb[0-9]*]], ^
// CHECK:         %[[K:.*]] = llvm.load
// CHECK:         llvm.store %[[K]]
// CHECK:         call @rx_require(%arg0
// CHECK:         cf.cond_br %{{.*}}, ^[[FAIL]], ^
func.func @main(%x: tensor<?xf32>) {
  %0 = "graph.match_cast"(%x) : (tensor<?xf32>) -> tensor<?xf32, #graph.shape<["2*k"]>>
  "graph.require"() {any_of = ["k >= 1"], by = "graph.add"} : () -> ()
  return
}

// -----

// A branch computes what it alone needs, and is left like any other place.
// CHECK-LABEL: func.func @rx_fn_main
// CHECK:         %[[N:.*]] = llvm.load
// CHECK-NOT:     overflow
// CHECK:         %[[SHORT:.*]] = arith.cmpi slt, %[[N]], %c4_i64
// CHECK:         cf.cond_br %[[SHORT]], ^[[THEN:bb[0-9]*]], ^[[ELSE:bb[0-9]*]]
// CHECK:       ^[[THEN]]:
// CHECK:         "llvm.intr.smul.with.overflow"(%[[N]], %c8_i64)
// CHECK:         call @rx_arena(%arg0
// CHECK:         cf.cond_br %{{.*}}, ^[[FAIL:bb[0-9]*]], ^
// CHECK:         cf.br ^[[AFTER:bb[0-9]*]](
// CHECK:       ^[[ELSE]]:
// CHECK:         cf.br ^[[AFTER]](
// CHECK:       ^[[AFTER]](%{{.*}}: !llvm.ptr):
// CHECK:         return %c0_i32
// CHECK:       ^[[FAIL]]:
func.func @main(%x: tensor<?xf32, #graph.shape<["n"]>>) {
  %zero = arith.constant 0 : index
  %four = arith.constant 4 : index
  %n = tensor.dim %x, %zero : tensor<?xf32, #graph.shape<["n"]>>
  %is_short = arith.cmpi slt, %n, %four : index
  %r = scf.if %is_short -> tensor<?xf32, #graph.shape<["n"]>> {
    %s = "graph.alloc_storage"() {size = #graph.shape<["8*n"]>} : () -> !graph.storage
    %0 = "graph.alloc_tensor"(%s) {offset = #graph.shape<["4*n"]>, operandSegmentSizes = array<i32: 1>} : (!graph.storage) -> tensor<?xf32, #graph.shape<["n"]>>
    scf.yield %0 : tensor<?xf32, #graph.shape<["n"]>>
  } else {
    scf.yield %x : tensor<?xf32, #graph.shape<["n"]>>
  }
  return
}

// -----

// A function that is called takes addresses and symbols; sites of its calls follow the caller's.
// CHECK-LABEL: func.func @rx_fn_main
// CHECK:         call @rx_span_begin(%c0_i32)
// CHECK:         %[[STATUS:.*]] = call @host.callee(%arg0, %c1_i32, %[[X:.*]], %[[N:.*]], %[[Y:.*]]) : (!llvm.ptr, i32, !llvm.ptr, i64, !llvm.ptr) -> i32
// CHECK:         arith.cmpi ne, %[[STATUS]], %c0_i32
// CHECK:         call @rx_span_begin(%c2_i32)

// What it takes of the arena, it gives back.
// CHECK-LABEL: func.func private @host.callee
// CHECK-SAME:    (%[[CTX:.*]]: !llvm.ptr, %[[SITE:.*]]: i32, %[[X:.*]]: !llvm.ptr, %[[N:.*]]: i64, %[[Y:.*]]: !llvm.ptr) -> i32 {
// CHECK:         %[[MARK:.*]] = call @rx_arena_mark(%[[CTX]])
// CHECK:         call @rx_arena(%[[CTX]]
// CHECK:         %[[AT:.*]] = arith.addi %[[SITE]], %c0_i32
// CHECK:         call @rx_span_begin(%[[AT]])
// CHECK:         call @call.copy(%[[X]], %[[N]], %[[Y]], %[[N]])
// CHECK:         call @rx_count_kernels(%c1_i64
// CHECK:         call @rx_arena_release(%[[CTX]], %[[MARK]])
// CHECK:         return %c0_i32
!n = tensor<?xf32, #graph.shape<["n"]>>
!m = tensor<?xf32, #graph.shape<["m"]>>
func.func private @copy(%x: memref<?xf32>, %y: memref<?xf32>)
    attributes {tir.prim_func, tir.scheduled, tir.num_outs = 1 : i64} {
  return
}
func.func private @callee(%x: !n) -> !n {
  %s = "graph.alloc_storage"() {size = #graph.shape<["4*n"]>} : () -> !graph.storage
  %0 = "graph.alloc_tensor"() {offset = #graph.shape<[0]>, operandSegmentSizes = array<i32: 0>} : () -> !n
  "graph.call_dps"(%x, %0) {callee = @copy, num_outs = 1 : i64, sym_args = #graph.shape<[]>, updates = array<i64>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : (!n, !n) -> ()
  return %0 : !n
}
func.func @main(%x: !m) -> !m {
  %0 = "graph.alloc_tensor"() {offset = #graph.shape<[0]>, operandSegmentSizes = array<i32: 0>} : () -> !m
  "graph.call_dps"(%x, %0) {callee = @copy, num_outs = 1 : i64, sym_args = #graph.shape<[]>, updates = array<i64>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : (!m, !m) -> ()
  "graph.call_dps"(%x, %0) {callee = @callee, num_outs = 1 : i64, sym_args = #graph.shape<[]>, updates = array<i64>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : (!m, !m) -> ()
  "graph.call_dps"(%x, %0) {callee = @copy, num_outs = 1 : i64, sym_args = #graph.shape<[]>, updates = array<i64>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : (!m, !m) -> ()
  return %0 : !m
}

// -----

// Functions that call themselves count how deep they are, and pass on where their sites begin.
// CHECK-LABEL: func.func @rx_fn_main
// CHECK-NOT:     rx_enter
// CHECK:         call @host.f(%arg0, %c1_i32)
// CHECK-NOT:     rx_leave
// CHECK-LABEL: func.func private @host.f(
// CHECK-SAME:    %[[CTX:.*]]: !llvm.ptr, %[[SITE:.*]]: i32) -> i32 {
// CHECK:         %[[STATUS:.*]] = call @rx_enter(%[[CTX]], %{{.*}}) : (!llvm.ptr, !llvm.ptr) -> i32
// CHECK:         arith.cmpi ne, %[[STATUS]], %c0_i32
// CHECK:         %[[INNER:.*]] = call @host.g(%[[CTX]], %[[SITE]])
// CHECK:         arith.cmpi ne, %[[INNER]], %c0_i32
// CHECK:         call @rx_leave(%[[CTX]])
// CHECK-LABEL: func.func private @host.g(
// CHECK-SAME:    %[[CTX:.*]]: !llvm.ptr, %[[SITE:.*]]: i32) -> i32 {
// CHECK:         %[[AT:.*]] = arith.addi %[[SITE]], %c0_i32
// CHECK:         call @rx_span_begin(%[[AT]])
// CHECK:         call @rx_enter
// CHECK:         call @host.f(%[[CTX]], %[[SITE]])
#none = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
func.func private @kernel() attributes {tir.prim_func, tir.scheduled, tir.num_outs = 0 : i64} {
  return
}
func.func private @f() {
  "graph.call_dps"() {callee = @g, num_outs = 0 : i64, sym_args = #graph.shape<[]>, updates = array<i64>, operandSegmentSizes = #none, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  return
}
func.func private @g() {
  "graph.call_dps"() {callee = @kernel, num_outs = 0 : i64, sym_args = #graph.shape<[]>, updates = array<i64>, operandSegmentSizes = #none, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  "graph.call_dps"() {callee = @f, num_outs = 0 : i64, sym_args = #graph.shape<[]>, updates = array<i64>, operandSegmentSizes = #none, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  return
}
func.func @main() {
  "graph.call_dps"() {callee = @kernel, num_outs = 0 : i64, sym_args = #graph.shape<[]>, updates = array<i64>, operandSegmentSizes = #none, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  "graph.call_dps"() {callee = @f, num_outs = 0 : i64, sym_args = #graph.shape<[]>, updates = array<i64>, operandSegmentSizes = #none, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  return
}

// -----

// expected-error @below {{is not scheduled; run relax-schedule before relax-to-host}}
func.func private @negative_not_scheduled(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  return %y : tensor<4xf32>
}

// -----

// expected-error @below {{has 2 tensors, so 'tir.num_outs' cannot be 3 : i64}}
func.func private @negative_too_many_outputs(%x: memref<4xf32>, %y: memref<4xf32>)
    attributes {tir.prim_func, tir.scheduled, tir.num_outs = 3 : i64} {
  return
}

// -----

// expected-error @below {{must take memrefs, then indices}}
func.func private @negative_index_first(%n: index, %y: memref<4xf32>)
    attributes {tir.prim_func, tir.scheduled, tir.num_outs = 1 : i64} {
  return
}

// -----

func.func @negative_operator(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'graph.exp' op cannot be host code, which supports arithmetic on scalars, graph.alloc_storage}}
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

// -----

func.func @negative_constant_beyond_64_bits(%x: tensor<?xf32, #graph.shape<["n"]>>) {
  // expected-error @below {{uses '9999999999999999999*n', which has a constant beyond 64 bits}}
  %s = "graph.alloc_storage"() {size = #graph.shape<["9999999999999999999*n"]>} : () -> !graph.storage
  return
}

// -----

func.func @negative_dim_not_constant(%x: tensor<?xf32, #graph.shape<["n"]>>) {
  %zero = arith.constant 0 : index
  %n = tensor.dim %x, %zero : tensor<?xf32, #graph.shape<["n"]>>
  // expected-error @below {{asks for a dim that is not constant}}
  %m = tensor.dim %x, %n : tensor<?xf32, #graph.shape<["n"]>>
  return
}

// -----

func.func @negative_cast_to_object(%x: tensor<?xf32>) -> tensor<?xf64> {
  // expected-error @below {{casts to '!graph.object', which host code does not hold}}
  %0 = "graph.match_cast"(%x) : (tensor<?xf32>) -> !graph.object
  %1 = "graph.match_cast"(%0) : (!graph.object) -> tensor<?xf64>
  return %1 : tensor<?xf64>
}

// -----

func.func @negative_cast_to_another_rank(%x: tensor<?xf32>) -> tensor<?x?xf32> {
  %0 = "graph.match_cast"(%x) : (tensor<?xf32>) -> tensor<*xf32>
  // expected-error @below {{casts a value of 1 dims to one of 2}}
  %1 = "graph.match_cast"(%0) : (tensor<*xf32>) -> tensor<?x?xf32>
  return %1 : tensor<?x?xf32>
}

// -----

// A dim that nothing names is one of the loop's block, and a cast that says nothing of it leaves it.
// CHECK-LABEL: func.func @rx_fn_unnamed_dim
// CHECK:         ^{{.*}}(%{{.*}}: !llvm.ptr, %{{.*}}: i64):
// CHECK-NOT:     rx_match_cast
func.func @unnamed_dim(%x: tensor<?xf32, #graph.shape<["n"]>>, %c: i1) {
  %0 = "graph.match_cast"(%x) : (tensor<?xf32, #graph.shape<["n"]>>) -> tensor<?xf32>
  %1 = scf.while (%a = %0) : (tensor<?xf32>) -> tensor<?xf32> {
    scf.condition(%c) %a : tensor<?xf32>
  } do {
  ^bb0(%a: tensor<?xf32>):
    %2 = "graph.match_cast"(%a) : (tensor<?xf32>) -> tensor<?xf32>
    scf.yield %2 : tensor<?xf32>
  }
  return
}

// -----

// A shape is returned as a tensor of its dims.
// CHECK-LABEL: func.func @rx_fn_shape
// CHECK:         %[[TWICE:.*]] = llvm.extractvalue %{{.*}}[0]
// CHECK:         %[[TO:.*]] = call @rx_host_result(%arg0, %arg3, %c0_i32, %c0_i32, %c64_i32, %c1_i32, %{{.*}})
// CHECK:         llvm.store %[[TWICE]], %[[TO]] : i64, !llvm.ptr
// CHECK:         %[[NEXT:.*]] = llvm.getelementptr %[[TO]][1]
// CHECK:         llvm.store %c5_i64, %[[NEXT]] : i64, !llvm.ptr
func.func @shape(%x: tensor<?xf32, #graph.shape<["n"]>>) -> !graph.shape_value<["2*n", 5]> {
  %0 = "graph.make_shape"() {dims = #graph.shape<["2*n", 5]>} : () -> !graph.shape_value<["2*n", 5]>
  return %0 : !graph.shape_value<["2*n", 5]>
}

// -----

// A loop ends before its upper bound; the last step goes no further, and the next index fits its type.
// CHECK-LABEL: func.func @rx_fn_loop
// CHECK:         cf.br ^[[HEAD:bb[0-9]*]](%c0_i64, %c0_i64 : i64, i64)
// CHECK:       ^[[HEAD]](%[[I:.*]]: i64, %[[C:.*]]: i64):
// CHECK-NEXT:    %[[MORE:.*]] = arith.cmpi slt, %[[I]], %[[END:.*]] : i64
// CHECK-NEXT:    cf.cond_br %[[MORE]], ^[[BODY:bb[0-9]*]], ^[[AFTER:bb[0-9]*]]
// CHECK:       ^[[BODY]]:
// CHECK:         %[[D:.*]] = arith.addi %[[C]], %[[I]] : i64
// CHECK:         %[[LEFT:.*]] = arith.subi %[[END]], %[[I]] : i64
// CHECK:         %[[STEP:.*]] = arith.minui %c3_i64, %[[LEFT]] : i64
// CHECK:         %[[NEXT:.*]] = arith.addi %[[I]], %[[STEP]] : i64
// CHECK:         call @rx_poll(
// CHECK:         cf.br ^[[HEAD]](%[[NEXT]], %[[D]] : i64, i64)
// CHECK:       ^[[AFTER]]:
// CHECK:         llvm.store %[[C]], %
func.func @loop(%end: i64) -> i64 {
  %zero = arith.constant 0 : i64
  %three = arith.constant 3 : i64
  %r = scf.for %i = %zero to %end step %three iter_args(%c = %zero) -> (i64) : i64 {
    %d = arith.addi %c, %i : i64
    scf.yield %d : i64
  }
  return %r : i64
}

// -----

// A result that is a view as another element type is described by that type, not by that of its memory.
// CHECK-LABEL: func.func @rx_fn_codes
// CHECK:         call @rx_result(%arg0, %arg3, %c0_i32, %c12_i32, %c8_i32, %c1_i32, %{{.*}})
func.func @codes(%x: tensor<?xi8, #graph.shape<["n"]>>) -> tensor<?xf8E5M2, #graph.shape<["n"]>> {
  %0 = "graph.alloc_tensor"() {offset = #graph.shape<[0]>} : () -> tensor<?xi8, #graph.shape<["n"]>>
  "graph.copy"(%x, %0) : (tensor<?xi8, #graph.shape<["n"]>>, tensor<?xi8, #graph.shape<["n"]>>) -> ()
  %1 = "graph.view"(%0) : (tensor<?xi8, #graph.shape<["n"]>>) -> tensor<?xf8E5M2, #graph.shape<["n"]>>
  return %1 : tensor<?xf8E5M2, #graph.shape<["n"]>>
}
