func.func @one_narrow_product(%arg0: tensor<?x1xi16, #graph.shape<["n", 1]>>, %arg1: tensor<?x1xi16, #graph.shape<["n", 1]>>) -> tensor<1x1xi16> {
  %0 = "graph.call_tir"(%arg0, %arg1) {callee = @one_product, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, sym_args = #graph.shape<[]>} : (tensor<?x1xi16, #graph.shape<["n", 1]>>, tensor<?x1xi16, #graph.shape<["n", 1]>>) -> tensor<1x1xi16>
  return %0 : tensor<1x1xi16>
}
func.func private @one_product(%arg0: tensor<?x1xi16, #graph.shape<["p", 1]>>, %arg1: tensor<?x1xi16, #graph.shape<["p", 1]>>, %arg2: tensor<1x1xi16, #graph.shape<[1, 1]>>) -> tensor<1x1xi16, #graph.shape<[1, 1]>> attributes {tir.num_outs = 1 : i64, tir.prim_func} {
  %cast = tensor.cast %arg0 : tensor<?x1xi16, #graph.shape<["p", 1]>> to tensor<?x1xi16>
  %cast_0 = tensor.cast %arg1 : tensor<?x1xi16, #graph.shape<["p", 1]>> to tensor<?x1xi16>
  %cast_1 = tensor.cast %arg2 : tensor<1x1xi16, #graph.shape<[1, 1]>> to tensor<1x1xi16>
  %c0_i16 = arith.constant 0 : i16
  %c0 = arith.constant 0 : index
  %0 = linalg.fill ins(%c0_i16 : i16) outs(%cast_1 : tensor<1x1xi16>) -> tensor<1x1xi16>
  %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d2, d0)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%cast, %cast_0 : tensor<?x1xi16>, tensor<?x1xi16>) outs(%0 : tensor<1x1xi16>) {
  ^bb0(%in: i16, %in_3: i16, %out: i16):
    %2 = arith.muli %in, %in_3 : i16
    %3 = arith.addi %out, %2 : i16
    linalg.yield %3 : i16
  } -> tensor<1x1xi16>
  %cast_2 = tensor.cast %1 : tensor<1x1xi16> to tensor<1x1xi16, #graph.shape<[1, 1]>>
  return %cast_2 : tensor<1x1xi16, #graph.shape<[1, 1]>>
}