// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(relax-verify)'

func.func @scatter_elements_c1(%x: tensor<9x4xf32>, %y: tensor<3x2xf32>, %z: tensor<3x2xf32>) {
  // expected-error @below {{'graph.scatter_elements' op expects integer indices, but got f32}}
  %0 = "graph.scatter_elements"(%x, %y, %z) {axis = 0 : i64, reduction = "add"} : (tensor<9x4xf32>, tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<9x4xf32>
  return
}

func.func @scatter_elements_c2(%x: tensor<9x4xf32>, %y: tensor<3x2xi64>, %z: tensor<3x2xi32>) {
  // expected-error @below {{'graph.scatter_elements' op expects one element type, but got f32 and i32}}
  %0 = "graph.scatter_elements"(%x, %y, %z) {axis = 0 : i64, reduction = "add"} : (tensor<9x4xf32>, tensor<3x2xi64>, tensor<3x2xi32>) -> tensor<9x4xf32>
  return
}

func.func @scatter_elements_c2_number(%x: tensor<9x4xi1>, %y: tensor<3x2xi64>, %z: tensor<3x2xi1>) {
  // expected-error @below {{'graph.scatter_elements' op expects a number element type, but got i1}}
  %0 = "graph.scatter_elements"(%x, %y, %z) {axis = 0 : i64, reduction = "add"} : (tensor<9x4xi1>, tensor<3x2xi64>, tensor<3x2xi1>) -> tensor<9x4xi1>
  return
}

func.func @scatter_elements_c3(%x: tensor<9x4xf32>, %y: tensor<3x2xi64>, %z: tensor<3x2xf32>) {
  // expected-error @below {{'graph.scatter_elements' op expects one of none, add, mul, max, min, but got 'mean'}}
  %0 = "graph.scatter_elements"(%x, %y, %z) {axis = 0 : i64, reduction = "mean"} : (tensor<9x4xf32>, tensor<3x2xi64>, tensor<3x2xf32>) -> tensor<9x4xf32>
  return
}

func.func @scatter_elements_c4(%x: tensor<9x4xf32>, %y: tensor<3xi64>, %z: tensor<3xf32>) {
  // expected-error @below {{'graph.scatter_elements' op expects indices of the input's rank 2, but got rank 1}}
  %0 = "graph.scatter_elements"(%x, %y, %z) {axis = 0 : i64, reduction = "add"} : (tensor<9x4xf32>, tensor<3xi64>, tensor<3xf32>) -> tensor<9x4xf32>
  return
}

func.func @scatter_elements_c4_range(%x: tensor<9x4xf32>, %y: tensor<3x2xi64>, %z: tensor<3x2xf32>) {
  // expected-error @below {{'graph.scatter_elements' op has axis 2, but rank 2 accepts -2 to 1}}
  %0 = "graph.scatter_elements"(%x, %y, %z) {axis = 2 : i64, reduction = "add"} : (tensor<9x4xf32>, tensor<3x2xi64>, tensor<3x2xf32>) -> tensor<9x4xf32>
  return
}

func.func @scatter_elements_c5(%x: tensor<9x4xf32>, %y: tensor<3x5xi64>, %z: tensor<3x5xf32>) {
  // expected-error @below {{'graph.scatter_elements' op has 5 indices along dim 1 of 4}}
  %0 = "graph.scatter_elements"(%x, %y, %z) {axis = 0 : i64, reduction = "add"} : (tensor<9x4xf32>, tensor<3x5xi64>, tensor<3x5xf32>) -> tensor<9x4xf32>
  return
}

func.func @scatter_elements_c6(%x: tensor<9x4xf32>, %y: tensor<3x2xi64>, %z: tensor<3x1xf32>) {
  // expected-error @below {{'graph.scatter_elements' op has updates with dim 1 of 1 for one of 2}}
  %0 = "graph.scatter_elements"(%x, %y, %z) {axis = 0 : i64, reduction = "add"} : (tensor<9x4xf32>, tensor<3x2xi64>, tensor<3x1xf32>) -> tensor<9x4xf32>
  return
}

func.func @scatter_elements_c6_rank(%x: tensor<9x4xf32>, %y: tensor<3x2xi64>, %z: tensor<3xf32>) {
  // expected-error @below {{'graph.scatter_elements' op expects updates of rank 2, but got rank 1}}
  %0 = "graph.scatter_elements"(%x, %y, %z) {axis = 0 : i64, reduction = "add"} : (tensor<9x4xf32>, tensor<3x2xi64>, tensor<3xf32>) -> tensor<9x4xf32>
  return
}

func.func @scatter_nd_c1(%x: tensor<9x4xf32>, %y: tensor<3x2xf32>, %z: tensor<3xf32>) {
  // expected-error @below {{'graph.scatter_nd' op expects integer indices, but got f32}}
  %0 = "graph.scatter_nd"(%x, %y, %z) {reduction = "add"} : (tensor<9x4xf32>, tensor<3x2xf32>, tensor<3xf32>) -> tensor<9x4xf32>
  return
}

func.func @scatter_nd_c2(%x: tensor<9x4xf32>, %y: tensor<3x2xi64>, %z: tensor<3xf16>) {
  // expected-error @below {{'graph.scatter_nd' op expects one element type, but got f32 and f16}}
  %0 = "graph.scatter_nd"(%x, %y, %z) {reduction = "add"} : (tensor<9x4xf32>, tensor<3x2xi64>, tensor<3xf16>) -> tensor<9x4xf32>
  return
}

func.func @scatter_nd_c3(%x: tensor<9x4xf32>, %y: tensor<3x2xi64>, %z: tensor<3xf32>) {
  // expected-error @below {{'graph.scatter_nd' op expects one of none, add, mul, max, min, but got ''}}
  %0 = "graph.scatter_nd"(%x, %y, %z) {reduction = ""} : (tensor<9x4xf32>, tensor<3x2xi64>, tensor<3xf32>) -> tensor<9x4xf32>
  return
}

func.func @scatter_nd_c4(%x: tensor<9x4xf32>, %y: tensor<3x3xi64>, %z: tensor<3xf32>) {
  // expected-error @below {{'graph.scatter_nd' op expects indices whose last dim is 2 or less, but got dim 3}}
  %0 = "graph.scatter_nd"(%x, %y, %z) {reduction = "add"} : (tensor<9x4xf32>, tensor<3x3xi64>, tensor<3xf32>) -> tensor<9x4xf32>
  return
}

func.func @scatter_nd_c4_none(%x: tensor<9x4xf32>, %y: tensor<3x0xi64>, %z: tensor<3x9x4xf32>) {
  // expected-error @below {{'graph.scatter_nd' op expects indices of at least one axis, but got dim 0}}
  %0 = "graph.scatter_nd"(%x, %y, %z) {reduction = "add"} : (tensor<9x4xf32>, tensor<3x0xi64>, tensor<3x9x4xf32>) -> tensor<9x4xf32>
  return
}

func.func @scatter_nd_c5(%x: tensor<9x4xf32>, %y: tensor<3x1xi64>, %z: tensor<3x5xf32>) {
  // expected-error @below {{'graph.scatter_nd' op has updates with dim 1 of 5 for one of 4}}
  %0 = "graph.scatter_nd"(%x, %y, %z) {reduction = "add"} : (tensor<9x4xf32>, tensor<3x1xi64>, tensor<3x5xf32>) -> tensor<9x4xf32>
  return
}

func.func @scatter_nd_c5_rank(%x: tensor<9x4xf32>, %y: tensor<3x2xi64>, %z: tensor<3x4xf32>) {
  // expected-error @below {{'graph.scatter_nd' op expects updates of rank 1, but got rank 2}}
  %0 = "graph.scatter_nd"(%x, %y, %z) {reduction = "add"} : (tensor<9x4xf32>, tensor<3x2xi64>, tensor<3x4xf32>) -> tensor<9x4xf32>
  return
}

func.func @index_put_c1(%x: tensor<9x4xf32>, %y: tensor<3x2xf32>) {
  // expected-error @below {{'graph.index_put' op expects a tensor, values and indices for each of 1 axes, but got 2 operands}}
  %0 = "graph.index_put"(%x, %y) {axes = array<i64: 0>, reduction = "add", operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<9x4xf32>, tensor<3x2xf32>) -> tensor<9x4xf32>
  return
}

func.func @index_put_c2(%x: tensor<9x4xf32>, %y: tensor<3x4xf64>, %z: tensor<3xi64>) {
  // expected-error @below {{'graph.index_put' op expects one element type, but got f32 and f64}}
  %0 = "graph.index_put"(%x, %y, %z) {axes = array<i64: 0>, reduction = "add", operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<9x4xf32>, tensor<3x4xf64>, tensor<3xi64>) -> tensor<9x4xf32>
  return
}

func.func @index_put_c3(%x: tensor<9x4xf32>, %y: tensor<3x4xf32>, %z: tensor<3xi64>) {
  // expected-error @below {{'graph.index_put' op expects one of none, add, mul, max, min, but got 'sub'}}
  %0 = "graph.index_put"(%x, %y, %z) {axes = array<i64: 0>, reduction = "sub", operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<9x4xf32>, tensor<3x4xf32>, tensor<3xi64>) -> tensor<9x4xf32>
  return
}

func.func @index_put_c4(%x: tensor<9x4xf32>, %y: tensor<3xf32>, %z: tensor<3xi64>, %u: tensor<3xi64>) {
  // expected-error @below {{'graph.index_put' op expects ascending axes, but got (1, 0)}}
  %0 = "graph.index_put"(%x, %y, %z, %u) {axes = array<i64: 1, 0>, reduction = "add", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<9x4xf32>, tensor<3xf32>, tensor<3xi64>, tensor<3xi64>) -> tensor<9x4xf32>
  return
}

func.func @index_put_c5(%x: tensor<9x4xf32>, %y: tensor<3x4xf32>, %z: tensor<3xi1>) {
  // expected-error @below {{'graph.index_put' op expects integer indices, but got i1}}
  %0 = "graph.index_put"(%x, %y, %z) {axes = array<i64: 0>, reduction = "add", operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<9x4xf32>, tensor<3x4xf32>, tensor<3xi1>) -> tensor<9x4xf32>
  return
}

func.func @index_put_c6(%x: tensor<9x4xf32>, %y: tensor<3xf32>, %z: tensor<3xi64>, %u: tensor<2xi64>) {
  // expected-error @below {{'graph.index_put' op has indices with dim 3 beside dim 2}}
  %0 = "graph.index_put"(%x, %y, %z, %u) {axes = array<i64: 0, 1>, reduction = "add", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<9x4xf32>, tensor<3xf32>, tensor<3xi64>, tensor<2xi64>) -> tensor<9x4xf32>
  return
}

func.func @index_put_c7(%x: tensor<9x4xf32>, %y: tensor<2x4xf32>, %z: tensor<3xi64>) {
  // expected-error @below {{'graph.index_put' op has values with a dim of 2 for one of 3}}
  %0 = "graph.index_put"(%x, %y, %z) {axes = array<i64: 0>, reduction = "add", operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<9x4xf32>, tensor<2x4xf32>, tensor<3xi64>) -> tensor<9x4xf32>
  return
}

func.func @index_put_c7_rank(%x: tensor<9x4xf32>, %y: tensor<1x3x4xf32>, %z: tensor<3xi64>) {
  // expected-error @below {{'graph.index_put' op expects values of rank 2 or less, but got 3}}
  %0 = "graph.index_put"(%x, %y, %z) {axes = array<i64: 0>, reduction = "add", operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<9x4xf32>, tensor<1x3x4xf32>, tensor<3xi64>) -> tensor<9x4xf32>
  return
}

func.func @slice_scatter_c1(%x: tensor<9x4xf32>, %y: tensor<2x4xf32>) {
  // expected-error @below {{'graph.slice_scatter' op expects known bounds and positive strides}}
  %0 = "graph.slice_scatter"(%x, %y) {axes = array<i64: 0>, begin = #graph.shape<[0]>, end = #graph.shape<[2]>, strides = array<i64: 0>} : (tensor<9x4xf32>, tensor<2x4xf32>) -> tensor<9x4xf32>
  return
}

func.func @slice_scatter_c2(%x: tensor<9x4xf32>, %y: tensor<2x4xi32>) {
  // expected-error @below {{'graph.slice_scatter' op expects one element type, but got f32 and i32}}
  %0 = "graph.slice_scatter"(%x, %y) {axes = array<i64: 0>, begin = #graph.shape<[0]>, end = #graph.shape<[2]>, strides = array<i64: 1>} : (tensor<9x4xf32>, tensor<2x4xi32>) -> tensor<9x4xf32>
  return
}

func.func @slice_scatter_c3(%x: tensor<9x4xf32>, %y: tensor<3x4xf32>) {
  // expected-error @below {{'graph.slice_scatter' op has updates with dim 0 of 3 for one of 2}}
  %0 = "graph.slice_scatter"(%x, %y) {axes = array<i64: 0>, begin = #graph.shape<[0]>, end = #graph.shape<[2]>, strides = array<i64: 1>} : (tensor<9x4xf32>, tensor<3x4xf32>) -> tensor<9x4xf32>
  return
}

func.func @dynamic_update_slice_c1(%x: tensor<9x4xf32>, %y: tensor<2x2xi8>, %z: tensor<2xi64>) {
  // expected-error @below {{'graph.dynamic_update_slice' op expects one element type, but got f32 and i8}}
  %0 = "graph.dynamic_update_slice"(%x, %y, %z) {} : (tensor<9x4xf32>, tensor<2x2xi8>, tensor<2xi64>) -> tensor<9x4xf32>
  return
}

func.func @dynamic_update_slice_c2(%x: tensor<9x4xf32>, %y: tensor<2x2xf32>, %z: tensor<2xf32>) {
  // expected-error @below {{'graph.dynamic_update_slice' op expects integer indices, but got f32}}
  %0 = "graph.dynamic_update_slice"(%x, %y, %z) {} : (tensor<9x4xf32>, tensor<2x2xf32>, tensor<2xf32>) -> tensor<9x4xf32>
  return
}

func.func @dynamic_update_slice_c2_count(%x: tensor<9x4xf32>, %y: tensor<2x2xf32>, %z: tensor<1x2xi64>) {
  // expected-error @below {{'graph.dynamic_update_slice' op expects 2 starts in a tensor of rank 1, but got 'tensor<1 x 2 x i64>'}}
  %0 = "graph.dynamic_update_slice"(%x, %y, %z) {} : (tensor<9x4xf32>, tensor<2x2xf32>, tensor<1x2xi64>) -> tensor<9x4xf32>
  return
}

func.func @dynamic_update_slice_c3(%x: tensor<9x4xf32>, %y: tensor<2xf32>, %z: tensor<2xi64>) {
  // expected-error @below {{'graph.dynamic_update_slice' op expects input and updates of one rank, but got 2 and 1}}
  %0 = "graph.dynamic_update_slice"(%x, %y, %z) {} : (tensor<9x4xf32>, tensor<2xf32>, tensor<2xi64>) -> tensor<9x4xf32>
  return
}

func.func @dynamic_update_slice_c4(%x: tensor<9x4xf32>, %y: tensor<2x5xf32>, %z: tensor<2xi64>) {
  // expected-error @below {{'graph.dynamic_update_slice' op has a part with dim 1 of 5 in one of 4}}
  %0 = "graph.dynamic_update_slice"(%x, %y, %z) {} : (tensor<9x4xf32>, tensor<2x5xf32>, tensor<2xi64>) -> tensor<9x4xf32>
  return
}
