// RUN: relax-opt %s --relax-verify --cse --canonicalize --relax-dead-code-elimination | FileCheck %s

#in0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>

// Equal lines are printed as often as they are written; assertions stay.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<?xf32, #graph.shape<["n"]>>, %ok: i1) {
  // CHECK-NEXT: format = "start
  // CHECK-NEXT: format = "start
  // CHECK-NEXT: format = "x
  // CHECK-NEXT: format = "not
  // CHECK-NEXT: return
  "graph.print"() {format = "start", operandSegmentSizes = #in0, resultSegmentSizes = #out0} : () -> ()
  "graph.print"() {format = "start", operandSegmentSizes = #in0, resultSegmentSizes = #out0} : () -> ()
  "graph.print"(%x) {format = "x = {}", operandSegmentSizes = #in1, resultSegmentSizes = #out0} : (tensor<?xf32, #graph.shape<["n"]>>) -> ()
  "graph.assert"(%ok, %x) {format = "not {}", operandSegmentSizes = #in2, resultSegmentSizes = #out0} : (i1, tensor<?xf32, #graph.shape<["n"]>>) -> ()
  return
}
