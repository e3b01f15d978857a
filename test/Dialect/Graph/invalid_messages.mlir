// RUN: relax-opt %s --verify-diagnostics --relax-verify

#in0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>

func.func @print_c1(%x: tensor<4xf32>, %u: tensor<*xf32>, %b: i1, %i: index, %e: tensor<1xi1>) {
  // expected-error @below {{'graph.print' op shows 0 values, but has 1}}
  "graph.print"(%x) {format = "none", operandSegmentSizes = #in1, resultSegmentSizes = #out0} : (tensor<4xf32>) -> ()
  return
}

func.func @print_c1_malformed(%x: tensor<4xf32>, %u: tensor<*xf32>, %b: i1, %i: index, %e: tensor<1xi1>) {
  // expected-error @below {{'graph.print' op has a malformed 'format': Single '{' encountered in format string}}
  "graph.print"(%x) {format = "{", operandSegmentSizes = #in1, resultSegmentSizes = #out0} : (tensor<4xf32>) -> ()
  return
}

func.func @print_c1_named(%x: tensor<4xf32>, %u: tensor<*xf32>, %b: i1, %i: index, %e: tensor<1xi1>) {
  // expected-error @below {{'graph.print' op expects each value of 'format' to be '{}'}}
  "graph.print"(%x) {format = "{0}", operandSegmentSizes = #in1, resultSegmentSizes = #out0} : (tensor<4xf32>) -> ()
  return
}

func.func @print_c2(%x: tensor<4xf32>, %u: tensor<*xf32>, %b: i1, %i: index, %e: tensor<1xi1>) {
  // expected-error @below {{'graph.print' op expects tensors of known rank, scalars and shape values, but value 0 is 'tensor<*xf32>'}}
  "graph.print"(%u) {format = "{}", operandSegmentSizes = #in1, resultSegmentSizes = #out0} : (tensor<*xf32>) -> ()
  return
}

func.func @assert_c1(%x: tensor<4xf32>, %u: tensor<*xf32>, %b: i1, %i: index, %e: tensor<1xi1>) {
  // expected-error @below {{'graph.assert' op shows 0 values, but has 1}}
  "graph.assert"(%b, %i) {format = "none", operandSegmentSizes = #in2, resultSegmentSizes = #out0} : (i1, index) -> ()
  return
}

func.func @assert_c2(%x: tensor<4xf32>, %u: tensor<*xf32>, %b: i1, %i: index, %e: tensor<1xi1>) {
  // expected-error @below {{'graph.assert' op expects tensors of known rank, scalars and shape values, but value 0 is 'tensor<*xf32>'}}
  "graph.assert"(%b, %u) {format = "{}", operandSegmentSizes = #in2, resultSegmentSizes = #out0} : (i1, tensor<*xf32>) -> ()
  return
}

func.func @assert_c3_none(%x: tensor<4xf32>, %u: tensor<*xf32>, %b: i1, %i: index, %e: tensor<1xi1>) {
  // expected-error @below {{'graph.assert' op expects a condition}}
  "graph.assert"() {format = "", operandSegmentSizes = #in0, resultSegmentSizes = #out0} : () -> ()
  return
}

func.func @assert_c3(%x: tensor<4xf32>, %u: tensor<*xf32>, %b: i1, %i: index, %e: tensor<1xi1>) {
  // expected-error @below {{'graph.assert' op expects a condition of 'i1', but got 'index'}}
  "graph.assert"(%i) {format = "", operandSegmentSizes = #in1, resultSegmentSizes = #out0} : (index) -> ()
  return
}

func.func @assert_c3_rank(%x: tensor<4xf32>, %u: tensor<*xf32>, %b: i1, %i: index, %e: tensor<1xi1>) {
  // expected-error @below {{'graph.assert' op expects a condition of 'i1', but got 'tensor<1xi1>'}}
  "graph.assert"(%e) {format = "", operandSegmentSizes = #in1, resultSegmentSizes = #out0} : (tensor<1xi1>) -> ()
  return
}

func.func @print_c2_small_float(%x: tensor<4xf8E4M3FN>) {
  // expected-error @below {{'graph.print' op shows no elements of f8E4M3FN: convert them to f32}}
  "graph.print"(%x) {format = "{}", operandSegmentSizes = #in1, resultSegmentSizes = #out0} : (tensor<4xf8E4M3FN>) -> ()
  return
}
