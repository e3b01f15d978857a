// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(relax-verify)'

func.func @to_device_c1(%x: tensor<4xf32>) {
  // expected-error @below {{'graph.to_device' op expects 'device' to be 'cpu', 'device' or a device of a target, not 'cuda:first'}}
  %0 = "graph.to_device"(%x) {device = "cuda:first"} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

func.func @hint_on_device_c1(%x: tensor<4xf32>) {
  // expected-error @below {{'graph.hint_on_device' op expects 'device' to be 'cpu', 'device' or a device of a target, not ''}}
  %0 = "graph.hint_on_device"(%x) {device = ""} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

func.func @negative_result(%x: tensor<4xf32>) {
  // expected-error @below {{'graph.to_device' op infers result type 'tensor<4xf32>', but has 'tensor<4xf16>'}}
  %0 = "graph.to_device"(%x) {device = "cpu"} : (tensor<4xf32>) -> tensor<4xf16>
  return
}
