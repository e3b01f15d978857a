// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-verify

func.func @tuple_c1(%x: f32, %k: index) {
  // expected-error @below {{'graph.tuple' op makes 'tuple<f32, index>', but has results (tuple<index, f32>)}}
  %0 = "graph.tuple"(%x, %k) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32, index) -> tuple<index, f32>
  return
}

// -----

func.func @tuple_get_c1(%x: tensor<4xf32>, %t: tuple<f32>) {
  // expected-error @below {{'graph.tuple_get' op expects a tuple, but got 'tensor<4xf32>'}}
  %0 = "graph.tuple_get"(%x) {index = 0 : i64} : (tensor<4xf32>) -> f32
  return
}

// -----

func.func @tuple_get_c2(%t: tuple<f32, index>) {
  // expected-error @below {{'graph.tuple_get' op has index 2, but the tuple has 2 elements}}
  %0 = "graph.tuple_get"(%t) {index = 2 : i64} : (tuple<f32, index>) -> f32
  return
}

// -----

func.func @tuple_get_c2_negative(%t: tuple<f32, index>) {
  // expected-error @below {{'graph.tuple_get' op has index -1, but the tuple has 2 elements}}
  %0 = "graph.tuple_get"(%t) {index = -1 : i64} : (tuple<f32, index>) -> f32
  return
}

// -----

func.func @tuple_get_c3(%t: tuple<f32, tuple<index>>) {
  // expected-error @below {{'graph.tuple_get' op has the result 'index', but the element is 'tuple<index>'}}
  %0 = "graph.tuple_get"(%t) {index = 1 : i64} : (tuple<f32, tuple<index>>) -> index
  return
}

// -----

// Flattened, the tuples of the call would be those of the callee.
func.func @call_c2_nesting(%t: tuple<f32, tuple<f32>>) {
  // expected-error @below {{'graph.call' op passes or returns other tuples than '@callee'}}
  "graph.call"(%t) {callee = @callee, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : (tuple<f32, tuple<f32>>) -> ()
  return
}
func.func private @callee(%t: tuple<tuple<f32>, f32>) {
  return
}

// -----

// What the elements say is checked as of other values.
func.func @call_c2_element(%t: tuple<tensor<4xf32>, tensor<5xf32>>) {
  // expected-error @below {{'graph.call' op passes operand 1, whose dim 0 is 5 instead of 4, to '@callee'}}
  "graph.call"(%t) {callee = @callee, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : (tuple<tensor<4xf32>, tensor<5xf32>>) -> ()
  return
}
!n = tensor<?xf32, #graph.shape<["n"]>>
func.func private @callee(%t: tuple<!n, !n>) {
  return
}

// -----

// expected-error @below {{'func.func' op has argument 0 updated as result 0, which it cannot be}}
func.func @negative_updated_otherwise(%t: tuple<tensor<4xf32>> {graph.inout = 0 : i64}) -> tensor<4xf32> {
  %0 = "graph.tuple_get"(%t) {index = 0 : i64} : (tuple<tensor<4xf32>>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @negative_other_op(%c: i1, %t: tuple<f32>) {
  // expected-error @below {{'arith.select' op takes or makes a tuple, which only graph.tuple, graph.tuple_get, graph.match_cast, graph.call and control flow do}}
  %0 = arith.select %c, %t, %t : tuple<f32>
  return
}

// -----

// expected-error @below {{'func.func' op has 'graph.argument_tree' that is [0, 0]; expects nested arrays of 0 to 1 in order}}
func.func @negative_tree(%x: f32, %y: f32) attributes {graph.argument_tree = [0, 0]} {
  return
}

// -----

func.func @tuple_get_c3_any(%t: !graph.any_tuple) {
  // expected-error @below {{'graph.tuple_get' op has the result 'index', but the element is '!graph.object'}}
  %0 = "graph.tuple_get"(%t) {index = 3 : i64} : (!graph.any_tuple) -> index
  return
}

// -----

func.func @tuple_get_c2_any(%t: !graph.any_tuple) {
  // expected-error @below {{'graph.tuple_get' op expects a tuple, but got '!graph.any_tuple'}}
  %0 = "graph.tuple_get"(%t) {index = -1 : i64} : (!graph.any_tuple) -> !graph.object
  return
}
