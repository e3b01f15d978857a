// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(relax-place-devices{target=x86-64-v3@gpu@vulkan@gpu})' | FileCheck %s
// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(relax-place-devices{target=x86-64-v3@gpu@vulkan@gpu},relax-legalize-ops,relax-schedule{target=x86-64-v3@gpu@vulkan@gpu},relax-copy-between-devices,relax-lower-calls,relax-plan-memory{alignment=256},relax-outline-launches)' | FileCheck %s --check-prefix=PLAN

!x = tensor<?xf32, #graph.shape<["n"]>>

// What is made of tensors of a device is made there; neighbours in one place are one function.
// CHECK-LABEL: func.func @turns
// CHECK: %[[A:.*]] = "graph.add"(%arg0, %arg0)
// CHECK: %[[B:.*]] = "graph.call"(%[[A]]) {callee = @exp_negative_on_vulkan
// CHECK: %[[C:.*]] = "graph.call"(%[[B]]) {callee = @exp_on_gpu_1
// CHECK: %[[D:.*]] = "graph.call"(%[[B]]) {callee = @exp_on_host
// CHECK: %[[M:.*]] = "graph.to_device"(%[[C]]) {device = "device"}
// CHECK: %[[E:.*]] = "graph.add"(%[[M]], %[[D]])
// CHECK: return %[[E]]

// Each kernel is scheduled for its device, and each device has storages of its own.
// PLAN-LABEL: func.func @turns
// PLAN-DAG: "graph.alloc_storage"() {graph.device = "cpu", size = #graph.shape<["128*((n + 15) floordiv 16)"]>}
// PLAN-DAG: "graph.alloc_storage"() {graph.device = "gpu:1", size
// PLAN-DAG: %[[ON_VULKAN:.*]] = "graph.alloc_storage"() {graph.device = "vulkan", size = #graph.shape<["512*((n + 63) floordiv 64)"]>}
// PLAN: %[[A:.*]] = "graph.alloc_tensor"(%{{.*}}) {offset
// PLAN: "graph.call_dps"(%arg0, %arg0, %[[A]]) {callee = @add
// PLAN: %[[AV:.*]] = "graph.alloc_tensor"(%[[ON_VULKAN]]) {graph.device = "vulkan"
// PLAN: "graph.copy"(%[[A]], %[[AV]])
// PLAN: %[[B:.*]] = "graph.alloc_tensor"(%{{.*}}) {graph.device = "vulkan"
// PLAN: "graph.call_dps"(%[[AV]], %[[B]]) {callee = @exp_negative_on_vulkan
func.func @turns(%x: !x) -> !x {
  %0 = "graph.add"(%x, %x) : (!x, !x) -> !x
  %1 = "graph.exp"(%0) {graph.device = "vulkan"} : (!x) -> !x
  %2 = "graph.negative"(%1) : (!x) -> !x
  %3 = "graph.exp"(%2) {graph.device = "gpu:1"} : (!x) -> !x
  %4 = "graph.exp"(%2) {graph.device = "cpu"} : (!x) -> !x
  %5 = "graph.to_device"(%3) {device = "gpu"} : (!x) -> !x
  %6 = "graph.add"(%5, %4) : (!x, !x) -> !x
  return %6 : !x
}

// CHECK: func.func private @exp_negative_on_vulkan
// CHECK-SAME: graph.device = "vulkan"
// CHECK: func.func private @exp_on_gpu_1
// CHECK-SAME: graph.device = "gpu:1"

// PLAN: gpu.module @{{.*}} attributes {graph.device = "vulkan"}

// -----

func.func @another(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'graph.to_device' op is placed on 'gpu:2', but the target has the devices 'gpu', 'vulkan' and 'gpu'; accepted are 'cpu', 'device', 'vulkan' and 'gpu:1'}}
  %0 = "graph.to_device"(%x) {device = "gpu:2"} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error @below {{'func.func' op is called from outside, but is placed on 'vulkan'; accepted are 'cpu' and 'device', from where `graph.to_device` copies}}
func.func @whole(%x: tensor<4xf32>) -> tensor<4xf32> attributes {graph.device = "vulkan"} {
  return %x : tensor<4xf32>
}

// -----

// expected-error @below {{'func.func' op takes 'arg0' on 'gpu:1', although it is called from outside; accepted are 'cpu' and 'device'}}
func.func @argument(%x: tensor<4xf32> {graph.device = "gpu:1"}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
