func.func @main(%x: tensor<?x4xf32, #graph.shape<["n", 4]>>)
    -> tensor<?x4xf32, #graph.shape<["n", 4]>> {
  %0 = "graph.nn_softmax"(%x) {axis = 1 : i64}
    : (tensor<?x4xf32, #graph.shape<["n", 4]>>) -> tensor<?x4xf32, #graph.shape<["n", 4]>>
  return %0 : tensor<?x4xf32, #graph.shape<["n", 4]>>
}
