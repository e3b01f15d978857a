func.func @take_of_which_nothing_is_used(%arg0: tensor<i64>, %arg1: tensor<?x3xf32, #graph.shape<["n", 3]>>) -> tensor<?x3xf32, #graph.shape<["n", 3]>> {
  %0 = "graph.take"(%arg1, %arg0) {axis = 0 : i64} : (tensor<?x3xf32, #graph.shape<["n", 3]>>, tensor<i64>) -> tensor<3xf32>
  return %arg1 : tensor<?x3xf32, #graph.shape<["n", 3]>>
}
