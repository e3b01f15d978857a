// RUN: relax-opt %s --pass-pipeline='relax-plan-memory,relax-check-memory-plan' --pretty | FileCheck %s

!n1 = tensor<?xf32, #graph.shape<["16*n"]>>
!n2 = tensor<?xf32, #graph.shape<["32*n"]>>
!n4 = tensor<?xf32, #graph.shape<["64*n"]>>
!m4 = tensor<?xf32, #graph.shape<["64*m"]>>
#two = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#three = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#four = array<i32: 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#none = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>

func.func private @kernel()

// Two that are live together are cut out of the memory of a larger one that is dead: in whole blocks,
// of which the first grows, all three would take 384*n bytes.
// CHECK-LABEL: func @cut
func.func @cut(%x: !n4) -> !n4 {
  // CHECK-NEXT: %[[S:.*]] = graph.alloc_storage() {size=#graph.shape<["256*n"]>}
  // CHECK-NEXT: graph.alloc_tensor(%[[S]]) {offset=#graph.shape<[0]>} : tensor<64*n x f32>
  // CHECK-NEXT: graph.call_dps
  // CHECK-NEXT: graph.alloc_tensor() {{.*}} : tensor<64*n x f32>
  // CHECK-NEXT: graph.call_dps
  // CHECK-NEXT: graph.alloc_tensor(%[[S]]) {offset=#graph.shape<[0]>} : tensor<32*n x f32>
  // CHECK-NEXT: graph.call_dps
  // CHECK-NEXT: graph.alloc_tensor(%[[S]]) {offset=#graph.shape<["128*n"]>} : tensor<32*n x f32>
  %0 = "graph.alloc_tensor"() {offset = #graph.shape<[0]>} : () -> !n4
  "graph.call_dps"(%x, %0) {callee = @kernel, num_outs = 1 : i64, sym_args = #graph.shape<[]>, updates = array<i64>, operandSegmentSizes = #two, resultSegmentSizes = #none} : (!n4, !n4) -> ()
  %1 = "graph.alloc_tensor"() {offset = #graph.shape<[0]>} : () -> !n4
  "graph.call_dps"(%0, %1) {callee = @kernel, num_outs = 1 : i64, sym_args = #graph.shape<[]>, updates = array<i64>, operandSegmentSizes = #two, resultSegmentSizes = #none} : (!n4, !n4) -> ()
  %2 = "graph.alloc_tensor"() {offset = #graph.shape<[0]>} : () -> !n2
  "graph.call_dps"(%1, %2) {callee = @kernel, num_outs = 1 : i64, sym_args = #graph.shape<[]>, updates = array<i64>, operandSegmentSizes = #two, resultSegmentSizes = #none} : (!n4, !n2) -> ()
  %3 = "graph.alloc_tensor"() {offset = #graph.shape<[0]>} : () -> !n2
  "graph.call_dps"(%2, %3) {callee = @kernel, num_outs = 1 : i64, sym_args = #graph.shape<[]>, updates = array<i64>, operandSegmentSizes = #two, resultSegmentSizes = #none} : (!n2, !n2) -> ()
  "graph.call_dps"(%2, %3, %1) {callee = @kernel, num_outs = 1 : i64, sym_args = #graph.shape<[]>, updates = array<i64: 0>, operandSegmentSizes = #three, resultSegmentSizes = #none} : (!n2, !n2, !n4) -> ()
  return %1 : !n4
}

// Two that are dead are joined for a larger one, which is live with a third.
// CHECK-LABEL: func @joined
func.func @joined(%x: !n4) -> !n4 {
  // CHECK-NEXT: %[[S:.*]] = graph.alloc_storage() {size=#graph.shape<["320*n"]>}
  // CHECK-NEXT: graph.alloc_tensor(%[[S]]) {offset=#graph.shape<[0]>} : tensor<32*n x f32>
  // CHECK-NEXT: graph.alloc_tensor(%[[S]]) {offset=#graph.shape<["128*n"]>} : tensor<32*n x f32>
  // CHECK-NEXT: graph.alloc_tensor(%[[S]]) {offset=#graph.shape<["256*n"]>} : tensor<16*n x f32>
  // CHECK-NEXT: graph.call_dps
  // CHECK-NEXT: graph.alloc_tensor(%[[S]]) {offset=#graph.shape<[0]>} : tensor<64*n x f32>
  %0 = "graph.alloc_tensor"() {offset = #graph.shape<[0]>} : () -> !n2
  %1 = "graph.alloc_tensor"() {offset = #graph.shape<[0]>} : () -> !n2
  %2 = "graph.alloc_tensor"() {offset = #graph.shape<[0]>} : () -> !n1
  "graph.call_dps"(%0, %1, %2) {callee = @kernel, num_outs = 3 : i64, sym_args = #graph.shape<[]>, updates = array<i64>, operandSegmentSizes = #three, resultSegmentSizes = #none} : (!n2, !n2, !n1) -> ()
  %3 = "graph.alloc_tensor"() {offset = #graph.shape<[0]>} : () -> !n4
  "graph.call_dps"(%2, %3) {callee = @kernel, num_outs = 1 : i64, sym_args = #graph.shape<[]>, updates = array<i64>, operandSegmentSizes = #two, resultSegmentSizes = #none} : (!n1, !n4) -> ()
  %4 = "graph.alloc_tensor"() {offset = #graph.shape<[0]>} : () -> !n4
  "graph.call_dps"(%3, %4) {callee = @kernel, num_outs = 1 : i64, sym_args = #graph.shape<[]>, updates = array<i64>, operandSegmentSizes = #two, resultSegmentSizes = #none} : (!n4, !n4) -> ()
  return %4 : !n4
}

// All three are live at the second call: nothing overlaps.
// CHECK-LABEL: func @negative_live_at_once
func.func @negative_live_at_once(%x: !n4, %y: !m4) -> !n4 {
  // CHECK-NEXT: graph.alloc_storage() {size=#graph.shape<["256*m + 384*n"]>}
  %0 = "graph.alloc_tensor"() {offset = #graph.shape<[0]>} : () -> !n4
  %1 = "graph.alloc_tensor"() {offset = #graph.shape<[0]>} : () -> !n2
  %2 = "graph.alloc_tensor"() {offset = #graph.shape<[0]>} : () -> !m4
  "graph.call_dps"(%0, %1, %2) {callee = @kernel, num_outs = 3 : i64, sym_args = #graph.shape<[]>, updates = array<i64>, operandSegmentSizes = #three, resultSegmentSizes = #none} : (!n4, !n2, !m4) -> ()
  %3 = "graph.alloc_tensor"() {offset = #graph.shape<[0]>} : () -> !n4
  "graph.call_dps"(%0, %1, %2, %3) {callee = @kernel, num_outs = 1 : i64, sym_args = #graph.shape<[]>, updates = array<i64>, operandSegmentSizes = #four, resultSegmentSizes = #none} : (!n4, !n2, !m4, !n4) -> ()
  return %3 : !n4
}
