func.func @caches_of_any_heads(%kc: tensor<?x?x?xf32, #graph.shape<["h", "n+3", "d"]>>, %k: tensor<?x?x?xf32, #graph.shape<["n", "h", "d"]>>) -> (tensor<?x?x?xf32, #graph.shape<["h", "n+3", "d"]>>, tensor<?x?x?xf32, #graph.shape<["h", "n+3", "d"]>>) {
  %0:2 = "graph.nn_kv_append"(%kc, %kc, %k, %k) {position = #graph.shape<[1]>} : (tensor<?x?x?xf32, #graph.shape<["h", "n+3", "d"]>>, tensor<?x?x?xf32, #graph.shape<["h", "n+3", "d"]>>, tensor<?x?x?xf32, #graph.shape<["n", "h", "d"]>>,tensor<?x?x?xf32, #graph.shape<["n", "h", "d"]>>) -> (tensor<?x?x?xf32, #graph.shape<["h", "n+3", "d"]>>, tensor<?x?x?xf32, #graph.shape<["h", "n+3", "d"]>>)
  return %0#0, %0#1: tensor<?x?x?xf32, #graph.shape<["h", "n+3", "d"]>>, tensor<?x?x?xf32, #graph.shape<["h", "n+3", "d"]>>
}
