// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-name-dims

// expected-error @below {{'func.func' op has argument 1 'y' of 'tensor<*xf32>', not a ranked tensor or a shape}}
func.func @negative_unranked(%x: tensor<?xf32>, %y: tensor<*xf32> {graph.name = "y"}) {
  return
}

// -----

// expected-error @below {{'func.func' op has argument 0 'arg0' of '!graph.object', not a ranked tensor or a shape}}
func.func @negative_object(%x: !graph.object) {
  return
}

// -----

func.func @negative_cast(%x: tensor<?xf32>) {
  %0 = "graph.match_cast"(%x) : (tensor<?xf32>) -> !graph.object
  // expected-error @below {{'graph.match_cast' op asserts 'tensor<?xf64>', which 'tensor<?xf32, #graph.shape<["arg0_0"]>>' can never be}}
  %1 = "graph.match_cast"(%0) : (!graph.object) -> tensor<?xf64>
  return
}

// -----

func.func @negative_branches(%c: i1, %x: tensor<?xf32>, %y: tensor<?x?xf32>) {
  // expected-error @below {{'scf.if' op has 'tensor<*xf32>', which compiled code cannot hold}}
  %0 = scf.if %c -> tensor<*xf32> {
    %1 = "graph.match_cast"(%x) : (tensor<?xf32>) -> tensor<*xf32>
    scf.yield %1 : tensor<*xf32>
  } else {
    %1 = "graph.match_cast"(%y) : (tensor<?x?xf32>) -> tensor<*xf32>
    scf.yield %1 : tensor<*xf32>
  }
  return
}

// -----

func.func @negative_kernel(%x: tensor<?xf32>) {
  // expected-error @below {{'graph.call_tir' op has 'tensor<?xf32>', whose dims nothing tells}}
  %0 = "graph.call_tir"(%x) {callee = @k, sym_args = #graph.shape<[]>, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<?xf32>) -> tensor<?xf32>
  %1 = "graph.exp"(%0) : (tensor<?xf32>) -> tensor<?xf32>
  return
}
func.func private @k(%x: tensor<?xf32, #graph.shape<["n"]>>, %y: tensor<?xf32, #graph.shape<["m"]>>) -> tensor<?xf32, #graph.shape<["m"]>> attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  return %y : tensor<?xf32, #graph.shape<["m"]>>
}
