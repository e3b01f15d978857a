func.func private @callee(%arg0: tensor<?xi64, #graph.shape<["p"]>> {graph.inout = 0 : i64}, %arg1: tensor<?xi64, #graph.shape<["p"]>>) -> (tensor<?xi64, #graph.shape<["p"]>>, tensor<?xi64, #graph.shape<["p"]>>) attributes {graph.noinline} {
  %0 = "graph.subtract"(%arg1, %arg0) : (tensor<?xi64, #graph.shape<["p"]>>, tensor<?xi64, #graph.shape<["p"]>>) -> tensor<?xi64, #graph.shape<["p"]>>
  return %arg1, %0 : tensor<?xi64, #graph.shape<["p"]>>, tensor<?xi64, #graph.shape<["p"]>>
}
func.func @callee_that_updates(%arg0: tensor<?xi64, #graph.shape<["n"]>>, %arg1: tensor<?xi64, #graph.shape<["n"]>>) -> (tensor<?xi64, #graph.shape<["n"]>>, tensor<?xi64, #graph.shape<["n"]>>) {
  %0:2 = "graph.call"(%arg0, %arg1) {callee = @callee, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>} : (tensor<?xi64, #graph.shape<["n"]>>, tensor<?xi64, #graph.shape<["n"]>>) -> (tensor<?xi64, #graph.shape<["n"]>>, tensor<?xi64, #graph.shape<["n"]>>)
  return %0#0, %0#1 : tensor<?xi64, #graph.shape<["n"]>>, tensor<?xi64, #graph.shape<["n"]>>
}
