// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-copy-between-devices)' | FileCheck %s
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-legalize-ops,relax-schedule{target=x86-64-v3@gpu},relax-copy-between-devices,relax-lower-calls,relax-plan-memory{alignment=256})' | FileCheck %s --check-prefix=PLAN

!x = tensor<?xf32, #graph.shape<["n"]>>
func.func private @on_cpu(%x: !x, %y: !x) -> !x attributes {graph.device = "cpu", graph.noinline} {
  %0 = "graph.add"(%x, %y) : (!x, !x) -> !x
  return %0 : !x
}

// A tensor is copied once to each side; results are on the device.
// CHECK-LABEL: func.func @once
// PLAN-LABEL: func.func @once
func.func @once(%x: !x) -> (!x, !x) {
  // CHECK: %[[X:.*]] = "graph.to_device"(%arg0) {device = "cpu"}
  // CHECK: %[[A:.*]] = "graph.call"(%[[X]], %[[X]]) {callee = @on_cpu
  // CHECK: %[[D:.*]] = "graph.to_device"(%[[A]]) {device = "device"}
  // CHECK: %[[B:.*]] = "graph.call"(%[[A]], %[[X]]) {callee = @on_cpu
  // CHECK: %[[E:.*]] = "graph.to_device"(%[[B]]) {device = "device"}
  // CHECK: %[[C:.*]] = "graph.add"(%[[D]], %[[E]])
  // CHECK: return %[[C]], %[[D]]
  // Host and device have storages of their own, aligned by 64 and by 256 bytes; results have none.
  // PLAN-DAG: %[[HOST:.*]] = "graph.alloc_storage"() {graph.device = "cpu", size = #graph.shape<["192*((n + 15) floordiv 16)"]>}
  // PLAN-DAG: %[[DEVICE:.*]] = "graph.alloc_storage"() {size = #graph.shape<["256*((n + 63) floordiv 64)"]>}
  // PLAN: %[[X:.*]] = "graph.alloc_tensor"(%[[HOST]]) {graph.device = "cpu"
  // PLAN: "graph.copy"(%arg0, %[[X]])
  // PLAN: %[[A:.*]] = "graph.alloc_tensor"(%[[HOST]]) {graph.device = "cpu"
  // PLAN: "graph.call_dps"(%[[X]], %[[X]], %[[A]]) {callee = @on_cpu
  // PLAN: %[[D:.*]] = "graph.alloc_tensor"() {offset
  // PLAN: "graph.copy"(%[[A]], %[[D]])
  // PLAN: "graph.alloc_tensor"(%[[DEVICE]]) {offset
  %0 = "graph.call"(%x, %x) {callee = @on_cpu, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (!x, !x) -> !x
  %1 = "graph.call"(%0, %x) {callee = @on_cpu, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (!x, !x) -> !x
  %2 = "graph.add"(%0, %1) : (!x, !x) -> !x
  return %2, %0 : !x, !x
}

// What is moved to the host last is returned there; other moves to where a tensor is are left out.
// CHECK-LABEL: func.func @results
// CHECK-SAME: attributes {graph.host_tensors = array<i64: 0, 2>}
func.func @results(%x: tensor<4xf32> {graph.device = "cpu"}) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK: %[[X:.*]] = "graph.to_device"(%arg0) {device = "device"}
  // CHECK: %[[C:.*]] = arith.constant dense
  // CHECK: %[[S:.*]] = "graph.add"(%[[X]], %[[C]])
  // CHECK: %[[H:.*]] = "graph.to_device"(%[[S]]) {device = "cpu"}
  // CHECK: %[[T:.*]] = "graph.add"(%[[S]], %[[S]])
  // CHECK: %[[K:.*]] = "graph.to_device"(%[[C]]) {device = "cpu"}
  // CHECK: return %[[H]], %[[T]], %[[K]]
  %c = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %0 = "graph.add"(%x, %c) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = "graph.to_device"(%0) {device = "cpu"} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "graph.to_device"(%0) {device = "device"} : (tensor<4xf32>) -> tensor<4xf32>
  %3 = "graph.add"(%2, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = "graph.to_device"(%c) {device = "cpu"} : (tensor<4xf32>) -> tensor<4xf32>
  return %1, %3, %4 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// What branches yield is on the device; elements and dims are read where they are.
// CHECK-LABEL: func.func @branch
func.func @branch(%x: !x {graph.device = "cpu"}, %y: !x, %i: index) -> (!x, f32) {
  // CHECK: %[[X:.*]] = "graph.to_device"(%arg0) {device = "device"}
  // CHECK: tensor.extract %arg0
  // CHECK: scf.yield %[[X]]
  %0 = tensor.extract %x[%i] : !x
  %zero = arith.constant 0.0 : f32
  %1 = arith.cmpf olt, %0, %zero : f32
  %2 = scf.if %1 -> !x {
    scf.yield %x : !x
  } else {
    scf.yield %y : !x
  }
  return %2, %0 : !x, f32
}

// Calls find constants on both sides.
// CHECK-LABEL: func.func @constant
func.func @constant() -> tensor<4xf32> {
  // CHECK: %[[C:.*]] = arith.constant
  // CHECK: "graph.call"(%[[C]]) {callee = @of_constant
  %c = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %0 = "graph.call"(%c) {callee = @of_constant, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @of_constant(%x: tensor<4xf32>) -> tensor<4xf32> attributes {graph.device = "cpu", graph.noinline} {
  %0 = "graph.add"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
