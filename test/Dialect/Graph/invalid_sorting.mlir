// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(relax-verify)'

func.func @sort_c1(%x: tensor<9x4xi1>) {
  // expected-error @below {{'graph.sort' op expects a number element type, but got i1}}
  %0:2 = "graph.sort"(%x) {axis = 0 : i64, descending = false} : (tensor<9x4xi1>) -> (tensor<9x4xi1>, tensor<9x4xi64>)
  return
}

func.func @sort_c2(%x: tensor<9x4xf32>) {
  // expected-error @below {{'graph.sort' op has axis 2, but rank 2 accepts -2 to 1}}
  %0:2 = "graph.sort"(%x) {axis = 2 : i64, descending = false} : (tensor<9x4xf32>) -> (tensor<9x4xf32>, tensor<9x4xi64>)
  return
}

func.func @topk_c1(%x: tensor<9x4xi1>) {
  // expected-error @below {{'graph.topk' op expects a number element type, but got i1}}
  %0:2 = "graph.topk"(%x) {axis = 0 : i64, k = #graph.shape<[2]>, largest = true} : (tensor<9x4xi1>) -> (tensor<2x4xf32>, tensor<2x4xi64>)
  return
}

func.func @topk_c2(%x: tensor<9x4xf32>) {
  // expected-error @below {{'graph.topk' op has axis 2, but rank 2 accepts -2 to 1}}
  %0:2 = "graph.topk"(%x) {axis = 2 : i64, k = #graph.shape<[2]>, largest = true} : (tensor<9x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xi64>)
  return
}

func.func @topk_c3(%x: tensor<9x4xf32>) {
  // expected-error @below {{'graph.topk' op expects one known count of elements, but got 2}}
  %0:2 = "graph.topk"(%x) {axis = 0 : i64, k = #graph.shape<[1, 2]>, largest = true} : (tensor<9x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xi64>)
  return
}

func.func @topk_c3_unknown(%x: tensor<9x4xf32>) {
  // expected-error @below {{'graph.topk' op expects one known count of elements, but got 1}}
  %0:2 = "graph.topk"(%x) {axis = 0 : i64, k = #graph.shape<["?"]>, largest = true} : (tensor<9x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xi64>)
  return
}

func.func @topk_c3_many(%x: tensor<9x4xf32>) {
  // expected-error @below {{'graph.topk' op takes 10 elements from axis 0 of 9}}
  %0:2 = "graph.topk"(%x) {axis = 0 : i64, k = #graph.shape<[10]>, largest = true} : (tensor<9x4xf32>) -> (tensor<10x4xf32>, tensor<10x4xi64>)
  return
}

func.func @argsort_rows_c1(%x: tensor<9x4xi1>) {
  // expected-error @below {{'graph.argsort_rows' op expects a number element type, but got i1}}
  %0 = "graph.argsort_rows"(%x) : (tensor<9x4xi1>) -> tensor<9xi64>
  return
}

func.func @argsort_rows_c2(%x: tensor<9xf32>) {
  // expected-error @below {{'graph.argsort_rows' op expects a matrix, but got 'tensor<9 x f32>'}}
  %0 = "graph.argsort_rows"(%x) : (tensor<9xf32>) -> tensor<9xi64>
  return
}
