// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-resolve-closures

#in0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!x = tensor<?xf32, #graph.shape<["n"]>>
!k = tensor<?xf32, #graph.shape<["k"]>>
!f = (!x) -> !x
!g = (!x, !x) -> !x

// expected-error @below {{'func.func' op takes or returns a function, which only private functions do}}
func.func @exported(%f: !f, %x: !x) -> !x {
  %0 = "graph.invoke_closure"(%f, %x) {operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!f, !x) -> !x
  return %0 : !x
}

// -----

#in0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!x = tensor<?xf32, #graph.shape<["n"]>>
!k = tensor<?xf32, #graph.shape<["k"]>>
!f = (!x) -> !x
!g = (!x, !x) -> !x

func.func private @scaled(%w: !k, %x: !k) -> !k {
  %0 = "graph.multiply"(%w, %x) : (!k, !k) -> !k
  return %0 : !k
}

func.func @carried(%x: !x, %k: index) -> !x {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %f = "graph.make_closure"(%x) {callee = @scaled, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!x) -> (!f)
  %h:2 = scf.for %i = %zero to %k step %one iter_args(%a = %f, %s = %x) -> (!f, !x) {
    %0 = "graph.exp"(%s) : (!x) -> !x
    // expected-error @below {{'graph.make_closure' op captures a value of the loop that yields it; compute it before the loop}}
    %g = "graph.make_closure"(%0) {callee = @scaled, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!x) -> (!f)
    scf.yield %g, %0 : !f, !x
  }
  %1 = "graph.invoke_closure"(%h#0, %x) {operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!f, !x) -> !x
  return %1 : !x
}

// -----

#in0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!x = tensor<?xf32, #graph.shape<["n"]>>
!k = tensor<?xf32, #graph.shape<["k"]>>
!f = (!x) -> !x
!g = (!x, !x) -> !x

func.func private @scaled(%w: !k, %x: !k) -> !k {
  %0 = "graph.multiply"(%w, %x) : (!k, !k) -> !k
  return %0 : !k
}

func.func @inner(%x: !x, %c: i1) -> !x {
  %h = scf.if %c -> (!f) {
    %w = "graph.exp"(%x) : (!x) -> !x
    // expected-error @below {{'graph.make_closure' op captures a value of the branch that yields it; compute it before the branch}}
    %f = "graph.make_closure"(%w) {callee = @scaled, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!x) -> (!f)
    scf.yield %f : !f
  } else {
    %g = "graph.make_closure"(%x) {callee = @scaled, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!x) -> (!f)
    scf.yield %g : !f
  }
  %0 = "graph.invoke_closure"(%h, %x) {operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!f, !x) -> !x
  return %0 : !x
}

// -----

#in0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!x = tensor<?xf32, #graph.shape<["n"]>>
!k = tensor<?xf32, #graph.shape<["k"]>>
!f = (!x) -> !x
!g = (!x, !x) -> !x

func.func private @composed(%f: !f, %g: !f, %x: !x) -> !x {
  %0 = "graph.invoke_closure"(%f, %x) {operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!f, !x) -> !x
  %1 = "graph.invoke_closure"(%g, %0) {operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!f, !x) -> !x
  return %1 : !x
}
func.func private @exp(%x: !x) -> !x {
  %0 = "graph.exp"(%x) : (!x) -> !x
  return %0 : !x
}
func.func private @grow(%f: !f, %x: !x) -> !x {
  %g = "graph.make_closure"(%f, %f) {callee = @composed, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!f, !f) -> (!f)
  // expected-error @below {{'graph.call' op takes a function of more than 500 functions}}
  %0 = "graph.call"(%g, %x) {callee = @grow, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!f, !x) -> !x
  return %0 : !x
}
func.func @main(%x: !x) -> !x {
  %f = "graph.make_closure"() {callee = @exp, operandSegmentSizes = #in0, resultSegmentSizes = #out1} : () -> (!f)
  %0 = "graph.call"(%f, %x) {callee = @grow, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!f, !x) -> !x
  return %0 : !x
}

// -----

#in0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!x = tensor<?xf32, #graph.shape<["n"]>>
!k = tensor<?xf32, #graph.shape<["k"]>>
!f = (!x) -> !x
!g = (!x, !x) -> !x

func.func private @more(%x: !x) -> (!f) {
  %f = "graph.call"(%x) {callee = @more, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!x) -> (!f)
  return %f : !f
}
func.func @main(%x: !x) -> !x {
  // expected-error @below {{'graph.call' op calls '@more', which calls itself and returns a function}}
  %f = "graph.call"(%x) {callee = @more, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!x) -> (!f)
  %0 = "graph.invoke_closure"(%f, %x) {operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!f, !x) -> !x
  return %0 : !x
}
