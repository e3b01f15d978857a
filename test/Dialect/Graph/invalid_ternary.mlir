// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(relax-verify)'

func.func @where_c1(%x: tensor<4xi8>, %y: tensor<4xf32>, %z: tensor<4xf32>) {
  // expected-error @below {{'graph.where' op expects element type i1, but got i8}}
  %0 = "graph.where"(%x, %y, %z) : (tensor<4xi8>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

func.func @where_c2(%x: tensor<4xi1>, %y: tensor<4xf32>, %z: tensor<4xf64>) {
  // expected-error @below {{'graph.where' op expects one element type, but got f32 and f64}}
  %0 = "graph.where"(%x, %y, %z) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf64>) -> tensor<4xf32>
  return
}

func.func @where_c3(%x: tensor<3xi1>, %y: tensor<4xf32>, %z: tensor<4xf32>) {
  // expected-error @below {{'graph.where' op cannot broadcast dim 4 with dim 3}}
  %0 = "graph.where"(%x, %y, %z) : (tensor<3xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}
