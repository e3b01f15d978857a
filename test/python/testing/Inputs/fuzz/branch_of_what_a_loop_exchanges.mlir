func.func @branch_of_what_a_loop_exchanges(%x: tensor<7x?xi8, #graph.shape<[7, "n"]>>, %k: tensor<i64>) -> tensor<7x?xi8, #graph.shape<[7, "n"]>> attributes {graph.facts = ["n <= 8"]} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %three = arith.constant 3 : index
  %count = tensor.extract %k[] : tensor<i64>
  %index = arith.index_cast %count : i64 to index
  %rounds = arith.minui %index, %three : index
  %r = scf.for %i = %zero to %rounds step %one iter_args(%a = %x) -> tensor<7x?xi8, #graph.shape<[7, "n"]>> {
    %b = scf.index_switch %i -> tensor<7x?xi8, #graph.shape<[7, "n"]>>
    case 1 {
      %0 = "graph.negative"(%a) : (tensor<7x?xi8, #graph.shape<[7, "n"]>>) -> tensor<7x?xi8, #graph.shape<[7, "n"]>>
      scf.yield %0 : tensor<7x?xi8, #graph.shape<[7, "n"]>>
    }
    default {
      scf.yield %a : tensor<7x?xi8, #graph.shape<[7, "n"]>>
    }
    %c = "graph.flip"(%b) {axes = array<i64: 1>} : (tensor<7x?xi8, #graph.shape<[7, "n"]>>) -> tensor<7x?xi8, #graph.shape<[7, "n"]>>
    scf.yield %c : tensor<7x?xi8, #graph.shape<[7, "n"]>>
  }
  return %r : tensor<7x?xi8, #graph.shape<[7, "n"]>>
}
