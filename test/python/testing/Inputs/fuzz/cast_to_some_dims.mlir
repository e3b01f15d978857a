func.func @cast_to_some_dims(%x: tensor<?x?xf32, #graph.shape<["n", "n"]>>, %k: tensor<i64>) -> tensor<?x?xf32> attributes {graph.facts = ["n <= 8"]} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %count = tensor.extract %k[] : tensor<i64>
  %index = arith.index_cast %count : i64 to index
  %rounds = arith.minui %index, %two : index
  %a = "graph.match_cast"(%x) : (tensor<?x?xf32, #graph.shape<["n", "n"]>>) -> tensor<?x?xf32>
  %b = scf.for %i = %zero to %rounds step %one iter_args(%y = %a) -> tensor<?x?xf32> {
    %0 = "graph.match_cast"(%y) : (tensor<?x?xf32>) -> tensor<?x?xf32, #graph.shape<["s", "n"]>>
    %1 = "graph.concat"(%0, %0) {axis = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<?x?xf32, #graph.shape<["s", "n"]>>, tensor<?x?xf32, #graph.shape<["s", "n"]>>) -> tensor<?x?xf32, #graph.shape<["2*s", "n"]>>
    %2 = "graph.match_cast"(%1) : (tensor<?x?xf32, #graph.shape<["2*s", "n"]>>) -> tensor<?x?xf32>
    scf.yield %2 : tensor<?x?xf32>
  }
  %c = "graph.match_cast"(%b) : (tensor<?x?xf32>) -> tensor<?x?xf32, #graph.shape<["?", "n"]>>
  %d = scf.for %i = %zero to %rounds step %one iter_args(%y = %c) -> tensor<?x?xf32, #graph.shape<["?", "n"]>> {
    %0 = "graph.match_cast"(%y) : (tensor<?x?xf32, #graph.shape<["?", "n"]>>) -> tensor<?x?xf32, #graph.shape<["t", "n"]>>
    %1 = "graph.negative"(%0) : (tensor<?x?xf32, #graph.shape<["t", "n"]>>) -> tensor<?x?xf32, #graph.shape<["t", "n"]>>
    %2 = "graph.match_cast"(%1) : (tensor<?x?xf32, #graph.shape<["t", "n"]>>) -> tensor<?x?xf32, #graph.shape<["?", "n"]>>
    scf.yield %2 : tensor<?x?xf32, #graph.shape<["?", "n"]>>
  }
  %e = "graph.match_cast"(%d) : (tensor<?x?xf32, #graph.shape<["?", "n"]>>) -> tensor<?x?xf32>
  return %e : tensor<?x?xf32>
}
