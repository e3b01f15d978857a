func.func @rotary_of_any_heads(%arg0: tensor<1x8xf32>, %arg1: tensor<1x8xf32>, %arg2: tensor<f32>, %arg3: tensor<f32>, %arg4: tensor<1x?x16xf32, #graph.shape<[1, "n", 16]>>) -> tensor<1x?x16xf32, #graph.shape<[1, "n", 16]>> {
  %0 = "graph.nn_rotary"(%arg4, %arg0, %arg1) : (tensor<1x?x16xf32, #graph.shape<[1, "n", 16]>>, tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x?x16xf32, #graph.shape<[1, "n", 16]>>
  %1 = "graph.maximum"(%0, %arg3) : (tensor<1x?x16xf32, #graph.shape<[1, "n", 16]>>, tensor<f32>) -> tensor<1x?x16xf32, #graph.shape<[1, "n", 16]>>
  %2 = "graph.minimum"(%1, %arg2) : (tensor<1x?x16xf32, #graph.shape<[1, "n", 16]>>, tensor<f32>) -> tensor<1x?x16xf32, #graph.shape<[1, "n", 16]>>
  return %2 : tensor<1x?x16xf32, #graph.shape<[1, "n", 16]>>
}