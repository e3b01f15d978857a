// RUN: relax-opt %s --verify-diagnostics --relax-verify

func.func @copy_c1(%x: tensor<4xf32>, %out: tensor<5xf32>) {
  // expected-error @below {{'graph.copy' op copies 'tensor<4xf32>' into 'tensor<5xf32>'}}
  "graph.copy"(%x, %out) : (tensor<4xf32>, tensor<5xf32>) -> ()
  return
}

func.func @copy_c1_element(%x: tensor<4xf32>, %out: tensor<4xf64>) {
  // expected-error @below {{'graph.copy' op copies 'tensor<4xf32>' into 'tensor<4xf64>'}}
  "graph.copy"(%x, %out) : (tensor<4xf32>, tensor<4xf64>) -> ()
  return
}

func.func @copy_symbolic(%x: tensor<?xf32, #graph.shape<["n"]>>, %out: tensor<?xf32>) {
  "graph.copy"(%x, %out) : (tensor<?xf32, #graph.shape<["n"]>>, tensor<?xf32>) -> ()
  return
}
