// RUN: relax-opt %s --relax-lift-workspace --pretty | FileCheck %s
// RUN: relax-opt %s --pass-pipeline='relax-lift-workspace{min-bytes=256}' --pretty | FileCheck %s --check-prefix=SMALL
// RUN: relax-opt %s --relax-lift-workspace --check-equivalent-after-each | FileCheck %s --check-prefix=VALID
// VALID: tir.scheduled

!x = tensor<?xf32, #graph.shape<["n"]>>
!y = tensor<?xf32, #graph.shape<["2*n"]>>
!m = tensor<?xf32, #graph.shape<["m"]>>
#one = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>

// Sizes are those of each call: its dims, and its index arguments, which follow what is new.
// CHECK-LABEL: func @main(
// CHECK-NEXT:    %0, %1 = graph.call_tir @twice(%arg0; 3) : tensor<n x f32>, tensor<16*((n + 3) floordiv 16) x f32>
// CHECK-NEXT:    %2, %3 = graph.call_tir @twice(%arg1; 15) : tensor<2*n x f32>, tensor<16*((n + 7) floordiv 8) x f32>
// CHECK-NEXT:    return %0, %2
// SMALL-LABEL: func @main(
// SMALL-NEXT:    %0, %1, %2 = graph.call_tir @twice(%arg0; 3) : tensor<n x f32>, tensor<16*((n + 3) floordiv 16) x f32>, tensor<64 x f32>
func.func @main(%x: !x, %y: !y) -> (!x, !y) {
  %0 = "graph.call_tir"(%x) {callee = @twice, sym_args = #graph.shape<[3]>, operandSegmentSizes = #one, resultSegmentSizes = #out} : (!x) -> !x
  %1 = "graph.call_tir"(%y) {callee = @twice, sym_args = #graph.shape<[15]>, operandSegmentSizes = #one, resultSegmentSizes = #out} : (!y) -> !y
  return %0, %1 : !x, !y
}

// CHECK: func private @twice(%arg0: memref<?xf32>, %arg1: memref<?xf32>, %arg2: memref<?xf32>, %arg3: index) {{.*}}tir.num_outs=2 : i64
// CHECK-NOT:   memref.alloc(%
// CHECK:       memref.alloc() : memref<64xf32>
func.func private @twice(%x: memref<?xf32>, %y: memref<?xf32>, %more: index {tir.sym = "p"})
    attributes {tir.prim_func, tir.num_outs = 1 : i64, tir.scheduled} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %mask = arith.constant -16 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %sum = arith.addi %n, %more : index
  %size = arith.andi %sum, %mask : index
  %buffer = memref.alloc(%size) : memref<?xf32>
  %small = memref.alloc() : memref<64xf32>
  %some = arith.minsi %n, %size : index
  scf.for %i = %c0 to %n step %c1 {
    %a = memref.load %x[%i] : memref<?xf32>
    %b = arith.addf %a, %a : f32
    memref.store %b, %small[%c0] : memref<64xf32>
    %inside = arith.cmpi slt, %i, %size : index
    %r = scf.if %inside -> f32 {
      memref.store %b, %buffer[%i] : memref<?xf32>
      %l = memref.load %buffer[%i] : memref<?xf32>
      scf.yield %l : f32
    } else {
      %l = memref.load %small[%c0] : memref<64xf32>
      scf.yield %l : f32
    }
    memref.store %r, %y[%i] : memref<?xf32>
  }
  memref.dealloc %small : memref<64xf32>
  memref.dealloc %buffer : memref<?xf32>
  return
}

// What an iteration has for itself, a size of other arithmetic, gaps between elements, and a kernel that nobody calls.
// CHECK-LABEL: func @negative(
// CHECK-NEXT:    %0 = graph.call_tir @negative_sizes(%arg0)
// CHECK-NEXT:    return %0
func.func @negative(%x: !m) -> !m {
  %0 = "graph.call_tir"(%x) {callee = @negative_sizes, sym_args = #graph.shape<[]>, operandSegmentSizes = #one, resultSegmentSizes = #out} : (!m) -> !m
  return %0 : !m
}
func.func private @negative_sizes(%x: memref<?xf32>, %y: memref<?xf32>)
    attributes {tir.prim_func, tir.num_outs = 1 : i64, tir.scheduled} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %rest = arith.remsi %n, %c9 : index
  %strided = memref.alloc(%n) : memref<?xf32, strided<[2]>>
  memref.dealloc %strided : memref<?xf32, strided<[2]>>
  %other = memref.alloc(%rest) : memref<?xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %own = memref.alloc(%n) : memref<?xf32>
    %a = memref.load %x[%i] : memref<?xf32>
    memref.store %a, %own[%i] : memref<?xf32>
    %b = memref.load %own[%i] : memref<?xf32>
    memref.store %b, %y[%i] : memref<?xf32>
    memref.dealloc %own : memref<?xf32>
    scf.reduce
  }
  memref.dealloc %other : memref<?xf32>
  return
}
func.func private @negative_not_called(%x: memref<4096xf32>, %y: memref<4096xf32>)
    attributes {tir.prim_func, tir.num_outs = 1 : i64, tir.scheduled} {
  %buffer = memref.alloc() : memref<4096xf32>
  memref.dealloc %buffer : memref<4096xf32>
  return
}

// A call that is lowered already has its memory.
// CHECK-LABEL: func @negative_lowered(
// CHECK-NEXT:    graph.alloc_tensor
// CHECK-NEXT:    graph.call_dps @negative_called_twice(%arg0, %0)
// CHECK-NEXT:    %1 = graph.call_tir @negative_called_twice(%arg0) :
func.func @negative_lowered(%x: !x) -> (!x, !x) {
  %0 = "graph.alloc_tensor"() {offset = #graph.shape<[0]>, operandSegmentSizes = array<i32: 0>} : () -> !x
  "graph.call_dps"(%x, %0) {callee = @negative_called_twice, num_outs = 1 : i64, updates = array<i64>, sym_args = #graph.shape<[]>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : (!x, !x) -> ()
  %1 = "graph.call_tir"(%x) {callee = @negative_called_twice, sym_args = #graph.shape<[]>, operandSegmentSizes = #one, resultSegmentSizes = #out} : (!x) -> !x
  return %0, %1 : !x, !x
}
func.func private @negative_called_twice(%x: memref<?xf32>, %y: memref<?xf32>)
    attributes {tir.prim_func, tir.num_outs = 1 : i64, tir.scheduled} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %buffer = memref.alloc(%n) : memref<?xf32>
  memref.copy %x, %buffer : memref<?xf32> to memref<?xf32>
  memref.copy %buffer, %y : memref<?xf32> to memref<?xf32>
  memref.dealloc %buffer : memref<?xf32>
  return
}

// An updated operand is a parameter of the kernel as an output alone.
// CHECK-LABEL: func @updated(
// CHECK-NEXT:    %0, %1 = graph.call_tir_inplace @reverse(%arg0, %arg1) {inplace_indices=array<i64: 1, -1>} : tensor<n x f32>, tensor<n x f32>
// CHECK-NEXT:    return %0
func.func @updated(%x: !m, %y: !x) -> !x {
  %0 = "graph.call_tir_inplace"(%x, %y) {callee = @reverse, inplace_indices = array<i64: 1>, sym_args = #graph.shape<[]>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = #out} : (!m, !x) -> !x
  return %0 : !x
}
func.func private @reverse(%x: memref<?xf32>, %y: memref<?xf32>)
    attributes {tir.prim_func, tir.num_outs = 1 : i64, tir.scheduled} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %y, %c0 : memref<?xf32>
  %last = arith.subi %n, %c1 : index
  %copy = memref.alloc(%n) : memref<?xf32>
  scf.for %i = %c0 to %n step %c1 {
    %a = memref.load %y[%i] : memref<?xf32>
    memref.store %a, %copy[%i] : memref<?xf32>
  }
  scf.for %i = %c0 to %n step %c1 {
    %from = arith.subi %last, %i : index
    %a = memref.load %copy[%from] : memref<?xf32>
    memref.store %a, %y[%i] : memref<?xf32>
  }
  memref.dealloc %copy : memref<?xf32>
  return
}
