// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-bind-symbols='symbols=n=4'

!n = tensor<?xf32, #graph.shape<["n"]>>

// expected-error @below {{has the fact 'n mod 3 == 0', which cannot be with n = 4}}
func.func @negative_fact(%x: !n) -> !n attributes {graph.facts = ["n mod 3 == 0"]} {
  return %x : !n
}

// -----

!n = tensor<?xf32, #graph.shape<["n"]>>
!m = tensor<?xf32, #graph.shape<["m"]>>

// Neither contradicts 4 alone, but both together.
// expected-error @below {{has the fact 'n < m', which cannot be with n = 4}}
func.func @negative_facts(%x: !n, %y: !m) -> !n attributes {graph.facts = ["n < m", "m <= 4"]} {
  return %x : !n
}

// -----

!n = tensor<?xf32, #graph.shape<["n"]>>

// expected-error @below {{has a dim n - 8, which is -4 with n = 4}}
func.func @negative_dim(%x: !n, %y: tensor<?xf32, #graph.shape<["n - 8"]>>) -> !n {
  return %x : !n
}

// -----

!n = tensor<?xf32, #graph.shape<["n"]>>

func.func @negative_cast(%x: !n) -> tensor<5xf32> {
  // expected-error @below {{asserts 'tensor<5xf32>', which 'tensor<4xf32>' can never be}}
  %0 = "graph.match_cast"(%x) : (!n) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// -----

// expected-error @below {{no argument shows the symbol 'n'}}
module {
  func.func @negative_unknown(%x: tensor<?xf32, #graph.shape<["m"]>>) -> tensor<?xf32, #graph.shape<["m"]>> {
    return %x : tensor<?xf32, #graph.shape<["m"]>>
  }
}
