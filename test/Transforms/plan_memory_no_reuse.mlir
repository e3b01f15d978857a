// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-lower-calls,relax-plan-memory{reuse=false}' | FileCheck %s

// CHECK-LABEL: func.func @one_block_each
func.func @one_block_each(%x: tensor<?x16xf32, #graph.shape<["n", 16]>>) -> tensor<?x16xf32, #graph.shape<["n", 16]>> {
  // CHECK: size = #graph.shape<["256*n"]>
  %0 = "graph.exp"(%x) : (tensor<?x16xf32, #graph.shape<["n", 16]>>) -> tensor<?x16xf32, #graph.shape<["n", 16]>>
  %1 = "graph.cos"(%0) : (tensor<?x16xf32, #graph.shape<["n", 16]>>) -> tensor<?x16xf32, #graph.shape<["n", 16]>>
  %2 = "graph.exp"(%1) : (tensor<?x16xf32, #graph.shape<["n", 16]>>) -> tensor<?x16xf32, #graph.shape<["n", 16]>>
  %3 = "graph.cos"(%2) : (tensor<?x16xf32, #graph.shape<["n", 16]>>) -> tensor<?x16xf32, #graph.shape<["n", 16]>>
  %4 = "graph.exp"(%3) : (tensor<?x16xf32, #graph.shape<["n", 16]>>) -> tensor<?x16xf32, #graph.shape<["n", 16]>>
  return %4 : tensor<?x16xf32, #graph.shape<["n", 16]>>
}
