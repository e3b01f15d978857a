// A fact about a symbol makes a reshape by division exact, and is checked at every call.

!x = tensor<?xf32, #graph.shape<["n"]>>
!b = tensor<?x16xf32, #graph.shape<["n floordiv 16", 16]>>
!s = tensor<?x1xf32, #graph.shape<["n floordiv 16", 1]>>

func.func @main(%x: !x {graph.name = "x"}) -> (!b, !s) attributes {graph.facts = ["n mod 16 == 0", "n <= 256"]} {
  %0 = "graph.reshape"(%x) {shape = #graph.shape<["n floordiv 16", 16]>} : (!x) -> !b
  %1 = "graph.abs"(%0) : (!b) -> !b
  %2 = "graph.max"(%1) {axes = array<i64: 1>, keepdims = true} : (!b) -> !s
  %3 = "graph.divide"(%0, %2) : (!b, !s) -> !b
  return %3, %2 : !b, !s
}
