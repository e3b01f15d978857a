// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-lower-calls,relax-plan-memory' | FileCheck %s

// Four temporaries take two blocks in turn; what is returned stays a fresh allocation (paper Figure 10).
// CHECK-LABEL: func.func @ping_pong
func.func @ping_pong(%x: tensor<?x16xf32, #graph.shape<["n", 16]>>) -> tensor<?x16xf32, #graph.shape<["n", 16]>> {
  // CHECK: %[[ARENA:.*]] = "graph.alloc_storage"() {size = #graph.shape<["128*n"]>}
  // CHECK: "graph.alloc_tensor"(%[[ARENA]]) {offset = #graph.shape<[0]>
  // CHECK: "graph.alloc_tensor"(%[[ARENA]]) {offset = #graph.shape<["64*n"]>
  // CHECK: "graph.alloc_tensor"(%[[ARENA]]) {offset = #graph.shape<[0]>
  // CHECK: "graph.alloc_tensor"(%[[ARENA]]) {offset = #graph.shape<["64*n"]>
  // CHECK: "graph.alloc_tensor"() {
  %0 = "graph.exp"(%x) : (tensor<?x16xf32, #graph.shape<["n", 16]>>) -> tensor<?x16xf32, #graph.shape<["n", 16]>>
  %1 = "graph.cos"(%0) : (tensor<?x16xf32, #graph.shape<["n", 16]>>) -> tensor<?x16xf32, #graph.shape<["n", 16]>>
  %2 = "graph.exp"(%1) : (tensor<?x16xf32, #graph.shape<["n", 16]>>) -> tensor<?x16xf32, #graph.shape<["n", 16]>>
  %3 = "graph.cos"(%2) : (tensor<?x16xf32, #graph.shape<["n", 16]>>) -> tensor<?x16xf32, #graph.shape<["n", 16]>>
  %4 = "graph.exp"(%3) : (tensor<?x16xf32, #graph.shape<["n", 16]>>) -> tensor<?x16xf32, #graph.shape<["n", 16]>>
  return %4 : tensor<?x16xf32, #graph.shape<["n", 16]>>
}

// Neither size is proved to hold the other: the storage is as large as the greater one.
// CHECK-LABEL: func.func @unrelated_symbols
func.func @unrelated_symbols(%x: tensor<?x16xf32, #graph.shape<["n", 16]>>, %y: tensor<?x16xf32, #graph.shape<["m", 16]>>) -> (tensor<16xf32>, tensor<16xf32>) {
  // CHECK: size = #graph.shape<["64*max(m, n)"]>
  %0 = "graph.exp"(%x) : (tensor<?x16xf32, #graph.shape<["n", 16]>>) -> tensor<?x16xf32, #graph.shape<["n", 16]>>
  %1 = "graph.sum"(%0) {axes = array<i64: 0>, keepdims = false} : (tensor<?x16xf32, #graph.shape<["n", 16]>>) -> tensor<16xf32>
  %2 = "graph.exp"(%y) : (tensor<?x16xf32, #graph.shape<["m", 16]>>) -> tensor<?x16xf32, #graph.shape<["m", 16]>>
  %3 = "graph.sum"(%2) {axes = array<i64: 0>, keepdims = false} : (tensor<?x16xf32, #graph.shape<["m", 16]>>) -> tensor<16xf32>
  return %1, %3 : tensor<16xf32>, tensor<16xf32>
}

// A fact orders the sizes: the second tensor fits where the first one was.
// CHECK-LABEL: func.func @fact_allows_reuse
func.func @fact_allows_reuse(%x: tensor<?x16xf32, #graph.shape<["n", 16]>>, %y: tensor<?x16xf32, #graph.shape<["m", 16]>>) -> (tensor<16xf32>, tensor<16xf32>)
    attributes {graph.facts = ["m <= n"]} {
  // CHECK: size = #graph.shape<["64*n"]>
  %0 = "graph.exp"(%x) : (tensor<?x16xf32, #graph.shape<["n", 16]>>) -> tensor<?x16xf32, #graph.shape<["n", 16]>>
  %1 = "graph.sum"(%0) {axes = array<i64: 0>, keepdims = false} : (tensor<?x16xf32, #graph.shape<["n", 16]>>) -> tensor<16xf32>
  %2 = "graph.exp"(%y) : (tensor<?x16xf32, #graph.shape<["m", 16]>>) -> tensor<?x16xf32, #graph.shape<["m", 16]>>
  %3 = "graph.sum"(%2) {axes = array<i64: 0>, keepdims = false} : (tensor<?x16xf32, #graph.shape<["m", 16]>>) -> tensor<16xf32>
  return %1, %3 : tensor<16xf32>, tensor<16xf32>
}

// A block that is proved too small grows, since nobody uses it any more.
// CHECK-LABEL: func.func @grows
func.func @grows(%x: tensor<16xf32>, %y: tensor<64xf32>) -> (tensor<f32>, tensor<f32>) {
  // CHECK: size = #graph.shape<[256]>
  %0 = "graph.exp"(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %1 = "graph.sum"(%0) {axes = array<i64>, keepdims = false} : (tensor<16xf32>) -> tensor<f32>
  %2 = "graph.exp"(%y) : (tensor<64xf32>) -> tensor<64xf32>
  %3 = "graph.sum"(%2) {axes = array<i64>, keepdims = false} : (tensor<64xf32>) -> tensor<f32>
  return %1, %3 : tensor<f32>, tensor<f32>
}

// A view keeps its memory alive, so its block is not free at the second allocation.
// CHECK-LABEL: func.func @negative_view_keeps_alive
func.func @negative_view_keeps_alive(%x: tensor<16xf32>) -> tensor<4x4xf32> {
  // CHECK: size = #graph.shape<[128]>
  %0 = "graph.exp"(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %1 = "graph.reshape"(%0) {shape = #graph.shape<[4, 4]>} : (tensor<16xf32>) -> tensor<4x4xf32>
  %2 = "graph.cos"(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %3 = "graph.reshape"(%2) {shape = #graph.shape<[4, 4]>} : (tensor<16xf32>) -> tensor<4x4xf32>
  %4 = "graph.matmul"(%1, %3) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %4 : tensor<4x4xf32>
}

// A cast is the same memory under another name: it is in use as long as either.
// CHECK-LABEL: func.func @negative_cast_keeps_alive
func.func @negative_cast_keeps_alive(%x: tensor<?x16xf32, #graph.shape<["n", 16]>>, %y: tensor<?x16xf32, #graph.shape<["m", 16]>>) -> tensor<?x16xf32, #graph.shape<["m", 16]>> {
  // CHECK: %[[STORAGE:.*]] = "graph.alloc_storage"() {size = #graph.shape<["64*m + 64*n"]>}
  // CHECK: "graph.alloc_tensor"(%[[STORAGE]]) {offset = #graph.shape<[0]>
  // CHECK: "graph.alloc_tensor"(%[[STORAGE]]) {offset = #graph.shape<["64*n"]>
  %0 = "graph.exp"(%x) : (tensor<?x16xf32, #graph.shape<["n", 16]>>) -> tensor<?x16xf32, #graph.shape<["n", 16]>>
  %1 = "graph.match_cast"(%0) : (tensor<?x16xf32, #graph.shape<["n", 16]>>) -> tensor<?x16xf32, #graph.shape<["m", 16]>>
  %2 = "graph.cos"(%y) : (tensor<?x16xf32, #graph.shape<["m", 16]>>) -> tensor<?x16xf32, #graph.shape<["m", 16]>>
  %3 = "graph.add"(%1, %2) : (tensor<?x16xf32, #graph.shape<["m", 16]>>, tensor<?x16xf32, #graph.shape<["m", 16]>>) -> tensor<?x16xf32, #graph.shape<["m", 16]>>
  return %3 : tensor<?x16xf32, #graph.shape<["m", 16]>>
}

// The result under the name of a cast is an allocation of the caller's, if its dims are known in time.
// CHECK-LABEL: func.func @cast_is_returned
func.func @cast_is_returned(%x: tensor<?xf32, #graph.shape<["n"]>>, %y: tensor<?xf32, #graph.shape<["m"]>>) -> (tensor<?xf32, #graph.shape<["m"]>>, tensor<?xf32, #graph.shape<["k"]>>) {
  // CHECK-NEXT: "graph.alloc_storage"() {size = #graph.shape<["64*((n + 15) floordiv 16)"]>}
  // CHECK-NEXT: "graph.alloc_tensor"()
  // CHECK:      "graph.alloc_tensor"(%
  %0 = "graph.exp"(%x) : (tensor<?xf32, #graph.shape<["n"]>>) -> tensor<?xf32, #graph.shape<["n"]>>
  %1 = "graph.cos"(%x) : (tensor<?xf32, #graph.shape<["n"]>>) -> tensor<?xf32, #graph.shape<["n"]>>
  %2 = "graph.match_cast"(%0) : (tensor<?xf32, #graph.shape<["n"]>>) -> tensor<?xf32, #graph.shape<["m"]>>
  %3 = "graph.match_cast"(%1) : (tensor<?xf32, #graph.shape<["n"]>>) -> tensor<?xf32, #graph.shape<["k"]>>
  return %2, %3 : tensor<?xf32, #graph.shape<["m"]>>, tensor<?xf32, #graph.shape<["k"]>>
}

// A symbol that a cast binds sizes a storage behind it; a fact on it helps from there on only.
// CHECK-LABEL: func.func @symbol_bound_inside
func.func @symbol_bound_inside(%x: tensor<?x16xf32>, %y: tensor<?x16xf32, #graph.shape<["n", 16]>>, %z: tensor<?x16xf32, #graph.shape<["m", 16]>>) -> (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>)
    attributes {graph.facts = ["k <= n", "m <= k"]} {
  // CHECK-NEXT: %[[OUTER:.*]] = "graph.alloc_storage"() {size = #graph.shape<["64*max(m, n)"]>}
  // CHECK:      "graph.match_cast"
  // CHECK-NEXT: %[[INNER:.*]] = "graph.alloc_storage"() {size = #graph.shape<["64*k"]>}
  // CHECK:      "graph.alloc_tensor"(%[[INNER]]) {offset = #graph.shape<[0]>
  %0 = "graph.exp"(%y) : (tensor<?x16xf32, #graph.shape<["n", 16]>>) -> tensor<?x16xf32, #graph.shape<["n", 16]>>
  %1 = "graph.sum"(%0) {axes = array<i64: 0>, keepdims = false} : (tensor<?x16xf32, #graph.shape<["n", 16]>>) -> tensor<16xf32>
  %2 = "graph.cos"(%z) : (tensor<?x16xf32, #graph.shape<["m", 16]>>) -> tensor<?x16xf32, #graph.shape<["m", 16]>>
  %3 = "graph.sum"(%2) {axes = array<i64: 0>, keepdims = false} : (tensor<?x16xf32, #graph.shape<["m", 16]>>) -> tensor<16xf32>
  %4 = "graph.match_cast"(%x) : (tensor<?x16xf32>) -> tensor<?x16xf32, #graph.shape<["k", 16]>>
  %5 = "graph.exp"(%4) : (tensor<?x16xf32, #graph.shape<["k", 16]>>) -> tensor<?x16xf32, #graph.shape<["k", 16]>>
  %6 = "graph.sum"(%5) {axes = array<i64: 0>, keepdims = false} : (tensor<?x16xf32, #graph.shape<["k", 16]>>) -> tensor<16xf32>
  return %1, %3, %6 : tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
}

// Two branches may bind the same name; a result of theirs is in use behind them.
// CHECK-LABEL: func.func @branches
func.func @branches(%x: tensor<?xf32>, %c: i1) -> tensor<4xf32> {
  // CHECK-NEXT: %[[OUTER:.*]] = "graph.alloc_storage"() {size = #graph.shape<[192]>}
  // CHECK-NEXT: scf.if
  // CHECK-NEXT:   "graph.match_cast"
  // CHECK-NEXT:   %[[THEN:.*]] = "graph.alloc_storage"() {size = #graph.shape<["64*((k + 7) floordiv 8)"]>}
  // CHECK-NEXT:   "graph.alloc_tensor"(%[[THEN]])
  // CHECK:        "graph.alloc_tensor"(%[[OUTER]]) {offset = #graph.shape<[0]>
  // CHECK:      } else {
  // CHECK-NEXT:   "graph.match_cast"
  // CHECK-NEXT:   %[[ELSE:.*]] = "graph.alloc_storage"() {size = #graph.shape<["64*((k + 15) floordiv 16)"]>}
  // CHECK-NEXT:   "graph.alloc_tensor"(%[[ELSE]])
  // CHECK:        "graph.alloc_tensor"(%[[OUTER]]) {offset = #graph.shape<[64]>
  // CHECK:      "graph.alloc_tensor"(%[[OUTER]]) {offset = #graph.shape<[128]>
  // CHECK:      "graph.alloc_tensor"()
  %0 = scf.if %c -> tensor<4xf32> {
    %1 = "graph.match_cast"(%x) : (tensor<?xf32>) -> tensor<?xf32, #graph.shape<["2*k"]>>
    %2 = "graph.exp"(%1) : (tensor<?xf32, #graph.shape<["2*k"]>>) -> tensor<?xf32, #graph.shape<["2*k"]>>
    %3 = "graph.strided_slice"(%2) {axes = array<i64: 0>, begin = #graph.shape<[0]>, end = #graph.shape<[4]>, strides = array<i64: 1>} : (tensor<?xf32, #graph.shape<["2*k"]>>) -> tensor<4xf32>
    scf.yield %3 : tensor<4xf32>
  } else {
    %1 = "graph.match_cast"(%x) : (tensor<?xf32>) -> tensor<?xf32, #graph.shape<["k"]>>
    %2 = "graph.exp"(%1) : (tensor<?xf32, #graph.shape<["k"]>>) -> tensor<?xf32, #graph.shape<["k"]>>
    %3 = "graph.strided_slice"(%2) {axes = array<i64: 0>, begin = #graph.shape<[0]>, end = #graph.shape<[4]>, strides = array<i64: 1>} : (tensor<?xf32, #graph.shape<["k"]>>) -> tensor<4xf32>
    scf.yield %3 : tensor<4xf32>
  }
  %4 = "graph.exp"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %5 = "graph.add"(%0, %4) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %5 : tensor<4xf32>
}

// What a loop uses of outside is in use in all rounds: neither tensor of a round takes its block.
// CHECK-LABEL: func.func @loop
func.func @loop(%x: tensor<16xf32>, %n: index) -> tensor<16xf32> {
  // CHECK:      %[[STORAGE:.*]] = "graph.alloc_storage"() {size = #graph.shape<[192]>}
  // CHECK:      "graph.alloc_tensor"(%[[STORAGE]]) {offset = #graph.shape<[0]>
  // CHECK:      scf.for
  // CHECK:        "graph.alloc_tensor"(%[[STORAGE]]) {offset = #graph.shape<[64]>
  // CHECK:        "graph.alloc_tensor"(%[[STORAGE]]) {offset = #graph.shape<[128]>
  // CHECK:        "graph.alloc_tensor"(%[[STORAGE]]) {offset = #graph.shape<[64]>
  // CHECK:        "graph.copy"
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = "graph.exp"(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %3 = scf.for %i = %0 to %n step %1 iter_args(%a = %x) -> tensor<16xf32> {
    %4 = "graph.add"(%a, %2) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    %5 = "graph.cos"(%4) : (tensor<16xf32>) -> tensor<16xf32>
    %6 = "graph.exp"(%5) : (tensor<16xf32>) -> tensor<16xf32>
    scf.yield %6 : tensor<16xf32>
  }
  return %3 : tensor<16xf32>
}
