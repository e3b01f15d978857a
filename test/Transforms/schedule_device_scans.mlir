// RUN: relax-opt %s --pass-pipeline="builtin.module(relax-legalize-ops,relax-schedule{target=gpu})" | FileCheck %s
// RUN: relax-opt %s --pass-pipeline="builtin.module(relax-legalize-ops,relax-schedule{target=vulkan})" | FileCheck %s --check-prefix=STEPS

!x = tensor<?x?xf32, #graph.shape<["n", "m"]>>
!i = tensor<?xi32, #graph.shape<["n"]>>
!y = tensor<?xf32, #graph.shape<["n"]>>

// What is stored is updated where it is read.
// CHECK-LABEL: func.func private @in_place(
// CHECK:         gpu.launch {{.*}} in (%{{.*}} = %c64, {{.*}}) workgroup(
func.func private @in_place(%y: tensor<500xi32>) -> tensor<500xi32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 500 : index
  %zero = arith.constant 0 : i32
  %s:2 = scf.for %j = %c0 to %n step %c1 iter_args(%r = %y, %sum = %zero) -> (tensor<500xi32>, i32) {
    %v = tensor.extract %r[%j] : tensor<500xi32>
    %more = arith.addi %sum, %v : i32
    %next = tensor.insert %more into %r[%j] : tensor<500xi32>
    scf.yield %next, %more : tensor<500xi32>, i32
  }
  return %s#0 : tensor<500xi32>
}

// An iteration reads what another one stores.
// CHECK-LABEL: func.func private @from_behind(
// CHECK:         gpu.launch {{.*}} in (%{{.*}} = %c1, %{{.*}} = %c1, %{{.*}} = %c1) {
func.func private @from_behind(%y: tensor<500xi32>) -> tensor<500xi32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = arith.constant 499 : index
  %zero = arith.constant 0 : i32
  %s:2 = scf.for %j = %c0 to %last step %c1 iter_args(%r = %y, %sum = %zero) -> (tensor<500xi32>, i32) {
    %v = tensor.extract %r[%j] : tensor<500xi32>
    %more = arith.addi %sum, %v : i32
    %k = arith.addi %j, %c1 : index
    %next = tensor.insert %more into %r[%k] : tensor<500xi32>
    scf.yield %next, %more : tensor<500xi32>, i32
  }
  return %s#0 : tensor<500xi32>
}

// Iterations store to the same elements, in order.
// CHECK-LABEL: func.func private @to_computed_places(
// CHECK:         gpu.launch {{.*}} in (%{{.*}} = %c1, %{{.*}} = %c1, %{{.*}} = %c1) {
func.func private @to_computed_places(%x: tensor<500xi32>, %y: tensor<500xi32>) -> tensor<500xi32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 500 : index
  %zero = arith.constant 0 : i32
  %s:2 = scf.for %j = %c0 to %n step %c1 iter_args(%r = %y, %sum = %zero) -> (tensor<500xi32>, i32) {
    %v = tensor.extract %x[%j] : tensor<500xi32>
    %more = arith.addi %sum, %v : i32
    %k = arith.divui %j, %c2 : index
    %next = tensor.insert %more into %r[%k] : tensor<500xi32>
    scf.yield %next, %more : tensor<500xi32>, i32
  }
  return %s#0 : tensor<500xi32>
}

// What is added depends on the total.
// CHECK-LABEL: func.func private @clamped(
// CHECK:         gpu.launch {{.*}} in (%{{.*}} = %c1, %{{.*}} = %c1, %{{.*}} = %c1) {
func.func private @clamped(%x: tensor<500xi32>, %y: tensor<500xi32>) -> tensor<500xi32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 500 : index
  %zero = arith.constant 0 : i32
  %s:2 = scf.for %j = %c0 to %n step %c1 iter_args(%r = %y, %sum = %zero) -> (tensor<500xi32>, i32) {
    %v = tensor.extract %x[%j] : tensor<500xi32>
    %least = arith.maxsi %v, %sum : i32
    %more = arith.addi %sum, %least : i32
    %next = tensor.insert %more into %r[%j] : tensor<500xi32>
    scf.yield %next, %more : tensor<500xi32>, i32
  }
  return %s#0 : tensor<500xi32>
}

// The totals of parts, if a row has more than one; then, from those before a part on: sums of
// stretches, steps across threads, and the row's loop for each stretch.
// CHECK-LABEL: func.func private @cumsum(
// CHECK:         %[[TOTALS:.*]] = memref.alloc(%[[COUNT:.*]]) : memref<?xf64>
// CHECK:         %[[ANY:.*]] = arith.cmpi ugt, %[[COUNT]], %c0
// CHECK:         scf.if %[[ANY]]
// CHECK:           gpu.launch {{.*}} in (%{{.*}} = %c128, {{.*}}) workgroup(%{{.*}} : memref<4xf64
// CHECK-NOT:         memref.store {{.*}} : memref<?xf32>
// CHECK:             memref.store %{{.*}}, %[[TOTALS]]
// CHECK:         gpu.launch {{.*}} threads(%[[T:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %c128, {{.*}}) workgroup(%[[SHARED:.*]] : memref<4xf64
// CHECK:           %[[CARRY:.*]] = scf.for %{{.*}} = %c0 to %[[PART:.*]] step %c1
// CHECK:             memref.load %[[TOTALS]]
// CHECK:           %[[PLACE:.*]] = arith.muli %[[PART]], %[[SIZE:.*]] : index
// CHECK:           %[[REST:.*]] = arith.subi %{{.*}}, %[[PLACE]]
// CHECK:           %[[OF_PART:.*]] = arith.minui %[[SIZE]], %[[REST]]
// CHECK:           %[[M:.*]] = arith.addi %[[PLACE]], %[[OF_PART]]
// CHECK:           scf.for %[[FIRST:.*]] = %[[PLACE]] to %[[M]] step %c1024 iter_args(%[[BEFORE:.*]] = %[[CARRY]]) -> (f64)
// CHECK:             %[[OFFSET:.*]] = arith.muli %[[T]], %c8
// CHECK:             %[[AT:.*]] = arith.addi %[[FIRST]], %[[OFFSET]]
// CHECK:             %[[BEGIN:.*]] = arith.minui %[[AT]], %[[M]]
// CHECK:             %[[OWN:.*]] = scf.for %{{.*}} = %[[BEGIN]] to %[[END:.*]] step %c1
// CHECK-NOT:           memref.store
// CHECK:               scf.yield
// CHECK:             %[[LANE:.*]] = arith.remui %[[T]], %c32
// CHECK:             %[[WARP:.*]] = arith.divui %[[T]], %c32
// CHECK:             %[[CLAMPED:.*]] = arith.maxui %[[LANE]], %c1
// CHECK:             %[[BELOW:.*]] = arith.addi %[[CLAMPED]], %c-1
// CHECK:             %[[AT_LANE:.*]] = arith.index_cast %[[BELOW]] : index to i32
// CHECK-COUNT-2:     gpu.shuffle idx %{{.*}}, %[[AT_LANE]], %c32_i32
// CHECK:             %[[BOTH:.*]] = arith.addf %{{.*}}, %[[OWN]]
// CHECK:             arith.select %{{.*}}, %[[OWN]], %[[BOTH]]
// CHECK-COUNT-10:    gpu.shuffle idx
// CHECK-NOT:         gpu.shuffle
// CHECK:             scf.if
// CHECK-NEXT:          memref.store %{{.*}}, %[[SHARED]][%[[WARP]]]
// CHECK:             gpu.barrier
// CHECK-NEXT:        %[[ITS_WARP:.*]] = arith.remui %[[LANE]], %c4
// CHECK-NEXT:        memref.load %[[SHARED]][%[[ITS_WARP]]]
// CHECK-COUNT-8:     gpu.shuffle idx
// CHECK-NOT:         gpu.shuffle
// CHECK:             %[[START:.*]] = arith.select %{{.*}}, %[[BEFORE]], %{{.*}} : f64
// CHECK:             scf.for %{{.*}} = %[[BEGIN]] to %[[END]] step %c1 iter_args(%{{.*}} = %[[START]])
// CHECK:               memref.store %{{.*}} : memref<?xf32>
// CHECK-NEXT:          scf.yield
// CHECK-NEXT:        }
// CHECK-NEXT:        gpu.barrier
// CHECK-NEXT:        %[[NEXT:.*]] = arith.addf %[[BEFORE]], %{{.*}} : f64
// CHECK-NEXT:        scf.yield %[[NEXT]]

// STEPS-LABEL: func.func private @cumsum(
// STEPS:         gpu.launch {{.*}} workgroup(%[[SHARED:.*]] : memref<256xf64
// STEPS:             %[[OWN:.*]] = scf.for
// STEPS:             memref.store %[[OWN]], %[[SHARED]]
// STEPS:             scf.for %{{.*}} = %c0 to %c7 step %c1
// STEPS-NEXT:          gpu.barrier
// STEPS:               memref.store %{{.*}}, %[[SHARED]]
// STEPS-NOT:         gpu.shuffle
// STEPS:             gpu.barrier
func.func @rows(%x: !x) -> !x {
  %0 = "graph.cumsum"(%x) {axis = 1 : i64, exclusive = false, reverse = false} : (!x) -> !x
  return %0 : !x
}

// Products of integers wrap, so their order is of no account; that of floats is.
// CHECK-LABEL: func.func private @cumprod(
// CHECK:         gpu.launch {{.*}} in (%{{.*}} = %c256, {{.*}}) workgroup(%{{.*}} : memref<8xi32
// CHECK:         return
// CHECK-LABEL: func.func private @cumprod_1(
// CHECK:         gpu.launch {{.*}} in (%{{.*}} = %c1, %{{.*}} = %c1, %{{.*}} = %c1) {
func.func @products(%x: !i, %y: !y) -> (!i, !y) {
  %0 = "graph.cumprod"(%x) {axis = 0 : i64, exclusive = false, reverse = false} : (!i) -> !i
  %1 = "graph.cumprod"(%y) {axis = 0 : i64, exclusive = false, reverse = false} : (!y) -> !y
  return %0, %1 : !i, !y
}
