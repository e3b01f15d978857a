func.func @sizes_of_data(%arg0: tensor<3x?xbf16, #graph.shape<[3, "n"]>>, %arg1: tensor<?xf32, #graph.shape<["m"]>>) -> tensor<?x?xi64, #graph.shape<["m", "s0"]>> {
  %0:4 = "graph.unique"(%arg0) {axes = array<i64>, sorted = true} : (tensor<3x?xbf16, #graph.shape<[3, "n"]>>) -> (tensor<?xbf16>, tensor<?xi64>, tensor<?xi64, #graph.shape<["3*n"]>>, tensor<?xi64>)
  %1 = "graph.match_cast"(%0#1) : (tensor<?xi64>) -> tensor<?xi64, #graph.shape<["s0"]>>
  %2 = "graph.broadcast_to"(%1) {shape = #graph.shape<["m", "s0"]>} : (tensor<?xi64, #graph.shape<["s0"]>>) -> tensor<?x?xi64, #graph.shape<["m", "s0"]>>
  return %2 : tensor<?x?xi64, #graph.shape<["m", "s0"]>>
}
