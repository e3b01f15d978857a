// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-canonicalize-bindings

!m = tensor<?xf32, #graph.shape<["m"]>>

// m cannot be 16 and 32.
func.func @negative_two_lengths(%x: !m, %y: !m) -> tensor<32xf32> {
  %0 = "graph.match_cast"(%x) : (!m) -> tensor<16xf32>
  // expected-error @below {{is an inconsistent match_cast: asserts 32 of dim 0, which is m with m == 16}}
  %1 = "graph.match_cast"(%y) : (!m) -> tensor<32xf32>
  return %1 : tensor<32xf32>
}

// -----

!m = tensor<?xf32, #graph.shape<["m"]>>

func.func @negative_fact(%x: !m) -> tensor<32xf32> attributes {graph.facts = ["m <= 16"]} {
  // expected-error @below {{is an inconsistent match_cast: asserts 32 of dim 0, which is m with m <= 16}}
  %0 = "graph.match_cast"(%x) : (!m) -> tensor<32xf32>
  return %0 : tensor<32xf32>
}

// -----

// The fresh symbol k is m; then k + 1 is never m.
!m = tensor<?xf32, #graph.shape<["m"]>>
!k = tensor<?xf32, #graph.shape<["k"]>>
!l = tensor<?xf32, #graph.shape<["k + 1"]>>

func.func @negative_symbolic(%x: !m, %y: !m) -> !l {
  %0 = "graph.match_cast"(%x) : (!m) -> !k
  // expected-error @below {{is an inconsistent match_cast: asserts m + 1 of dim 0, which is m}}
  %1 = "graph.match_cast"(%y) : (!m) -> !l
  return %1 : !l
}
