// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-verify

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

func.func @make_closure_c1(%x: !x) {
  // expected-error @below {{'graph.make_closure' op names '@nowhere', which is not a graph function}}
  %f = "graph.make_closure"(%x) {callee = @nowhere, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!x) -> (!f)
  return
}

func.func @make_closure_c2(%x: !x) {
  // expected-error @below {{'graph.make_closure' op has 3 operands, but '@scaled' takes 2}}
  %f = "graph.make_closure"(%x, %x, %x) {callee = @scaled, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = #out1} : (!x, !x, !x) -> !f
  return
}

func.func @make_closure_c3(%x: !x) {
  // expected-error @below {{'graph.make_closure' op makes a function of 2 parameters and 1 results, but '@scaled' leaves 1 and 1}}
  %f = "graph.make_closure"(%x) {callee = @scaled, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!x) -> (!g)
  return
}

func.func @make_closure_c3_tensor(%x: !x) {
  // expected-error @below {{'graph.make_closure' op expects one result, a function type}}
  %f = "graph.make_closure"(%x) {callee = @scaled, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!x) -> (!x)
  return
}

func.func @invoke_closure_c1(%x: !x) {
  // expected-error @below {{'graph.invoke_closure' op expects a function as its first operand}}
  %0 = "graph.invoke_closure"(%x, %x) {operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!x, !x) -> !x
  return
}

func.func @invoke_closure_c2(%x: !x) {
  %f = "graph.make_closure"() {callee = @scaled, operandSegmentSizes = #in0, resultSegmentSizes = #out1} : () -> (!g)
  // expected-error @below {{'graph.invoke_closure' op has 1 operands and 1 results, but the function takes 2 and returns 1}}
  %0 = "graph.invoke_closure"(%f, %x) {operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!g, !x) -> !x
  return
}
