// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-gradient

// expected-error @below {{'func.func' op expects result 0 to be a float of rank 0, but got 'tensor<4xf32>'}}
func.func @main(%x: tensor<4xf32> {graph.name = "x"}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// expected-error @below {{'func.func' op expects result 0 to be a float of rank 0, but got none}}
func.func @main() {
  return
}

// -----

// expected-error @below {{'builtin.module' op has no graph function '@main'; there is @other}}
module {
  func.func @other(%x: tensor<f32>) -> tensor<f32> {
    return %x : tensor<f32>
  }
}

// -----

func.func @main(%x: tensor<4x64xf32>) -> tensor<f32> {
  // expected-error @below {{'graph.quantize_blocks' op has no gradient; define a function of it and an Adjoint in the module of its class, or mark it with 'graph.no_grad'}}
  %0:2 = "graph.quantize_blocks"(%x) {symmetric = true} : (tensor<4x64xf32>) -> (tensor<4x64xi8>, tensor<4x2xf32>)
  %1 = "graph.sum"(%0#1) {axes = array<i64>, keepdims = false} : (tensor<4x2xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<f32> {
  // expected-error @below {{'graph.astype' op has a result of f8E5M2 that depends on what gradients are wanted of, but floats of 8 bits have none; 'graph.no_grad' says that the results are constants}}
  %0 = "graph.astype"(%x) {dtype = f8E5M2} : (tensor<4xf32>) -> tensor<4xf8E5M2>
  %1 = "graph.astype"(%0) {dtype = f32} : (tensor<4xf8E5M2>) -> tensor<4xf32>
  %2 = "graph.sum"(%1) {axes = array<i64>, keepdims = false} : (tensor<4xf32>) -> tensor<f32>
  return %2 : tensor<f32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<f32> {
  %0 = "graph.astype"(%x) {dtype = f8E5M2, graph.no_grad} : (tensor<4xf32>) -> tensor<4xf8E5M2>
  %1 = "graph.astype"(%0) {dtype = f32} : (tensor<4xf8E5M2>) -> tensor<4xf32>
  %2 = "graph.sum"(%1) {axes = array<i64>, keepdims = false} : (tensor<4xf32>) -> tensor<f32>
  return %2 : tensor<f32>
}

// -----

func.func @main(%x: tensor<?xf32>) -> tensor<f32> {
  // expected-error @below {{'graph.sum' op has no gradient here: expects known dims, but got 'tensor<? x f32>'}}
  %0 = "graph.sum"(%x) {axes = array<i64>, keepdims = false} : (tensor<?xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>

func.func @main(%x: tensor<4xf32>, %k: index) -> tensor<f32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %y = "graph.match_cast"(%x) : (tensor<4xf32>) -> tensor<?xf32>
  // expected-error @below {{'scf.for' op carries 'tensor<?xf32>': a gradient saves the state of each round, so its dims have to be known in front of the loop}}
  %r = scf.for %i = %zero to %k step %one iter_args(%a = %y) -> tensor<?xf32> {
    %0 = "graph.match_cast"(%a) : (tensor<?xf32>) -> tensor<?xf32, #graph.shape<["m"]>>
    %1 = "graph.concat"(%0, %0) {axis = 0 : i64, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (tensor<?xf32, #graph.shape<["m"]>>, tensor<?xf32, #graph.shape<["m"]>>) -> tensor<?xf32, #graph.shape<["2*m"]>>
    %2 = "graph.match_cast"(%1) : (tensor<?xf32, #graph.shape<["2*m"]>>) -> tensor<?xf32>
    scf.yield %2 : tensor<?xf32>
  }
  %0 = "graph.match_cast"(%r) : (tensor<?xf32>) -> tensor<?xf32, #graph.shape<["n"]>>
  %1 = "graph.sum"(%0) {axes = array<i64>, keepdims = false} : (tensor<?xf32, #graph.shape<["n"]>>) -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

func.func @main(%x: tensor<4xf32>, %s: !graph.shape_value<["n"]>, %k: index) -> tensor<f32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  // expected-error @below {{'scf.for' op carries '!graph.shape_value<["n"]>', which a gradient does not save; carry a tensor}}
  %r:2 = scf.for %i = %zero to %k step %one iter_args(%a = %x, %t = %s) -> (tensor<4xf32>, !graph.shape_value<["n"]>) {
    %0 = "graph.sin"(%a) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %0, %t : tensor<4xf32>, !graph.shape_value<["n"]>
  }
  %1 = "graph.sum"(%r#0) {axes = array<i64>, keepdims = false} : (tensor<4xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

#in1  = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>

func.func @main(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @below {{'graph.call_tir' op has no gradient; name a function that has those of '@f' in its attribute 'graph.gradient'}}
  %0 = "graph.call_tir"(%x) {callee = @f, sym_args = #graph.shape<[]>, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

func.func private @f(%x: tensor<f32>, %out: tensor<f32>) -> tensor<f32> attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  return %out : tensor<f32>
}

// -----

#in1  = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>

func.func @main(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @below {{'graph.call' op calls '@f' with the gradient 'g', which is not there}}
  %0 = "graph.call"(%x) {callee = @f, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

func.func private @f(%x: tensor<f32>) -> tensor<f32> attributes {graph.noinline, graph.gradient = @g} {
  return %x : tensor<f32>
}

// -----

// Nobody knows what an object returns of the values that it was given.
#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>

"lib.function"() {sym_name = "put", c_symbol = "put", convention = "dlpack", libraries = ["python"]} : () -> ()
"lib.function"() {sym_name = "get", c_symbol = "get", convention = "dlpack", libraries = ["python"]} : () -> ()
func.func @main(%x: tensor<f32>, %c: i1, %o: !graph.host_object) -> tensor<f32> {
  %0 = "graph.call_library"(%x, %o) {callee = @put, sym_args = #graph.shape<[]>, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (tensor<f32>, !graph.host_object) -> !graph.host_object
  %1 = scf.if %c -> tensor<f32> {
    // expected-error @below {{'graph.call_library' op has no gradient; define a function of it and an Adjoint in the module of its class, or mark it with 'graph.no_grad'}}
    %2 = "graph.call_library"(%0) {callee = @get, sym_args = #graph.shape<[]>, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!graph.host_object) -> tensor<f32>
    scf.yield %2 : tensor<f32>
  } else {
    scf.yield %x : tensor<f32>
  }
  return %1 : tensor<f32>
}

// -----

// A called function reads an object that another function was given.
#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>

"lib.function"() {sym_name = "put", c_symbol = "put", convention = "dlpack", libraries = ["python"]} : () -> ()
"lib.function"() {sym_name = "get", c_symbol = "get", convention = "dlpack", libraries = ["python"]} : () -> ()
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = "graph.call_library"(%x) {callee = @put, sym_args = #graph.shape<[]>, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<f32>) -> !graph.host_object
  %1 = "graph.call"(%0) {callee = @read, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!graph.host_object) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func private @read(%o: !graph.host_object) -> tensor<f32> attributes {graph.noinline} {
  // expected-error @below {{'graph.call_library' op has no gradient; define a function of it and an Adjoint in the module of its class, or mark it with 'graph.no_grad'}}
  %0 = "graph.call_library"(%o) {callee = @get, sym_args = #graph.shape<[]>, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!graph.host_object) -> tensor<f32>
  return %0 : tensor<f32>
}
