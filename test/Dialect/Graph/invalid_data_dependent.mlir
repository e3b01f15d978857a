// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-verify

func.func @nonzero_c1(%x: tensor<4xsi8>) {
  // expected-error @below {{'graph.nonzero' op expects numeric elements or i1, but got si8}}
  %0 = "graph.nonzero"(%x) : (tensor<4xsi8>) -> tensor<1x?xi64>
  return
}

// -----

func.func @nonzero_c2(%x: tensor<*xf32>) {
  // expected-error @below {{'graph.nonzero' op expects a tensor of known rank, but got 'tensor<*xf32>'}}
  %0 = "graph.nonzero"(%x) : (tensor<*xf32>) -> tensor<?x?xi64>
  return
}

// -----

func.func @unique_c1(%x: tensor<4xsi8>) {
  // expected-error @below {{'graph.unique' op expects numeric elements or i1, but got si8}}
  %0:4 = "graph.unique"(%x) {axes = array<i64>, sorted = true} : (tensor<4xsi8>) -> (tensor<?xsi8>, tensor<?xi64>, tensor<4xi64>, tensor<?xi64>)
  return
}

// -----

func.func @unique_c2(%x: tensor<4x4xf32>) {
  // expected-error @below {{'graph.unique' op expects one axis at most, but got (0, 1)}}
  %0:4 = "graph.unique"(%x) {axes = array<i64: 0, 1>, sorted = true} : (tensor<4x4xf32>) -> (tensor<?xf32>, tensor<?xi64>, tensor<16xi64>, tensor<?xi64>)
  return
}

// -----

func.func @unique_c3(%x: tensor<4x4xf32>) {
  // expected-error @below {{'graph.unique' op has axis 2, but rank 2 accepts -2 to 1}}
  %0:4 = "graph.unique"(%x) {axes = array<i64: 2>, sorted = true} : (tensor<4x4xf32>) -> (tensor<?x4xf32>, tensor<?xi64>, tensor<4xi64>, tensor<?xi64>)
  return
}

// -----

func.func @unique_c4(%x: tensor<*xf32>) {
  // expected-error @below {{'graph.unique' op expects a tensor of known rank, but got 'tensor<*xf32>'}}
  %0:4 = "graph.unique"(%x) {axes = array<i64: 0>, sorted = true} : (tensor<*xf32>) -> (tensor<*xf32>, tensor<?xi64>, tensor<?xi64>, tensor<?xi64>)
  return
}

// -----

func.func @repeat_interleave_c1(%x: tensor<4xf32>, %r: tensor<4xf32>) {
  // expected-error @below {{'graph.repeat_interleave' op expects integer indices, but got f32}}
  %0 = "graph.repeat_interleave"(%x, %r) {axis = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<?xf32>
  return
}

// -----

func.func @repeat_interleave_c1_rank(%x: tensor<4xf32>, %r: tensor<4x1xi64>) {
  // expected-error @below {{'graph.repeat_interleave' op expects counts in a tensor of rank 1, but got 'tensor<4 x 1 x i64>'}}
  %0 = "graph.repeat_interleave"(%x, %r) {axis = 0 : i64} : (tensor<4xf32>, tensor<4x1xi64>) -> tensor<?xf32>
  return
}

// -----

func.func @repeat_interleave_c2(%x: tensor<4xf32>, %r: tensor<4xi64>) {
  // expected-error @below {{'graph.repeat_interleave' op has axis 1, but rank 1 accepts -1 to 0}}
  %0 = "graph.repeat_interleave"(%x, %r) {axis = 1 : i64} : (tensor<4xf32>, tensor<4xi64>) -> tensor<?xf32>
  return
}

// -----

func.func @repeat_interleave_c3(%x: tensor<4xf32>, %r: tensor<3xi64>) {
  // expected-error @below {{'graph.repeat_interleave' op has 3 counts for 4 slices}}
  %0 = "graph.repeat_interleave"(%x, %r) {axis = 0 : i64} : (tensor<4xf32>, tensor<3xi64>) -> tensor<?xf32>
  return
}

// -----

func.func @range_of_c1(%a: tensor<f32>, %b: tensor<i32>) {
  // expected-error @below {{'graph.range_of' op expects one element type, but got f32 and i32}}
  %0 = "graph.range_of"(%a, %b, %a) : (tensor<f32>, tensor<i32>, tensor<f32>) -> tensor<?xf32>
  return
}

// -----

func.func @range_of_c1_bool(%a: tensor<i1>) {
  // expected-error @below {{'graph.range_of' op expects a number element type, but got i1}}
  %0 = "graph.range_of"(%a, %a, %a) : (tensor<i1>, tensor<i1>, tensor<i1>) -> tensor<?xi1>
  return
}

// -----

func.func @range_of_c2(%a: tensor<1xf32>) {
  // expected-error @below {{'graph.range_of' op expects bounds of rank 0, but got 'tensor<1 x f32>'}}
  %0 = "graph.range_of"(%a, %a, %a) : (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<?xf32>
  return
}

// -----

// What is declared of a result is the rest of its dims, too.
func.func @nonzero_result(%x: tensor<4x4xf32>) {
  // expected-error @below {{'graph.nonzero' op infers result type 'tensor<2x?xi64>', but has 'tensor<1x?xi64>'}}
  %0 = "graph.nonzero"(%x) : (tensor<4x4xf32>) -> tensor<1x?xi64>
  return
}
