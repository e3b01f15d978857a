// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-check-memory-plan

!n = tensor<?xf32, #graph.shape<["n"]>>

func.func @beyond(%x: !n) {
  // expected-note @below {{it has 4*n bytes}}
  %s = "graph.alloc_storage"() {size = #graph.shape<["4*n"]>} : () -> !graph.storage
  // expected-error @below {{'graph.alloc_tensor' op is at bytes [4, 4*n + 4), beyond its storage with n = 0}}
  %0 = "graph.alloc_tensor"(%s) {offset = #graph.shape<[4]>} : (!graph.storage) -> !n
  return
}

// -----

!n = tensor<?xf32, #graph.shape<["n"]>>

func.func @unwritten(%x: !n {graph.inout = 0 : i64}) -> !n {
  %s = "graph.alloc_storage"() {size = #graph.shape<["4*n"]>} : () -> !graph.storage
  // expected-note @below {{it is at bytes [0, 4*n)}}
  %0 = "graph.alloc_tensor"(%s) {offset = #graph.shape<[0]>} : (!graph.storage) -> !n
  // expected-error @below {{'graph.copy' op reads a tensor of 'tensor<?xf32, #graph.shape<["n"]>>' that may be unwritten}}
  "graph.copy"(%0, %x) : (!n, !n) -> ()
  return %x : !n
}

// -----

!n = tensor<?xf32, #graph.shape<["n"]>>
!m = tensor<?xf32, #graph.shape<["m"]>>

// A cast is the same memory.
func.func @given_away(%x: !n, %y: !m {graph.inout = 0 : i64}) -> !m {
  %s = "graph.alloc_storage"() {size = #graph.shape<["4*n + 4*m"]>} : () -> !graph.storage
  // expected-note @below {{it is at bytes [0, 4*n)}}
  %0 = "graph.alloc_tensor"(%s) {offset = #graph.shape<[0]>} : (!graph.storage) -> !n
  "graph.copy"(%x, %0) : (!n, !n) -> ()
  %1 = "graph.match_cast"(%0) : (!n) -> !m
  // expected-note @below {{the other one is at bytes [0, 4*m)}}
  %2 = "graph.alloc_tensor"(%s) {offset = #graph.shape<[0]>} : (!graph.storage) -> !m
  "graph.copy"(%y, %2) : (!m, !m) -> ()
  // expected-error @below {{'graph.copy' op reads a tensor of 'tensor<?xf32, #graph.shape<["m"]>>', which is overwritten by another one}}
  "graph.copy"(%1, %y) : (!m, !m) -> ()
  return %y : !m
}

// -----

!n = tensor<?xf32, #graph.shape<["n"]>>
!m = tensor<?xf32, #graph.shape<["m"]>>

func.func @over_what_it_reads(%x: !n) {
  %s = "graph.alloc_storage"() {size = #graph.shape<["4*n"]>} : () -> !graph.storage
  // expected-note @below {{one is at bytes [0, 4*n)}}
  %0 = "graph.alloc_tensor"(%s) {offset = #graph.shape<[0]>} : (!graph.storage) -> !n
  "graph.copy"(%x, %0) : (!n, !n) -> ()
  // expected-note @below {{one is at bytes [0, 4*n)}}
  %1 = "graph.alloc_tensor"(%s) {offset = #graph.shape<[0]>} : (!graph.storage) -> !n
  // expected-error @below {{'graph.copy' op writes 'tensor<?xf32, #graph.shape<["n"]>>' over 'tensor<?xf32, #graph.shape<["n"]>>', which it needs with n = 1}}
  "graph.copy"(%0, %1) : (!n, !n) -> ()
  return
}

// -----

#in2  = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#none = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>

func.func private @k(%x: tensor<4xf32>, %out: tensor<4xf32>) -> tensor<4xf32> attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  return %out : tensor<4xf32>
}

func.func @twice(%x: tensor<4xf32> {graph.inout = 0 : i64}) -> tensor<4xf32> {
  // expected-error @below {{'graph.call_dps' op has the tensor of 'tensor<4xf32>' that it writes twice}}
  "graph.call_dps"(%x, %x) {callee = @k, num_outs = 1 : i64, sym_args = #graph.shape<[]>, updates = array<i64>, operandSegmentSizes = #in2, resultSegmentSizes = #none} : (tensor<4xf32>, tensor<4xf32>) -> ()
  return %x : tensor<4xf32>
}

// -----

func.func @not_ours(%x: tensor<4xf32>, %y: tensor<4xf32>) {
  // expected-error @below {{'graph.copy' op writes to argument 1, which is not graph.inout}}
  "graph.copy"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> ()
  return
}

// -----

func.func @constant(%x: tensor<4xf32>) {
  // expected-note @below {{it is this one}}
  %0 = arith.constant dense<1.0> : tensor<4xf32>
  // expected-error @below {{'graph.copy' op writes to a constant}}
  "graph.copy"(%x, %0) : (tensor<4xf32>, tensor<4xf32>) -> ()
  return
}

// -----

// A round finds what the one before has left, but where this one puts its own.
func.func @carried(%x: tensor<4xf32>, %y: tensor<4xf32> {graph.inout = 0 : i64}, %rounds: index) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %s = "graph.alloc_storage"() {size = #graph.shape<[16]>} : () -> !graph.storage
  %0 = scf.for %i = %zero to %rounds step %one iter_args(%a = %x) -> tensor<4xf32> {
    // expected-note @below {{it is at bytes [0, 16)}}
    // expected-note @below {{the other one is at bytes [0, 16)}}
    %1 = "graph.alloc_tensor"(%s) {offset = #graph.shape<[0]>} : (!graph.storage) -> tensor<4xf32>
    "graph.copy"(%y, %1) : (tensor<4xf32>, tensor<4xf32>) -> ()
    // expected-error @below {{'graph.copy' op reads a tensor of 'tensor<4xf32>', which is overwritten by another one}}
    "graph.copy"(%a, %y) : (tensor<4xf32>, tensor<4xf32>) -> ()
    scf.yield %1 : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}

// -----

// The storage of a round ends with it.
func.func @storage_of_a_round(%x: tensor<4xf32>, %y: tensor<4xf32> {graph.inout = 0 : i64}, %rounds: index) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %0 = scf.for %i = %zero to %rounds step %one iter_args(%a = %x) -> tensor<4xf32> {
    // expected-note @below {{its storage is allocated again}}
    %s = "graph.alloc_storage"() {size = #graph.shape<[16]>} : () -> !graph.storage
    // expected-note @below {{it is at bytes [0, 16)}}
    %1 = "graph.alloc_tensor"(%s) {offset = #graph.shape<[0]>} : (!graph.storage) -> tensor<4xf32>
    "graph.copy"(%x, %1) : (tensor<4xf32>, tensor<4xf32>) -> ()
    scf.yield %1 : tensor<4xf32>
  }
  // expected-error @below {{'graph.copy' op reads a tensor of 'tensor<4xf32>', which is overwritten by another one}}
  "graph.copy"(%0, %y) : (tensor<4xf32>, tensor<4xf32>) -> ()
  return %y : tensor<4xf32>
}

// -----

// The k of one branch says nothing of that of the other.
!k = tensor<?xf32, #graph.shape<["k"]>>

func.func @two_symbols_of_one_name(%x: tensor<?xf32>, %y: tensor<?xf32>, %c: i1) attributes {graph.facts = ["k <= 4"]} {
  // expected-note @below {{it has 32 bytes}}
  %s = "graph.alloc_storage"() {size = #graph.shape<[32]>} : () -> !graph.storage
  scf.if %c {
    %0 = "graph.match_cast"(%x) : (tensor<?xf32>) -> !k
    %1 = "graph.alloc_tensor"(%s) {offset = #graph.shape<[0]>} : (!graph.storage) -> !k
  }
  scf.if %c {
    %0 = "graph.match_cast"(%y) : (tensor<?xf32>) -> !k
    // expected-error @below {{beyond its storage with k_1 = 4}}
    %1 = "graph.alloc_tensor"(%s) {offset = #graph.shape<["4*k + 4"]>} : (!graph.storage) -> !k
  }
  return
}

// -----

func.func @unbound(%x: tensor<4xf32>) {
  // expected-error @below {{'graph.alloc_storage' op uses the symbol 'k', which is not bound here}}
  %s = "graph.alloc_storage"() {size = #graph.shape<["k"]>} : () -> !graph.storage
  return
}
