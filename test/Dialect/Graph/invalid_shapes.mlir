// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(relax-verify)'

func.func @match_cast_c1(%x: tensor<4xf32>) {
  // expected-error @below {{'graph.match_cast' op asserts 'tensor<5xf32>', which 'tensor<4xf32>' can never be}}
  %0 = "graph.match_cast"(%x) : (tensor<4xf32>) -> tensor<5xf32>
  return
}

func.func @match_cast_c1_symbolic(%x: tensor<?xf32, #graph.shape<["n"]>>) {
  // expected-error @below {{'graph.match_cast' op asserts}}
  %0 = "graph.match_cast"(%x) : (tensor<?xf32, #graph.shape<["n"]>>) -> tensor<?xf32, #graph.shape<["n + 1"]>>
  return
}

func.func @match_cast_c1_rank(%x: tensor<?xf32>) {
  // expected-error @below {{'graph.match_cast' op asserts}}
  %0 = "graph.match_cast"(%x) : (tensor<?xf32>) -> tensor<?x4xf32, #graph.shape<["n", 4]>>
  return
}

func.func @match_cast_c1_element(%x: tensor<?xf32>) {
  // expected-error @below {{'graph.match_cast' op asserts 'tensor<?xf64>', which 'tensor<?xf32>' can never be}}
  %0 = "graph.match_cast"(%x) : (tensor<?xf32>) -> tensor<?xf64>
  return
}

func.func @shape_of_c1(%x: tensor<*xf32>) {
  // expected-error @below {{'graph.shape_of' op expects a tensor of known rank, but got 'tensor<*xf32>'}}
  %0 = "graph.shape_of"(%x) : (tensor<*xf32>) -> !graph.shape_value<[4]>
  return
}

func.func @shape_of_c1_object(%x: !graph.object) {
  // expected-error @below {{'graph.shape_of' op expects a tensor, but got '!graph.object'}}
  %0 = "graph.shape_of"(%x) : (!graph.object) -> !graph.shape_value<[4]>
  return
}

func.func @make_shape_c1() {
  // expected-error @below {{'graph.make_shape' op expects known dims, but got '!graph.shape_value<["?"]>'}}
  %0 = "graph.make_shape"() {dims = #graph.shape<["?"]>} : () -> !graph.shape_value<["?"]>
  return
}

func.func @require_c1() {
  // expected-error @below {{'graph.require' op expects at least one fact}}
  "graph.require"() {any_of = [], by = "graph.add"} : () -> ()
  return
}

func.func @is_present_c1(%x: tensor<4xf32>) {
  // expected-error @below {{'graph.is_present' op expects an argument of an exported function, marked 'graph.optional'}}
  %0 = "graph.is_present"(%x) : (tensor<4xf32>) -> i1
  return
}

// -----

func.func @is_present_c2(%x: tensor<4xf32> {graph.optional}) -> i32 {
  // expected-error @below {{'graph.is_present' op has a result of 'i32', but tells an 'i1'}}
  %0 = "graph.is_present"(%x) : (tensor<4xf32>) -> i32
  return %0 : i32
}

// -----

func.func @tensor_to_shape_c1(%x: tensor<?xi64>) {
  // expected-error @below {{'graph.tensor_to_shape' op expects a tensor of one constant dim, but got 'tensor<? x i64>'}}
  %0 = "graph.tensor_to_shape"(%x) : (tensor<?xi64>) -> !graph.shape_value<["?"]>
  return
}

func.func @tensor_to_shape_c1_count(%x: tensor<4097xi64>) {
  // expected-error @below {{expects at most 4096 elements, but got 'tensor<4097 x i64>'}}
  %0 = "graph.tensor_to_shape"(%x) : (tensor<4097xi64>) -> !graph.shape_value<["?"]>
  return
}

func.func @tensor_to_shape_c1_rank(%x: tensor<2x1xi64>) {
  // expected-error @below {{'graph.tensor_to_shape' op expects a tensor of one constant dim, but got 'tensor<2 x 1 x i64>'}}
  %0 = "graph.tensor_to_shape"(%x) : (tensor<2x1xi64>) -> !graph.shape_value<["?"]>
  return
}

func.func @tensor_to_shape_c2(%x: tensor<1xf32>) {
  // expected-error @below {{'graph.tensor_to_shape' op expects elements of i64 or index, but got 'tensor<1 x f32>'}}
  %0 = "graph.tensor_to_shape"(%x) : (tensor<1xf32>) -> !graph.shape_value<["?"]>
  return
}

func.func @match_cast_c1_shape(%x: !graph.shape_value<["?", "?"]>) {
  // expected-error @below {{'graph.match_cast' op asserts '!graph.shape_value<["k"]>', which '!graph.shape_value<["?", "?"]>' can never be}}
  %0 = "graph.match_cast"(%x) : (!graph.shape_value<["?", "?"]>) -> !graph.shape_value<["k"]>
  return
}

// -----

func.func @match_cast_c1_callable(%x: tensor<4xf32>) {
  // expected-error @below {{'graph.match_cast' op asserts '!graph.callable', which 'tensor<4xf32>' can never be}}
  %0 = "graph.match_cast"(%x) : (tensor<4xf32>) -> !graph.callable
  return
}

// -----

func.func @match_cast_c1_any_tuple(%x: index) {
  // expected-error @below {{'graph.match_cast' op asserts '!graph.any_tuple', which 'index' can never be}}
  %0 = "graph.match_cast"(%x) : (index) -> !graph.any_tuple
  return
}

// -----

func.func @match_cast_c1_tuple(%x: tuple<index, tensor<4xf32>>) {
  %0 = "graph.match_cast"(%x) : (tuple<index, tensor<4xf32>>) -> tuple<!graph.object, tensor<?x!graph.any_element>>
  // expected-error @below {{'graph.match_cast' op asserts 'tuple<!graph.object>', which 'tuple<index, tensor<4xf32>>' can never be}}
  %1 = "graph.match_cast"(%x) : (tuple<index, tensor<4xf32>>) -> tuple<!graph.object>
  return
}

// -----

func.func @operators_want_known_elements(%x: tensor<4x!graph.any_element>) {
  // expected-error @below {{'graph.exp' op expects elements of a known type, but got 'tensor<4 x !graph.any_element>', which graph.match_cast can tell}}
  %0 = "graph.exp"(%x) : (tensor<4x!graph.any_element>) -> tensor<4x!graph.any_element>
  return
}
