// RUN: relax-opt %s --verify-diagnostics --relax-verify

#in2  = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#none = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>

func.func private @k(%x: tensor<4xf32>, %out: tensor<4xf32>) -> tensor<4xf32> attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  return %out : tensor<4xf32>
}

func.func @call_dps_c1(%x: tensor<4xf32>, %out: tensor<4xf32>) {
  // expected-error @below {{'graph.call_dps' op has 'num_outs' 3 of 2 operands}}
  "graph.call_dps"(%x, %out) {callee = @k, num_outs = 3 : i64, sym_args = #graph.shape<[]>, updates = array<i64>, operandSegmentSizes = #in2, resultSegmentSizes = #none} : (tensor<4xf32>, tensor<4xf32>) -> ()
  return
}

func.func @call_dps_c2(%x: tensor<4xf32>, %out: tensor<4xf32>) {
  // expected-error @below {{'graph.call_dps' op has 'updates' [1] of 1 outputs}}
  "graph.call_dps"(%x, %out) {callee = @k, num_outs = 1 : i64, sym_args = #graph.shape<[]>, updates = array<i64: 1>, operandSegmentSizes = #in2, resultSegmentSizes = #none} : (tensor<4xf32>, tensor<4xf32>) -> ()
  return
}

func.func @call_dps_c2_twice(%x: tensor<4xf32>, %out: tensor<4xf32>) {
  // expected-error @below {{'graph.call_dps' op has 'updates' [0, 0] of 1 outputs}}
  "graph.call_dps"(%x, %out) {callee = @k, num_outs = 1 : i64, sym_args = #graph.shape<[]>, updates = array<i64: 0, 0>, operandSegmentSizes = #in2, resultSegmentSizes = #none} : (tensor<4xf32>, tensor<4xf32>) -> ()
  return
}

func.func @alloc_storage_c1() {
  // expected-error @below {{'graph.alloc_storage' op expects one expression as 'size', but got 0}}
  %0 = "graph.alloc_storage"() {size = #graph.shape<[]>} : () -> !graph.storage
  return
}

func.func @alloc_tensor_c1() {
  // expected-error @below {{'graph.alloc_tensor' op expects one expression as 'offset', but got 2}}
  %0 = "graph.alloc_tensor"() {offset = #graph.shape<[0, 1]>, operandSegmentSizes = array<i32: 0>} : () -> tensor<4xf32>
  return
}

func.func @copy_c1(%x: tensor<4xf32>, %out: tensor<5xf32>) {
  // expected-error @below {{'graph.copy' op copies 'tensor<4xf32>' into 'tensor<5xf32>'}}
  "graph.copy"(%x, %out) : (tensor<4xf32>, tensor<5xf32>) -> ()
  return
}

func.func @copy_c1_element(%x: tensor<4xf32>, %out: tensor<4xf64>) {
  // expected-error @below {{'graph.copy' op copies 'tensor<4xf32>' into 'tensor<4xf64>'}}
  "graph.copy"(%x, %out) : (tensor<4xf32>, tensor<4xf64>) -> ()
  return
}

func.func @copy_symbolic(%x: tensor<?xf32, #graph.shape<["n"]>>, %out: tensor<?xf32>) {
  "graph.copy"(%x, %out) : (tensor<?xf32, #graph.shape<["n"]>>, tensor<?xf32>) -> ()
  return
}

func.func @keep_c1(%x: tensor<4xf32>) {
  // expected-error @below {{'graph.keep' op keeps 'tensor<4xf32>' as 'tensor<?xf32>'}}
  %0 = "graph.keep"(%x) : (tensor<4xf32>) -> tensor<?xf32>
  return
}

func.func @store_c1(%x: tensor<4xf32>, %i: index, %e: f32) {
  // expected-error @below {{'graph.store' op stores 'f32' at 2 indices of 'tensor<4xf32>'}}
  "graph.store"(%e, %x, %i, %i) {operandSegmentSizes = array<i32: 1, 1, 2>} : (f32, tensor<4xf32>, index, index) -> ()
  return
}

func.func @store_c1_element(%x: tensor<4xf32>, %i: index, %e: f64) {
  // expected-error @below {{'graph.store' op stores 'f64' at 1 indices of 'tensor<4xf32>'}}
  "graph.store"(%e, %x, %i) {operandSegmentSizes = array<i32: 1, 1, 1>} : (f64, tensor<4xf32>, index) -> ()
  return
}
