// RUN: relax-opt %s --relax-lower-dataflow --relax-schedule=target=x86-64-v3 | FileCheck %s

#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!m = tensor<?xf32, #graph.shape<["m"]>>
!at = tensor<?x?xi32, #graph.shape<["h", "w"]>>
!f = tensor<?x?xf32, #graph.shape<["h", "w"]>>
!k = tensor<?xi32, #graph.shape<["k"]>>
!bins = tensor<3x8xi32>
!two = tensor<?x?x2xf32, #graph.shape<["h", "w", 2]>>

// An instance's indices are carried from round to round. An index that data decide is clamped in a
// branch of its own.
// CHECK-LABEL: func.func private @gathered_node(
// CHECK:         scf.parallel
// CHECK:           arith.remui
// CHECK:           scf.for {{.*}} iter_args(%[[J:.*]] = %{{.*}}, %[[I:.*]] = %{{.*}}) -> (index, index)
// CHECK-NOT:         arith.remui
// CHECK:             %[[X:.*]] = memref.load %arg1[%[[I]], %[[J]]]
// CHECK:             %[[AT:.*]] = arith.index_cast %[[X]]
// CHECK:             %[[INSIDE:.*]] = arith.cmpi ult, %[[AT]], %{{.*}} : index
// CHECK:             scf.if %[[INSIDE]] -> (f32) {
// CHECK-NEXT:          memref.load %arg0[%[[AT]]]
// CHECK:             } else {
// CHECK:               arith.minsi %[[AT]]
// CHECK:             %[[NEXT:.*]] = arith.addi %[[J]], %{{.*}}
// CHECK:             %[[ENDS:.*]] = arith.cmpi eq, %[[NEXT]]
// CHECK:             %[[FIRST:.*]] = arith.select %[[ENDS]]
// CHECK:             %[[STEP:.*]] = arith.select %[[ENDS]]
// CHECK:             %[[ROW:.*]] = arith.addi %[[I]], %[[STEP]]
// CHECK:             scf.yield %[[FIRST]], %[[ROW]]
func.func private @gathered(%x: !m, %at: !at) -> tensor<2xf32> attributes {tir.leaf} {
  %i = "tir.node_id"() {dim = 0 : i64, level = 0 : i64} : () -> index
  %j = "tir.node_id"() {dim = 1 : i64, level = 0 : i64} : () -> index
  %c0 = arith.constant 0 : index
  %zeros = arith.constant dense<0.0> : tensor<2xf32>
  %a = tensor.extract %at[%i, %j] : !at
  %p = arith.index_cast %a : i32 to index
  %e = tensor.extract %x[%p] : !m
  %r = tensor.insert %e into %zeros[%c0] : tensor<2xf32>
  return %r : tensor<2xf32>
}
func.func @gathers(%x: !m, %at: !at) -> !two {
  %0 = "graph.node"(%x, %at) {callee = @gathered, grid = #graph.shape<["h", "w"]>,
      edges = ["all_to_all", "all_to_all"], operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!m, !at) -> !two
  return %0 : !two
}

// What a loop does not change is asked around it, as it would only add 0.
// CHECK-LABEL: func.func private @around_node(
// CHECK:         scf.for %[[A:.*]] = %{{.*}} iter_args(%[[OUTER:.*]] = %{{.*}})
// CHECK:           %[[ABOVE:.*]] = arith.cmpi sge, %{{.*}}, %{{.*}} : index
// CHECK:           scf.if %[[ABOVE]] -> (vector<{{.*}}xf32>) {
// CHECK-NEXT:        scf.for
// CHECK:               %[[POSITIVE:.*]] = arith.cmpf oge
// CHECK:               arith.select %[[POSITIVE]]
// CHECK:           } else {
// CHECK-NEXT:        scf.yield %[[OUTER]]
func.func private @around(%x: !f) -> f32 attributes {tir.leaf} {
  %i = "tir.node_id"() {dim = 0 : i64, level = 0 : i64} : () -> index
  %j = "tir.node_id"() {dim = 1 : i64, level = 0 : i64} : () -> index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %a = %c0 to %c3 step %c1 iter_args(%outer = %zero) -> (f32) {
    %part = scf.for %b = %c0 to %c3 step %c1 iter_args(%total = %outer) -> (f32) {
      %row = arith.subi %i, %a : index
      %above = arith.cmpi sge, %row, %c0 : index
      %lane = arith.index_cast %j : index to i32
      %weight = arith.sitofp %lane : i32 to f32
      %y = tensor.extract %x[%row, %b] : !f
      %e = arith.mulf %y, %weight : f32
      %positive = arith.cmpf oge, %e, %zero : f32
      %near = arith.andi %positive, %above : i1
      %term = arith.select %near, %e, %zero : f32
      %next = arith.addf %total, %term : f32
      scf.yield %next : f32
    }
    scf.yield %part : f32
  }
  return %sum : f32
}
func.func @neighbours(%x: !f) -> !f {
  %0 = "graph.node"(%x) {callee = @around, grid = #graph.shape<["h", "w"]>,
      edges = ["all_to_all"], operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!f) -> !f
  return %0 : !f
}

// A short loop that stores in a branch is unrolled, one that carries a value is not.
// CHECK-LABEL: func.func private @counted_node(
// CHECK:         scf.for {{.*}} iter_args(
// CHECK:         }
// CHECK-NOT:     loop_annotation
// CHECK:         scf.if %{{[^ ]*}} {
// CHECK-NEXT:      memref.store
// CHECK:         } {loop_annotation = #{{.*}}}
func.func private @counted(%x: !k) -> tensor<8xi32> attributes {tir.leaf} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i32
  %zeros = arith.constant dense<0> : tensor<8xi32>
  %n = tensor.dim %x, %c0 : !k
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%at = %one) -> (i32) {
    %p = arith.index_cast %at : i32 to index
    %next = tensor.extract %x[%p] : !k
    scf.yield %next : i32
  }
  %first = tensor.insert %last into %zeros[%c0] : tensor<8xi32>
  %bins = scf.for %i = %c0 to %n step %c1 iter_args(%old = %first) -> (tensor<8xi32>) {
    %e = tensor.extract %x[%i] : !k
    %p = arith.index_cast %e : i32 to index
    %was = tensor.extract %old[%p] : tensor<8xi32>
    %more = arith.addi %was, %one : i32
    %new = tensor.insert %more into %old[%p] : tensor<8xi32>
    scf.yield %new : tensor<8xi32>
  }
  return %bins : tensor<8xi32>
}
func.func @counts(%x: !k) -> !bins {
  %0 = "graph.node"(%x) {callee = @counted, grid = #graph.shape<[3]>,
      edges = ["all_to_all"], operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!k) -> !bins
  return %0 : !bins
}
