// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-place-devices{target=x86-64-v3@webgpu})' | FileCheck %s
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-place-devices{target=x86-64-v3})' | FileCheck %s --check-prefix=CPU

// What follows a marked operator is on the host too, until something else is said.
// CHECK-LABEL: func.func @marked
// CPU-LABEL: func.func @marked
!x = tensor<?xf32, #graph.shape<["n"]>>
func.func @marked(%x: !x) -> !x {
  // CHECK: %[[S:.*]] = "graph.square"(%arg0)
  // CHECK: %[[C:.*]] = "graph.call"(%[[S]]) {callee = @exp_negative_on_host
  // CHECK: %[[D:.*]] = "graph.to_device"(%[[C]]) {device = "device"}
  // CHECK: %[[R:.*]] = "graph.multiply"(%[[D]], %arg0)
  // CHECK: return %[[R]]
  // CPU: %[[E:.*]] = "graph.exp"(%{{.*}}) : (
  // CPU: %[[N:.*]] = "graph.negative"(%[[E]])
  // CPU: "graph.multiply"(%[[N]], %arg0)
  %0 = "graph.square"(%x) : (!x) -> !x
  %1 = "graph.exp"(%0) {graph.device = "cpu"} : (!x) -> !x
  %2 = "graph.negative"(%1) : (!x) -> !x
  %3 = "graph.to_device"(%2) {device = "device"} : (!x) -> !x
  %4 = "graph.multiply"(%3, %x) : (!x, !x) -> !x
  return %4 : !x
}

// A hint is of what is computed; an argument is moved.
// CHECK-LABEL: func.func @hinted
func.func @hinted(%x: !x, %y: !x) -> (!x, !x) {
  // CHECK: %[[Y:.*]] = "graph.to_device"(%arg1) {device = "cpu"}
  // CHECK: "graph.call"(%{{.*}}, %{{.*}}) {callee = @square_add_on_host
  // CHECK: "graph.cos"(%arg0)
  %0 = "graph.square"(%x) : (!x) -> !x
  %1 = "graph.hint_on_device"(%0) {device = "cpu"} : (!x) -> !x
  %2 = "graph.hint_on_device"(%y) {device = "cpu"} : (!x) -> !x
  %3 = "graph.add"(%1, %2) : (!x, !x) -> !x
  %4 = "graph.cos"(%x) : (!x) -> !x
  return %3, %4 : !x, !x
}

// The device stores no f64: only what has some is on the host.
// CHECK-LABEL: func.func @fallback
func.func @fallback(%x: !x) -> !x {
  // CHECK: %[[C:.*]] = "graph.call"(%arg0) {callee = @astype_exp_astype_on_host
  // CHECK: "graph.negative"(%[[C]])
  %0 = "graph.astype"(%x) {dtype = f64} : (!x) -> tensor<?xf64, #graph.shape<["n"]>>
  %1 = "graph.exp"(%0) : (tensor<?xf64, #graph.shape<["n"]>>) -> tensor<?xf64, #graph.shape<["n"]>>
  %2 = "graph.astype"(%1) {dtype = f32} : (tensor<?xf64, #graph.shape<["n"]>>) -> !x
  %3 = "graph.negative"(%2) : (!x) -> !x
  return %3 : !x
}

// Arguments on the host, and what is made for the host only, constants included.
// CHECK-LABEL: func.func @sources
func.func @sources(%x: tensor<4xf32> {graph.device = "cpu"}, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK: %[[K:.*]] = arith.constant
  // CHECK: "graph.call"(%arg0) {callee = @arange_add_multiply_on_host
  // CHECK: "graph.multiply"(%arg1, %[[K]])
  %c = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %0 = "graph.arange"() {bounds = #graph.shape<[0, 4, 1]>, dtype = f32} : () -> tensor<4xf32>
  %1 = "graph.add"(%x, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = "graph.multiply"(%1, %c) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = "graph.multiply"(%y, %c) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2, %3 : tensor<4xf32>, tensor<4xf32>
}

// Operators that something of the device lies between are functions of their own.
// CHECK-LABEL: func.func @between
func.func @between(%x: !x) -> !x {
  // CHECK: "graph.call"(%arg0) {callee = @exp_on_host
  // CHECK: "graph.square"
  // CHECK: "graph.call"(%{{.*}}, %{{.*}}) {callee = @add_on_host
  %0 = "graph.exp"(%x) {graph.device = "cpu"} : (!x) -> !x
  %1 = "graph.square"(%0) {graph.device = "device"} : (!x) -> !x
  %2 = "graph.add"(%0, %1) {graph.device = "cpu"} : (!x, !x) -> !x
  return %2 : !x
}

// Facts go with the function.
// CHECK-LABEL: func.func @facts
func.func @facts(%x: !x, %y: tensor<?xf32, #graph.shape<["m"]>>) -> !x attributes {graph.facts = ["m == n"]} {
  // CHECK: callee = @add_on_host_{{[0-9]+}}
  %0 = "graph.add"(%x, %y) {graph.device = "cpu"} : (!x, tensor<?xf32, #graph.shape<["m"]>>) -> !x
  return %0 : !x
}

// In a branch, symbols that no operand binds are passed.
// CHECK-LABEL: func.func @branch
func.func @branch(%x: !x, %if: i1) -> !x {
  // CHECK: scf.if
  // CHECK: "graph.make_shape"() {dims = #graph.shape<["n"]>}
  // CHECK: callee = @full_exp_on_host
  %c = arith.constant dense<2.0> : tensor<f32>
  %0 = scf.if %if -> !x {
    %1 = "graph.full"(%c) {shape = #graph.shape<["n"]>} : (tensor<f32>) -> !x
    %2 = "graph.exp"(%1) {graph.device = "cpu"} : (!x) -> !x
    scf.yield %2 : !x
  } else {
    scf.yield %x : !x
  }
  return %0 : !x
}

// CHECK: func.func private @exp_negative_on_host{{.*}} attributes {graph.device = "cpu", graph.noinline}
// CHECK: func.func private @add_on_host_{{[0-9]+}}{{.*}} attributes {graph.device = "cpu", graph.facts = ["m == n"], graph.noinline}
// CPU-NOT: graph.device
