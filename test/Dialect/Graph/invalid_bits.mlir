// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-verify

func.func @bitcast_c1(%x: tensor<4xi1>) {
  // expected-error @below {{'graph.bitcast' op expects a number element type, but got i1}}
  %0 = "graph.bitcast"(%x) {dtype = i8} : (tensor<4xi1>) -> tensor<4xi8>
  return
}

// -----

func.func @bitcast_c1_dtype(%x: tensor<4xi8>) {
  // expected-error @below {{'graph.bitcast' op expects a float or integer dtype, but got i1}}
  %0 = "graph.bitcast"(%x) {dtype = i1} : (tensor<4xi8>) -> tensor<4xi1>
  return
}

// -----

func.func @bitcast_c2(%x: tensor<4xf32>) {
  // expected-error @below {{'graph.bitcast' op expects types of as many bits, but got f32 and i64}}
  %0 = "graph.bitcast"(%x) {dtype = i64} : (tensor<4xf32>) -> tensor<4xi64>
  return
}

// -----

func.func @philox_c1(%x: tensor<2xi32>) {
  // expected-error @below {{'graph.philox' op expects a state of two i64, but got 'tensor<2 x i32>'}}
  %0:4 = "graph.philox"(%x) {blocks = #graph.shape<[3]>} : (tensor<2xi32>) -> (tensor<3xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>)
  return
}

// -----

func.func @philox_c1_dim(%x: tensor<3xi64>) {
  // expected-error @below {{'graph.philox' op expects a state of two i64, but got 'tensor<3 x i64>'}}
  %0:4 = "graph.philox"(%x) {blocks = #graph.shape<[3]>} : (tensor<3xi64>) -> (tensor<3xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>)
  return
}

// -----

func.func @philox_c2(%x: tensor<2xi64>) {
  // expected-error @below {{'graph.philox' op expects one count of blocks, but got 2}}
  %0:4 = "graph.philox"(%x) {blocks = #graph.shape<[3, 1]>} : (tensor<2xi64>) -> (tensor<3xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>)
  return
}
