func.func @main(%x: tensor<?xf32, #graph.shape<["n"]>>) -> tensor<?x?xf32, #graph.shape<["n", "n"]>> {
  %0 = "graph.exp"(%x) : (tensor<?xf32, #graph.shape<["n"]>>) -> tensor<?xf32, #graph.shape<["n"]>>
  %1 = "graph.expand_dims"(%0) {axes = array<i64: 1>} : (tensor<?xf32, #graph.shape<["n"]>>) -> tensor<?x1xf32, #graph.shape<["n", 1]>>
  %2 = "graph.multiply"(%0, %1) : (tensor<?xf32, #graph.shape<["n"]>>, tensor<?x1xf32, #graph.shape<["n", 1]>>) -> tensor<?x?xf32, #graph.shape<["n", "n"]>>
  return %2 : tensor<?x?xf32, #graph.shape<["n", "n"]>>
}
