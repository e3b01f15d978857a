// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(relax-verify)'

func.func @full_c1(%x: tensor<1xf32>) {
  // expected-error @below {{'graph.full' op expects a fill value of rank 0, but got 'tensor<1 x f32>'}}
  %0 = "graph.full"(%x) {shape = #graph.shape<[2]>} : (tensor<1xf32>) -> tensor<2xf32>
  return
}

func.func @full_c2(%x: tensor<f32>) {
  // expected-error @below {{'graph.full' op expects known dims, but got 'tensor<? x f32>'}}
  %0 = "graph.full"(%x) {shape = #graph.shape<["?"]>} : (tensor<f32>) -> tensor<?xf32>
  return
}

func.func @arange_c1() {
  // expected-error @below {{'graph.arange' op expects known start, stop and step, but got 2 bounds}}
  %0 = "graph.arange"() {bounds = #graph.shape<[0, 4]>, dtype = i64} : () -> tensor<4xi64>
  return
}

func.func @arange_c1_unknown() {
  // expected-error @below {{'graph.arange' op expects known start, stop and step, but got 3 bounds}}
  %0 = "graph.arange"() {bounds = #graph.shape<[0, "?", 1]>, dtype = i64} : () -> tensor<4xi64>
  return
}

func.func @arange_c2() {
  // expected-error @below {{'graph.arange' op expects a positive constant step, but got 0}}
  %0 = "graph.arange"() {bounds = #graph.shape<[0, 4, 0]>, dtype = i64} : () -> tensor<4xi64>
  return
}

func.func @arange_c2_symbolic(%s: !graph.shape_value<["n"]>) {
  // expected-error @below {{'graph.arange' op expects a positive constant step, but got n}}
  %0 = "graph.arange"() {bounds = #graph.shape<[0, 4, "n"]>, dtype = i64} : () -> tensor<4xi64>
  return
}

func.func @arange_c3() {
  // expected-error @below {{'graph.arange' op expects a number dtype, but got i1}}
  %0 = "graph.arange"() {bounds = #graph.shape<[0, 4, 1]>, dtype = i1} : () -> tensor<4xi1>
  return
}

func.func @tril_c1(%x: tensor<4xf32>) {
  // expected-error @below {{'graph.tril' op expects an operand of rank 2 or more, but got 'tensor<4 x f32>'}}
  %0 = "graph.tril"(%x) {k = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

func.func @triu_c1(%x: tensor<f32>) {
  // expected-error @below {{'graph.triu' op expects an operand of rank 2 or more, but got 'tensor<f32>'}}
  %0 = "graph.triu"(%x) {k = 0 : i64} : (tensor<f32>) -> tensor<f32>
  return
}

func.func @negative_length() {
  // expected-error @below {{'graph.arange' op infers result type 'tensor<4xi64>', but has 'tensor<5xi64>'}}
  %0 = "graph.arange"() {bounds = #graph.shape<[0, 4, 1]>, dtype = i64} : () -> tensor<5xi64>
  return
}

func.func @one_hot_c1(%x: tensor<3xf32>, %y: tensor<f32>, %z: tensor<f32>) {
  // expected-error @below {{'graph.one_hot' op expects integer indices, but got f32}}
  %0 = "graph.one_hot"(%x, %y, %z) {axis = 0 : i64, depth = #graph.shape<[5]>} : (tensor<3xf32>, tensor<f32>, tensor<f32>) -> tensor<5x3xf32>
  return
}

func.func @one_hot_c2(%x: tensor<3xi64>, %y: tensor<f32>, %z: tensor<f16>) {
  // expected-error @below {{'graph.one_hot' op expects one element type, but got f32 and f16}}
  %0 = "graph.one_hot"(%x, %y, %z) {axis = 0 : i64, depth = #graph.shape<[5]>} : (tensor<3xi64>, tensor<f32>, tensor<f16>) -> tensor<5x3xf32>
  return
}

func.func @one_hot_c2_rank(%x: tensor<3xi64>, %y: tensor<f32>, %z: tensor<1xf32>) {
  // expected-error @below {{'graph.one_hot' op expects values of rank 0, but got 'tensor<f32>' and 'tensor<1 x f32>'}}
  %0 = "graph.one_hot"(%x, %y, %z) {axis = 0 : i64, depth = #graph.shape<[5]>} : (tensor<3xi64>, tensor<f32>, tensor<1xf32>) -> tensor<5x3xf32>
  return
}

func.func @one_hot_c3(%x: tensor<3xi64>, %y: tensor<f32>, %z: tensor<f32>) {
  // expected-error @below {{'graph.one_hot' op expects one known depth, but got 2}}
  %0 = "graph.one_hot"(%x, %y, %z) {axis = 0 : i64, depth = #graph.shape<[1, 2]>} : (tensor<3xi64>, tensor<f32>, tensor<f32>) -> tensor<5x3xf32>
  return
}

func.func @one_hot_c3_unknown(%x: tensor<3xi64>, %y: tensor<f32>, %z: tensor<f32>) {
  // expected-error @below {{'graph.one_hot' op expects one known depth, but got 1}}
  %0 = "graph.one_hot"(%x, %y, %z) {axis = 0 : i64, depth = #graph.shape<["?"]>} : (tensor<3xi64>, tensor<f32>, tensor<f32>) -> tensor<5x3xf32>
  return
}

func.func @one_hot_c4(%x: tensor<3xi64>, %y: tensor<f32>, %z: tensor<f32>) {
  // expected-error @below {{'graph.one_hot' op has axis 2, but rank 2 accepts -2 to 1}}
  %0 = "graph.one_hot"(%x, %y, %z) {axis = 2 : i64, depth = #graph.shape<[5]>} : (tensor<3xi64>, tensor<f32>, tensor<f32>) -> tensor<5x3xf32>
  return
}

func.func @eye_c1() {
  // expected-error @below {{'graph.eye' op expects two known dims, but got 1}}
  %0 = "graph.eye"() {dtype = f32, k = 0 : i64, shape = #graph.shape<[2]>} : () -> tensor<2x2xf32>
  return
}

func.func @eye_c2() {
  // expected-error @below {{'graph.eye' op expects a dtype of numbers or i1, but got index}}
  %0 = "graph.eye"() {dtype = index, k = 0 : i64, shape = #graph.shape<[2, 2]>} : () -> tensor<2x2xf32>
  return
}
