// RUN: relax-opt %s --verify-diagnostics --relax-lower-calls | FileCheck %s

#in1  = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2  = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
#out2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>
#no   = #graph.shape<[]>

func.func private @fill(%out: tensor<4xf32>) -> tensor<4xf32> attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  return %out : tensor<4xf32>
}

func.func private @exp(%x: tensor<4xf32>, %out: tensor<4xf32>) -> tensor<4xf32> attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  return %out : tensor<4xf32>
}

func.func private @reshape(%x: tensor<4xf32>, %out: tensor<2x2xf32>) -> tensor<2x2xf32> attributes {tir.prim_func, tir.num_outs = 1 : i64, tir.reshape} {
  return %out : tensor<2x2xf32>
}

func.func private @negative(%x: tensor<2x2xf32>, %out: tensor<2x2xf32>) -> tensor<2x2xf32> attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  return %out : tensor<2x2xf32>
}

func.func private @swap(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {tir.prim_func, tir.num_outs = 2 : i64} {
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// Nobody reads the old contents: no copy, through casts and views either.
// CHECK-LABEL: func.func @in_place
// CHECK-SAME:    (%[[X:.*]]: tensor<4xf32> {graph.inout = 0 : i64})
// CHECK-NEXT:    %[[CAST:.*]] = "graph.match_cast"(%[[X]])
// CHECK-NEXT:    "graph.call_dps"(%[[CAST]]) {callee = @fill
// CHECK-NEXT:    return %[[CAST]]
func.func @in_place(%x: tensor<4xf32> {graph.inout = 0 : i64}) -> tensor<4xf32> {
  %0 = "graph.match_cast"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "graph.call_tir_inplace"(%0) {callee = @fill, inplace_indices = array<i64: 0>, sym_args = #no, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// What is the caller's is written only where it says so.
// CHECK-LABEL: func.func @argument_of_the_caller
// CHECK-SAME:    (%[[X:.*]]: tensor<4xf32>)
// CHECK-NEXT:    %[[NEW:.*]] = "graph.alloc_tensor"()
// CHECK-NEXT:    "graph.copy"(%[[X]], %[[NEW]])
// CHECK-NEXT:    "graph.call_dps"(%[[NEW]]) {callee = @fill
// CHECK-NEXT:    return %[[NEW]]
func.func @argument_of_the_caller(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-remark @below {{'graph.call_tir_inplace' copies operand 0 of 'tensor<4xf32>', since argument 0 is not marked graph.inout}}
  %0 = "graph.call_tir_inplace"(%x) {callee = @fill, inplace_indices = array<i64: 0>, sym_args = #no, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @constant
// CHECK:         "graph.copy"
// CHECK-NEXT:    "graph.call_dps"
func.func @constant() -> tensor<4xf32> {
  %x = arith.constant dense<1.0> : tensor<4xf32>
  // expected-remark @below {{since it is a constant}}
  %0 = "graph.call_tir_inplace"(%x) {callee = @fill, inplace_indices = array<i64: 0>, sym_args = #no, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// The update works on a copy, which comes back to the caller in the end.
// CHECK-LABEL: func.func @view_read_later
// CHECK-SAME:    (%[[X:.*]]: tensor<4xf32> {graph.inout = 1 : i64})
// CHECK-NEXT:    %[[OLD:.*]] = "graph.view"(%[[X]])
// CHECK-NEXT:    %[[NEW:.*]] = "graph.alloc_tensor"()
// CHECK-NEXT:    "graph.copy"(%[[X]], %[[NEW]])
// CHECK-NEXT:    "graph.call_dps"(%[[NEW]]) {callee = @fill
// CHECK-NEXT:    %[[Y:.*]] = "graph.alloc_tensor"()
// CHECK-NEXT:    "graph.call_dps"(%[[OLD]], %[[Y]]) {callee = @negative
// CHECK-NEXT:    "graph.copy"(%[[NEW]], %[[X]])
// CHECK-NEXT:    return %[[Y]], %[[X]]
func.func @view_read_later(%x: tensor<4xf32> {graph.inout = 1 : i64}) -> (tensor<2x2xf32>, tensor<4xf32>) {
  %0 = "graph.call_tir"(%x) {callee = @reshape, sym_args = #no, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<2x2xf32>
  // expected-remark @below {{since 'graph.call_tir' needs the old contents later}}
  %1 = "graph.call_tir_inplace"(%x) {callee = @fill, inplace_indices = array<i64: 0>, sym_args = #no, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "graph.call_tir"(%0) {callee = @negative, sym_args = #no, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  return %2, %1 : tensor<2x2xf32>, tensor<4xf32>
}

// A kernel has one name for what it updates.
// CHECK-LABEL: func.func @updated_twice
// CHECK-SAME:    (%[[X:.*]]: tensor<4xf32> {graph.inout = 1 : i64})
// CHECK-NEXT:    %[[NEW:.*]] = "graph.alloc_tensor"()
// CHECK-NEXT:    "graph.copy"(%[[X]], %[[NEW]])
// CHECK-NEXT:    "graph.call_dps"(%[[NEW]], %[[X]]) {callee = @swap
// CHECK-NEXT:    return %[[NEW]], %[[X]]
func.func @updated_twice(%x: tensor<4xf32> {graph.inout = 1 : i64}) -> (tensor<4xf32>, tensor<4xf32>) {
  // expected-remark @below {{copies operand 0 of 'tensor<4xf32>', since operand 1 may be the same memory}}
  %0:2 = "graph.call_tir_inplace"(%x, %x) {callee = @swap, inplace_indices = array<i64: 0, 1>, sym_args = #no, operandSegmentSizes = #in2, resultSegmentSizes = #out2} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %0#0, %0#1 : tensor<4xf32>, tensor<4xf32>
}

// Results trade places: what is overwritten first is saved.
// CHECK-LABEL: func.func @exchange
// CHECK-SAME:    (%[[X:[a-z0-9]*]]: tensor<4xf32> {graph.inout = 0 : i64}, %[[Y:[a-z0-9]*]]: tensor<4xf32>
// CHECK:         "graph.copy"(%[[Y]], %[[A:[a-z0-9]+]])
// CHECK:         "graph.copy"(%[[X]], %[[B:[a-z0-9]+]])
// CHECK-NEXT:    "graph.copy"(%[[A]], %[[X]])
// CHECK-NEXT:    "graph.copy"(%[[B]], %[[Y]])
// CHECK-NEXT:    return %[[X]], %[[Y]]
func.func @exchange(%x: tensor<4xf32> {graph.inout = 0 : i64}, %y: tensor<4xf32> {graph.inout = 1 : i64}) -> (tensor<4xf32>, tensor<4xf32>) {
  return %y, %x : tensor<4xf32>, tensor<4xf32>
}

// A branch may update what only it and what follows it by its result need.
// CHECK-LABEL: func.func @update_in_branch
// CHECK-SAME:    (%[[X:[a-z0-9]*]]: tensor<4xf32> {graph.inout = 0 : i64}
// CHECK-NEXT:    %[[R:.*]] = scf.if
// CHECK-NEXT:      "graph.call_dps"(%[[X]]) {callee = @fill
// CHECK-NEXT:      scf.yield %[[X]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %[[X]]
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[R]]
func.func @update_in_branch(%x: tensor<4xf32> {graph.inout = 0 : i64}, %c: i1) -> tensor<4xf32> {
  %0 = scf.if %c -> tensor<4xf32> {
    %1 = "graph.call_tir_inplace"(%x) {callee = @fill, inplace_indices = array<i64: 0>, sym_args = #no, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// Calls in branches are calls too; what is read behind them is not updated in one of them.
// CHECK-LABEL: func.func @read_behind_branches
// CHECK:         scf.if
// CHECK:           "graph.call_dps"(%[[T:[a-z0-9]+]], %{{.*}}) {callee = @exp
// CHECK:         } else {
// CHECK:           "graph.copy"(%[[T]], %[[NEW:[a-z0-9]+]])
// CHECK-NEXT:      "graph.call_dps"(%[[NEW]]) {callee = @fill
// CHECK-NEXT:      scf.yield %[[NEW]]
func.func @read_behind_branches(%x: tensor<4xf32>, %c: i1) -> (tensor<4xf32>, tensor<4xf32>) {
  %t = "graph.call_tir"(%x) {callee = @exp, sym_args = #no, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
  %0 = scf.if %c -> tensor<4xf32> {
    %1 = "graph.call_tir"(%t) {callee = @exp, sym_args = #no, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  } else {
    // expected-remark @below {{since 'func.return' needs the old contents later}}
    %1 = "graph.call_tir_inplace"(%t) {callee = @fill, inplace_indices = array<i64: 0>, sym_args = #no, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  }
  return %0, %t : tensor<4xf32>, tensor<4xf32>
}

// The other branch is no later read.
// CHECK-LABEL: func.func @negative_other_branch
// CHECK-NOT:     "graph.copy"
// CHECK:         return
func.func @negative_other_branch(%x: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  %t = "graph.call_tir"(%x) {callee = @exp, sym_args = #no, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
  %0 = scf.if %c -> tensor<4xf32> {
    %1 = "graph.call_tir_inplace"(%t) {callee = @fill, inplace_indices = array<i64: 0>, sym_args = #no, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  } else {
    %1 = "graph.call_tir"(%t) {callee = @exp, sym_args = #no, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// A loop that updates what it carries works on one memory.
// CHECK-LABEL: func.func @update_in_loop
// CHECK-SAME:    (%[[X:[a-z0-9]*]]: tensor<4xf32> {graph.inout = 0 : i64}
// CHECK:         scf.for {{.*}} iter_args(%[[A:[a-z0-9]+]] = %[[X]])
// CHECK-NEXT:      "graph.call_dps"(%[[A]]) {callee = @fill
// CHECK-NEXT:      scf.yield %[[A]]
func.func @update_in_loop(%x: tensor<4xf32> {graph.inout = 0 : i64}, %n: index) -> tensor<4xf32> {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = scf.for %i = %0 to %n step %1 iter_args(%a = %x) -> tensor<4xf32> {
    %3 = "graph.call_tir_inplace"(%a) {callee = @fill, inplace_indices = array<i64: 0>, sym_args = #no, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %3 : tensor<4xf32>
  }
  return %2 : tensor<4xf32>
}

// If that memory is not the loop's to write, it takes a copy once, not in each round.
// CHECK-LABEL: func.func @copy_for_loop
// CHECK-SAME:    (%[[X:[a-z0-9]*]]: tensor<4xf32>
// CHECK:         "graph.copy"(%[[X]], %[[NEW:[a-z0-9]+]])
// CHECK-NEXT:    scf.for {{.*}} iter_args(%[[A:[a-z0-9]+]] = %[[NEW]])
// CHECK-NEXT:      "graph.call_dps"(%[[A]]) {callee = @fill
// CHECK-NEXT:      scf.yield %[[A]]
func.func @copy_for_loop(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  // expected-remark @below {{'scf.for' copies operand 3 of 'tensor<4xf32>', since argument 0 is not marked graph.inout}}
  %2 = scf.for %i = %0 to %n step %1 iter_args(%a = %x) -> tensor<4xf32> {
    %3 = "graph.call_tir_inplace"(%a) {callee = @fill, inplace_indices = array<i64: 0>, sym_args = #no, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %3 : tensor<4xf32>
  }
  return %2 : tensor<4xf32>
}

// What it updates may be what it carries under another shape.
// CHECK-LABEL: func.func @copy_for_view
// CHECK-SAME:    (%[[X:[a-z0-9]*]]: tensor<4xf32>
// CHECK:         "graph.copy"(%[[X]], %[[NEW:[a-z0-9]+]])
// CHECK-NEXT:    scf.for {{.*}} iter_args(%[[A:[a-z0-9]+]] = %[[NEW]])
// CHECK-NEXT:      %[[V:.*]] = "graph.match_cast"(%[[A]])
// CHECK-NEXT:      "graph.call_dps"(%[[V]]) {callee = @fill
func.func @copy_for_view(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  // expected-remark @below {{'scf.for' copies operand 3 of 'tensor<4xf32>', since argument 0 is not marked graph.inout}}
  %2 = scf.for %i = %0 to %n step %1 iter_args(%a = %x) -> tensor<4xf32> {
    %3 = "graph.match_cast"(%a) : (tensor<4xf32>) -> tensor<4xf32>
    %4 = "graph.call_tir_inplace"(%3) {callee = @fill, inplace_indices = array<i64: 0>, sym_args = #no, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %4 : tensor<4xf32>
  }
  return %2 : tensor<4xf32>
}

// The next round begins with what comes from outside: each updates a copy.
// CHECK-LABEL: func.func @update_of_outer
// CHECK:         scf.for
// CHECK-NEXT:      "graph.alloc_tensor"
// CHECK-NEXT:      "graph.copy"(%[[T:[a-z0-9]+]], %[[NEW:[a-z0-9]+]])
// CHECK-NEXT:      "graph.call_dps"(%[[NEW]]) {callee = @fill
func.func @update_of_outer(%x: tensor<4xf32>, %n: index) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %t = "graph.call_tir"(%x) {callee = @exp, sym_args = #no, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
  scf.for %i = %0 to %n step %1 {
    // expected-remark @below {{since 'graph.call_tir_inplace' needs the old contents later}}
    %3 = "graph.call_tir_inplace"(%t) {callee = @fill, inplace_indices = array<i64: 0>, sym_args = #no, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
  }
  return
}

// What a round makes anew, the next one finds in memory that is none of its own.
// CHECK-LABEL: func.func @carried
// CHECK-SAME:    (%[[X:[a-z0-9]*]]: tensor<4xf32>
// CHECK:         %[[BUFFER:.*]] = "graph.alloc_tensor"()
// CHECK-NEXT:    "graph.copy"(%[[X]], %[[BUFFER]])
// CHECK-NEXT:    %[[R:.*]] = scf.for {{.*}} iter_args(%[[A:[a-z0-9]+]] = %[[BUFFER]])
// CHECK-NEXT:      %[[NEW:.*]] = "graph.alloc_tensor"()
// CHECK-NEXT:      "graph.call_dps"(%[[A]], %[[NEW]]) {callee = @exp
// CHECK-NEXT:      "graph.copy"(%[[NEW]], %[[BUFFER]])
// CHECK-NEXT:      scf.yield %[[BUFFER]]
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[R]]
func.func @carried(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = scf.for %i = %0 to %n step %1 iter_args(%a = %x) -> tensor<4xf32> {
    %3 = "graph.call_tir"(%a) {callee = @exp, sym_args = #no, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %3 : tensor<4xf32>
  }
  return %2 : tensor<4xf32>
}

// The second tensor of a round is the first of the one before: it is saved before that is written.
// CHECK-LABEL: func.func @carried_on
// CHECK:         scf.while (%[[A:[a-z0-9]*]] = %[[P:[a-z0-9]+]], %[[B:[a-z0-9]+]] = %[[Q:[a-z0-9]+]])
// CHECK:           "graph.call_dps"(%[[C:[a-z0-9]+]], %[[NEW:[a-z0-9]+]]) {callee = @exp
// CHECK:           "graph.copy"(%[[C]], %[[SAVED:[a-z0-9]+]])
// CHECK-NEXT:      "graph.copy"(%[[NEW]], %[[P]])
// CHECK-NEXT:      "graph.copy"(%[[SAVED]], %[[Q]])
// CHECK-NEXT:      scf.yield %[[P]], %[[Q]]
func.func @carried_on(%x: tensor<4xf32>, %y: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  %0:2 = scf.while (%a = %x, %b = %y) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    scf.condition(%c) %a, %b : tensor<4xf32>, tensor<4xf32>
  } do {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    %1 = "graph.call_tir"(%a) {callee = @exp, sym_args = #no, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1, %a : tensor<4xf32>, tensor<4xf32>
  }
  return %0#1 : tensor<4xf32>
}

"lib.function"() {sym_name = "any", c_symbol = "any", convention = "dlpack", libraries = ["python"]} : () -> ()

// A library's function that updates an operand: the memory of the result, unless that is needed.
// CHECK-LABEL: func.func @library
// CHECK:       %[[X:.*]] = "graph.alloc_tensor"
// CHECK:       "graph.call_dps"(%arg0, %[[X]]) {callee = @exp
// CHECK:       "graph.call_dps"(%[[X]]) {callee = @any, num_outs = 1 : i64, {{.*}}updates = array<i64: 0>}
// CHECK:       return %[[X]]
func.func @library(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "graph.call_tir"(%x) {callee = @exp, sym_args = #no, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "graph.call_library_inplace"(%0) {callee = @any, inplace_indices = array<i64: 0>, sym_args = #no, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// CHECK-LABEL: func.func @library_copies
// CHECK:       %[[Y:.*]] = "graph.alloc_tensor"
// CHECK:       "graph.copy"(%arg0, %[[Y]])
// CHECK:       "graph.call_dps"(%[[Y]]) {callee = @any
// CHECK:       return %[[Y]], %arg0
func.func @library_copies(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // expected-remark @below {{'graph.call_library_inplace' copies operand 0 of 'tensor<4xf32>', since argument 0 is not marked graph.inout}}
  %0 = "graph.call_library_inplace"(%x) {callee = @any, inplace_indices = array<i64: 0>, sym_args = #no, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %x : tensor<4xf32>, tensor<4xf32>
}
