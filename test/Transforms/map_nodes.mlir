// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-map-nodes{target=vulkan})' | FileCheck %s --check-prefixes=CHECK,DEVICE
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-map-nodes{target=x86-64})' | FileCheck %s --check-prefixes=CHECK,HOST
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-map-nodes{target=vulkan policy=profiled times=blur@cpu=1,blur_by_rows@device=2.5,plain@device=3})' | FileCheck %s --check-prefix=TIMES
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-map-nodes{target=vulkan policy=greedy})' | FileCheck %s --check-prefix=SPLIT
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-map-nodes{target=vulkan},relax-lower-dataflow)' | FileCheck %s --check-prefix=CALLS
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-map-nodes{target=vulkan},relax-lower-dataflow,relax-place-devices{target=vulkan},relax-legalize-ops,relax-copy-between-devices)' | FileCheck %s --check-prefix=COPIES

#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!n = tensor<?xf32, #graph.shape<["n"]>>
func.func private @blur(%x: f32) -> f32
    attributes {tir.leaf, tir.targets = ["cuda", "cpu"], tir.versions = [@blur_by_rows]} {
  %0 = arith.addf %x, %x : f32
  return %0 : f32
}
func.func private @blur_by_rows(%x: f32) -> f32
    attributes {tir.leaf, tir.targets = ["webgpu", "device"]} {
  %two = arith.constant 2.0 : f32
  %0 = arith.mulf %x, %two : f32
  return %0 : f32
}
func.func private @plain(%x: f32) -> f32 attributes {tir.leaf} {
  %0 = arith.negf %x : f32
  return %0 : f32
}
func.func private @on_device(%x: !n) -> f32 attributes {tir.leaf, tir.targets = ["device", "cpu"]} {
  %i = "tir.node_id"() {level = 0 : i64, dim = 0 : i64} : () -> index
  %0 = tensor.extract %x[%i] : !n
  return %0 : f32
}

// The leaf's own targets come first; the version is left out. A leaf without targets is for all.
// CHECK-NOT:   tir.versions
// CHECK-NOT:   @blur_by_rows
// CHECK-LABEL: func.func @first
// CHECK:         "graph.node"(%{{.*}}) {callee = @blur, {{.*}}graph.device = "cpu"
// CHECK:         "graph.node"(%{{.*}}) {callee = @plain,
// CHECK-NOT:     graph.device
// CHECK:         return
// TIMES-LABEL: func.func @first
// TIMES:         callee = @blur, {{.*}}graph.device = "cpu"
// TIMES:         callee = @plain, {{.*}}graph.device = "device"
// SPLIT-LABEL: func.func @first_on_device
// SPLIT:         callee = @blur_by_rows, {{.*}}graph.device = "device"
// SPLIT:         callee = @plain, {{.*}}graph.device = "device"
// SPLIT-LABEL: func.func @first_on_cpu
// SPLIT-SAME:      graph.device = "cpu"
// SPLIT:         callee = @blur, {{.*}}graph.device = "cpu"
// CALLS-LABEL: func.func @first
// CALLS:         "graph.call_tir"(%{{.*}}) {callee = @blur_node, graph.device = "cpu"
// CALLS:         "graph.call_tir"(%{{.*}}) {callee = @plain_node, operandSegmentSizes
func.func @first(%x: !n) -> !n {
  %0 = "graph.node"(%x) {callee = @blur, grid = #graph.shape<["n"]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  %1 = "graph.node"(%0) {callee = @plain, grid = #graph.shape<["n"]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  return %1 : !n
}

// What a node says is kept, and is that of the nodes in it.
// CHECK-LABEL: func.func private @inner(
// DEVICE:        callee = @on_device, {{.*}}graph.device = "device"
// HOST:          callee = @on_device, {{.*}}graph.device = "cpu"
// CHECK-LABEL: func.func private @inner_on_cpu
// CHECK:         callee = @on_device, {{.*}}graph.device = "cpu"
// CHECK-LABEL: func.func @given
// CHECK:         callee = @inner_on_cpu,
func.func private @inner(%x: !n) -> !n attributes {graph.internal_node} {
  %0 = "graph.node"(%x) {callee = @on_device, grid = #graph.shape<["n"]>, edges = ["all_to_all"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  return %0 : !n
}
func.func @given(%x: !n) -> !n {
  %0 = "graph.node"(%x) {callee = @inner, grid = #graph.shape<[]>, edges = ["all_to_all"],
      graph.device = "cpu", operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  return %0 : !n
}

// Five nodes of the device between an argument and a result of the host: one copy in, one out.
// COPIES-LABEL: func.func @five
// COPIES:         "graph.to_device"(%arg0) {device = "device"}
// COPIES-COUNT-5: "graph.call_tir"
// COPIES:         "graph.to_device"(%{{.*}}) {device = "cpu"}
// COPIES-NOT:     graph.to_device
// COPIES:         return
func.func @five(%x: !n {graph.device = "cpu"}) -> !n {
  %0 = "graph.node"(%x) {callee = @on_device, grid = #graph.shape<["n"]>, edges = ["all_to_all"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  %1 = "graph.node"(%0) {callee = @on_device, grid = #graph.shape<["n"]>, edges = ["all_to_all"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  %2 = "graph.node"(%1) {callee = @on_device, grid = #graph.shape<["n"]>, edges = ["all_to_all"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  %3 = "graph.node"(%2) {callee = @on_device, grid = #graph.shape<["n"]>, edges = ["all_to_all"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  %4 = "graph.node"(%3) {callee = @on_device, grid = #graph.shape<["n"]>, edges = ["all_to_all"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  %5 = "graph.to_device"(%4) {device = "cpu"} : (!n) -> !n
  return %5 : !n
}
