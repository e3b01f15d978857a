// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-plan-memory

func.func @unknown_size(%x: tensor<?xf32>) {
  // expected-error @below {{'graph.alloc_tensor' op has the unknown size of 'tensor<? x f32>'}}
  %0 = "graph.alloc_tensor"() {offset = #graph.shape<[0]>} : () -> tensor<?xf32>
  "graph.copy"(%x, %0) : (tensor<?xf32>, tensor<?xf32>) -> ()
  return
}

// -----

func.func @unbound(%x: tensor<?xf32>) {
  // expected-error @below {{'graph.alloc_tensor' op uses the symbol 'k', which nothing binds}}
  %0 = "graph.alloc_tensor"() {offset = #graph.shape<[0]>} : () -> tensor<?xf32, #graph.shape<["k"]>>
  "graph.copy"(%x, %0) : (tensor<?xf32>, tensor<?xf32, #graph.shape<["k"]>>) -> ()
  return
}

// -----

// Each round would fill the memory that it reads.
func.func @carried(%x: tensor<4xf32>, %n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %0 = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> tensor<4xf32> {
    // expected-error @below {{'graph.alloc_tensor' op is live across iterations of a loop; run relax-lower-calls}}
    %1 = "graph.alloc_tensor"() {offset = #graph.shape<[0]>} : () -> tensor<4xf32>
    "graph.copy"(%a, %1) : (tensor<4xf32>, tensor<4xf32>) -> ()
    scf.yield %1 : tensor<4xf32>
  }
  return
}

// -----

!k = tensor<?xf32, #graph.shape<["k"]>>

func.func @leaves_its_loop(%x: tensor<?xf32>, %c: i1) -> tensor<?xf32> {
  %0 = scf.while (%a = %x) : (tensor<?xf32>) -> tensor<?xf32> {
    %1 = "graph.match_cast"(%x) : (tensor<?xf32>) -> !k
    // expected-error @below {{'graph.alloc_tensor' op is used after the loop that binds the symbols of its size}}
    %2 = "graph.alloc_tensor"() {offset = #graph.shape<[0]>} : () -> !k
    "graph.copy"(%1, %2) : (!k, !k) -> ()
    %3 = "graph.match_cast"(%2) : (!k) -> tensor<?xf32>
    scf.condition(%c) %3 : tensor<?xf32>
  } do {
  ^bb0(%b: tensor<?xf32>):
    scf.yield %x : tensor<?xf32>
  }
  return %0 : tensor<?xf32>
}
