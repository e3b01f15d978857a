// RUN: relax-opt %s --relax-infer-shapes --pretty | FileCheck %s

// A call's result follows from the callee's signature alone, symbols substituted: bodies never leak
// relations into their callers, so each function can be compiled by itself (paper Figure 7).

#one_in  = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#one_out = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>

func.func private @flatten(%x: tensor<?x4xf32, #graph.shape<["m", 4]>>) -> tensor<?xf32, #graph.shape<["4*m"]>> {
  %0 = "graph.reshape"(%x) {shape = #graph.shape<["4*m"]>} : (tensor<?x4xf32, #graph.shape<["m", 4]>>) -> tensor<?xf32, #graph.shape<["4*m"]>>
  return %0 : tensor<?xf32, #graph.shape<["4*m"]>>
}

func.func @main(%x: tensor<?x4xf32, #graph.shape<["2*n", 4]>>) -> tensor<?xf32> {
  %0 = "graph.call"(%x) {callee = @flatten, operandSegmentSizes = #one_in, resultSegmentSizes = #one_out}
      : (tensor<?x4xf32, #graph.shape<["2*n", 4]>>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
// CHECK-LABEL: func @main(%arg0: tensor<2*n x 4 x f32>)
// CHECK-NEXT:    %0 = graph.call @flatten(%arg0) : tensor<8*n x f32>

// An argument that is known only coarsely gives a coarse result; it is no error.
func.func @coarse(%x: tensor<?x4xf32>) -> tensor<?xf32> {
  %0 = "graph.call"(%x) {callee = @flatten, operandSegmentSizes = #one_in, resultSegmentSizes = #one_out}
      : (tensor<?x4xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
// CHECK-LABEL: func @coarse(%arg0: tensor<? x 4 x f32>)
// CHECK-NEXT:    %0 = graph.call @flatten(%arg0) : tensor<? x f32>
