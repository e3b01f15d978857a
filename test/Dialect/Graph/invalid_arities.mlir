// RUN: relax-opt %s --split-input-file --verify-diagnostics

// What fits into the slots has one name.
func.func @of_few(%x: tensor<2xf32>) {
  // expected-error @below {{unregistered operation 'graph.concat_1to1' found in dialect ('graph')}}
  %0 = "graph.concat_1to1"(%x) {axis = 0 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @with_other_counts(%x: tensor<2xf32>) {
  // expected-error @below {{op expects exactly 33 operands, but got 1}}
  %0 = "graph.concat_33to1"(%x) {axis = 0 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  return
}
