// RUN: relax-opt %s --relax-check-memory-plan | FileCheck %s

!n = tensor<?xf32, #graph.shape<["n"]>>
!k = tensor<?xf32, #graph.shape<["k"]>>

// Two tensors may have the same bytes one after the other; the module stays as it is.
// CHECK-LABEL: func.func @in_turn
// CHECK-COUNT-2: "graph.alloc_tensor"(%{{.*}}) {offset = #graph.shape<[0]>}
func.func @in_turn(%x: !n, %y: !n {graph.inout = 0 : i64}, %z: !n {graph.inout = 1 : i64}) -> (!n, !n) {
  %s = "graph.alloc_storage"() {size = #graph.shape<["4*n"]>} : () -> !graph.storage
  %0 = "graph.alloc_tensor"(%s) {offset = #graph.shape<[0]>} : (!graph.storage) -> !n
  "graph.copy"(%x, %0) : (!n, !n) -> ()
  "graph.copy"(%0, %y) : (!n, !n) -> ()
  %1 = "graph.alloc_tensor"(%s) {offset = #graph.shape<[0]>} : (!graph.storage) -> !n
  "graph.copy"(%x, %1) : (!n, !n) -> ()
  "graph.copy"(%1, %z) : (!n, !n) -> ()
  return %y, %z : !n, !n
}

// Only one branch runs, so that both results may have the same bytes.
// CHECK-LABEL: func.func @branches
func.func @branches(%x: !n, %y: !n {graph.inout = 0 : i64}, %c: i1) -> !n {
  %s = "graph.alloc_storage"() {size = #graph.shape<["4*n"]>} : () -> !graph.storage
  %0 = scf.if %c -> !n {
    %1 = "graph.alloc_tensor"(%s) {offset = #graph.shape<[0]>} : (!graph.storage) -> !n
    "graph.copy"(%x, %1) : (!n, !n) -> ()
    scf.yield %1 : !n
  } else {
    %1 = "graph.alloc_tensor"(%s) {offset = #graph.shape<[0]>} : (!graph.storage) -> !n
    "graph.copy"(%y, %1) : (!n, !n) -> ()
    scf.yield %1 : !n
  }
  "graph.copy"(%0, %y) : (!n, !n) -> ()
  return %y : !n
}

// What enters the loop is needed in its first round only.
// CHECK-LABEL: func.func @needed_once
func.func @needed_once(%x: !n, %y: !n {graph.inout = 0 : i64}, %rounds: index) -> !n {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %s = "graph.alloc_storage"() {size = #graph.shape<["4*n"]>} : () -> !graph.storage
  %0 = "graph.alloc_tensor"(%s) {offset = #graph.shape<[0]>} : (!graph.storage) -> !n
  "graph.copy"(%x, %0) : (!n, !n) -> ()
  %1 = scf.for %i = %zero to %rounds step %one iter_args(%a = %0) -> !n {
    "graph.copy"(%a, %y) : (!n, !n) -> ()
    %2 = "graph.alloc_tensor"(%s) {offset = #graph.shape<[0]>} : (!graph.storage) -> !n
    "graph.copy"(%x, %2) : (!n, !n) -> ()
    scf.yield %x : !n
  }
  return %y : !n
}

// A loop exchanges two tensors, one of which inner loops pass on as it is.
// CHECK-LABEL: func.func @exchanged
func.func @exchanged(%x: !n, %y: !n {graph.inout = 0 : i64}, %rounds: index) -> !n {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %s = "graph.alloc_storage"() {size = #graph.shape<["4*n"]>} : () -> !graph.storage
  %0 = "graph.alloc_tensor"(%s) {offset = #graph.shape<[0]>} : (!graph.storage) -> !n
  "graph.copy"(%x, %0) : (!n, !n) -> ()
  %1:2 = scf.for %i = %zero to %rounds step %one iter_args(%now = %0, %next = %y) -> (!n, !n) {
    "graph.call_dps"(%now, %next) {callee = @negative, num_outs = 1 : i64, sym_args = #graph.shape<[]>, updates = array<i64>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : (!n, !n) -> ()
    %2:2 = scf.for %j = %zero to %rounds step %one iter_args(%a = %next, %b = %x) -> (!n, !n) {
      scf.yield %a, %a : !n, !n
    }
    %3:2 = scf.while (%a = %2#0, %b = %one) : (!n, index) -> (index, !n) {
      %go = arith.cmpi slt, %b, %rounds : index
      scf.condition(%go) %b, %a : index, !n
    } do {
    ^bb0(%b: index, %a: !n):
      %4 = arith.addi %b, %one : index
      scf.yield %a, %4 : !n, index
    }
    scf.yield %3#1, %now : !n, !n
  }
  return %1#0 : !n
}

func.func private @negative(%x: !n, %y: !n {graph.inout = 0 : i64}) -> !n {
  "graph.copy"(%x, %y) : (!n, !n) -> ()
  return %y : !n
}

// By the facts, one ends before the other begins.
// CHECK-LABEL: func.func @facts
func.func @facts(%x: !n, %y: !k {graph.inout = 0 : i64}) -> !k attributes {graph.facts = ["k <= 2*n"]} {
  %s = "graph.alloc_storage"() {size = #graph.shape<["12*n"]>} : () -> !graph.storage
  %0 = "graph.alloc_tensor"(%s) {offset = #graph.shape<[0]>} : (!graph.storage) -> !k
  %1 = "graph.alloc_tensor"(%s) {offset = #graph.shape<["8*n"]>} : (!graph.storage) -> !n
  "graph.copy"(%y, %0) : (!k, !k) -> ()
  "graph.copy"(%x, %1) : (!n, !n) -> ()
  "graph.copy"(%0, %y) : (!k, !k) -> ()
  return %y : !k
}
