// RUN: relax-opt %s --relax-verify | relax-opt --relax-verify | FileCheck %s

// CHECK-LABEL: func.func @names
func.func @names(%x: tensor<4xf32>) {
  // CHECK: "graph.to_device"(%{{.*}}) {device = "cpu"} : (tensor<4xf32>) -> tensor<4xf32>
  %0 = "graph.to_device"(%x) {device = "cpu"} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: "graph.to_device"(%{{.*}}) {device = "device"}
  %1 = "graph.to_device"(%0) {device = "device"} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: "graph.to_device"(%{{.*}}) {device = "vulkan"}
  %2 = "graph.to_device"(%1) {device = "vulkan"} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: "graph.hint_on_device"(%{{.*}}) {device = "cuda:sm_90a"}
  %3 = "graph.hint_on_device"(%2) {device = "cuda:sm_90a"} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// CHECK-LABEL: func.func @symbolic
func.func @symbolic(%x: tensor<?x4xi64, #graph.shape<["n", 4]>>, %y: tensor<*xbf16>) {
  // CHECK: "graph.to_device"(%{{.*}}) {device = "cuda"} : (tensor<?x4xi64, #graph.shape<["n", 4]>>) -> tensor<?x4xi64, #graph.shape<["n", 4]>>
  %0 = "graph.to_device"(%x) {device = "cuda"} : (tensor<?x4xi64, #graph.shape<["n", 4]>>) -> tensor<?x4xi64, #graph.shape<["n", 4]>>
  // CHECK: "graph.hint_on_device"(%{{.*}}) {device = "webgpu"} : (tensor<*xbf16>) -> tensor<*xbf16>
  %1 = "graph.hint_on_device"(%y) {device = "webgpu"} : (tensor<*xbf16>) -> tensor<*xbf16>
  return
}
