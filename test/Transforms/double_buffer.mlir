// RUN: relax-opt %s --relax-lower-calls --relax-double-buffer | FileCheck %s --enable-var-scope
// RUN: relax-opt %s --relax-lower-calls --relax-double-buffer --relax-plan-memory --relax-check-memory-plan -o %t

#in1  = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2  = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
#no   = #graph.shape<[]>
!n    = tensor<?xf32, #graph.shape<["n"]>>

func.func private @step(%x: !n, %out: !n) -> !n attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  return %out : !n
}
func.func private @add(%x: !n, %y: !n, %out: !n) -> !n attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  return %out : !n
}

// One copy in front of the loop, none in it.
// CHECK-LABEL: func.func @counted
// CHECK-SAME:    %[[X:[a-z0-9]*]]: tensor<?xf32
func.func @counted(%x: !n, %rounds: index) -> !n {
  // CHECK:      %[[A:.*]] = "graph.alloc_tensor"()
  // CHECK-NEXT: "graph.copy"(%[[X]], %[[A]])
  // CHECK-NEXT: %[[B:.*]] = "graph.alloc_tensor"()
  // CHECK-NEXT: %[[R:.*]]:2 = scf.for {{.*}} iter_args(%[[NOW:.*]] = %[[A]], %[[NEXT:.*]] = %[[B]])
  // CHECK-NEXT:   "graph.call_dps"(%[[NOW]], %[[NEXT]])
  // CHECK-NEXT:   scf.yield %[[NEXT]], %[[NOW]]
  // CHECK:      return %[[R]]#0
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %rounds step %c1 iter_args(%a = %x) -> !n {
    %0 = "graph.call_tir"(%a) {callee = @step, sym_args = #no, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
    scf.yield %0 : !n
  }
  return %r : !n
}

// What is nobody else's is not even copied in front of the loop.
// CHECK-LABEL: func.func @goes_on
func.func @goes_on(%x: !n, %c: i1) -> !n {
  // CHECK-NOT:  graph.copy
  // CHECK:      "graph.call_dps"(%{{.*}}, %[[A:[a-z0-9]*]])
  // CHECK:      %[[B:.*]] = "graph.alloc_tensor"()
  // CHECK-NEXT: %[[R:.*]]:2 = scf.while (%[[NOW:.*]] = %[[A]], %[[NEXT:.*]] = %[[B]])
  // CHECK-NEXT:   scf.condition(%{{.*}}) %[[NOW]], %[[NEXT]]
  // CHECK:      ^bb0(%[[OLD:[a-z0-9]*]]: {{.*}}, %[[NEW:[a-z0-9]*]]: {{.*}}):
  // CHECK-NEXT:   "graph.call_dps"(%[[OLD]], %[[NEW]])
  // CHECK-NEXT:   scf.yield %[[NEW]], %[[OLD]]
  %0 = "graph.call_tir"(%x) {callee = @step, sym_args = #no, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  %r = scf.while (%a = %0) : (!n) -> !n {
    scf.condition(%c) %a : !n
  } do {
  ^body(%a: !n):
    %1 = "graph.call_tir"(%a) {callee = @step, sym_args = #no, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
    scf.yield %1 : !n
  }
  return %r : !n
}

// The inner loop has two buffers, and what it leaves goes to that of the outer one.
// CHECK-LABEL: func.func @nested
func.func @nested(%x: !n, %rounds: index) -> !n {
  // CHECK:      scf.for
  // CHECK:        scf.for
  // CHECK-NEXT:     "graph.call_dps"
  // CHECK-NEXT:     scf.yield
  // CHECK:        "graph.copy"
  // CHECK-NEXT:   scf.yield
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %rounds step %c1 iter_args(%a = %x) -> !n {
    %s = scf.for %j = %c0 to %i step %c1 iter_args(%b = %a) -> !n {
      %0 = "graph.call_tir"(%b) {callee = @step, sym_args = #no, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
      scf.yield %0 : !n
    }
    scf.yield %s : !n
  }
  return %r : !n
}

// What is carried on once more is copied, from buffer to buffer.
// CHECK-LABEL: func.func @two_generations
func.func @two_generations(%x: !n, %y: !n, %rounds: index) -> !n {
  // CHECK:      scf.for {{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}, %[[B2:.*]] = %{{.*}}, %[[A2:.*]] = %{{.*}}) ->
  // CHECK-NEXT:   "graph.call_dps"(%[[A]], %[[B]], %[[B2]])
  // CHECK-NEXT:   "graph.copy"(%[[B]], %[[A2]])
  // CHECK-NEXT:   scf.yield %[[A2]], %[[B2]], %[[B]], %[[A]]
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %i = %c0 to %rounds step %c1 iter_args(%a = %x, %b = %y) -> (!n, !n) {
    %0 = "graph.call_tir"(%a, %b) {callee = @add, sym_args = #no, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!n, !n) -> !n
    scf.yield %b, %0 : !n, !n
  }
  return %r#0 : !n
}

// A round may pass on what it was given.
// CHECK-LABEL: func.func @negative_branch
func.func @negative_branch(%x: !n, %rounds: index, %c: i1) -> !n {
  // CHECK:      scf.for
  // CHECK:        scf.if
  // CHECK:        "graph.copy"
  // CHECK-NEXT:   scf.yield
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %rounds step %c1 iter_args(%a = %x) -> !n {
    %s = scf.if %c -> !n {
      %0 = "graph.call_tir"(%a) {callee = @step, sym_args = #no, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
      scf.yield %0 : !n
    } else {
      scf.yield %a : !n
    }
    scf.yield %s : !n
  }
  return %r : !n
}
