// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(relax-verify)'

func.func @astype_c1(%x: tensor<4xf32>) {
  // expected-error @below {{'graph.astype' op expects a float, integer or i1 dtype, but got complex<f32>}}
  %0 = "graph.astype"(%x) {dtype = complex<f32>} : (tensor<4xf32>) -> tensor<4xcomplex<f32>>
  return
}

func.func @astype_c1_signed(%x: tensor<4xf32>) {
  // expected-error @below {{'graph.astype' op expects a float, integer or i1 dtype, but got si8}}
  %0 = "graph.astype"(%x) {dtype = si8} : (tensor<4xf32>) -> tensor<4xsi8>
  return
}

func.func @negative_result(%x: tensor<4xf32>) {
  // expected-error @below {{'graph.astype' op infers result type 'tensor<4xf64>', but has 'tensor<4xf16>'}}
  %0 = "graph.astype"(%x) {dtype = f64} : (tensor<4xf32>) -> tensor<4xf16>
  return
}
