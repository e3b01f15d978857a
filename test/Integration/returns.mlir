// What a function returns: an argument, a constant, one value twice, a view of another result.

!x = tensor<?x4xf32, #graph.shape<["n", 4]>>
!f = tensor<?xf32, #graph.shape<["4*n"]>>

func.func @main(%x: !x {graph.name = "x"}) -> (!x, tensor<2xi32>, !x, !x, !f) {
  %c = arith.constant dense<[3, -5]> : tensor<2xi32>
  %0 = "graph.negative"(%x) : (!x) -> !x
  %1 = "graph.reshape"(%0) {shape = #graph.shape<["4*n"]>} : (!x) -> !f
  return %x, %c, %0, %0, %1 : !x, tensor<2xi32>, !x, !x, !f
}
