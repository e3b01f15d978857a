// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-legalize-ops

func.func @unknown_operand_dim(%x: tensor<?xf32>) {
  // expected-error @below {{'graph.exp' op has 'tensor<?xf32>', whose dims are not all known; assert it with graph.match_cast}}
  %0 = "graph.exp"(%x) : (tensor<?xf32>) -> tensor<?xf32>
  return
}

// -----

func.func @unknown_result_dim(%x: tensor<?xf32, #graph.shape<["n"]>>, %y: tensor<?xf32, #graph.shape<["m"]>>) {
  // expected-error @below {{'graph.add' op has 'tensor<?xf32>', whose dims are not all known}}
  %0 = "graph.add"(%x, %y) : (tensor<?xf32, #graph.shape<["n"]>>, tensor<?xf32, #graph.shape<["m"]>>) -> tensor<?xf32>
  return
}

// -----

func.func @unknown_rank(%x: tensor<*xf32>) {
  // expected-error @below {{'graph.exp' op has 'tensor<*xf32>', whose dims are not all known}}
  %0 = "graph.exp"(%x) : (tensor<*xf32>) -> tensor<*xf32>
  return
}
