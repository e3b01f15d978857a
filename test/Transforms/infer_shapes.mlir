// RUN: relax-opt %s --split-input-file --relax-infer-shapes --pretty | FileCheck %s

// CHECK-LABEL: func @forward(%arg0: tensor<n x 4 x f32>, %arg1: tensor<4 x 8 x f32>) -> tensor<8*n x f32>
// CHECK-NEXT:    %0 = graph.matmul(%arg0, %arg1) : tensor<n x 8 x f32>
// CHECK-NEXT:    %1 = graph.exp(%0) : tensor<n x 8 x f32>
// CHECK-NEXT:    %2 = graph.reshape(%1) {{.*}} : tensor<8*n x f32>
func.func @forward(%x: tensor<?x4xf32, #graph.shape<["n", 4]>>, %w: tensor<4x8xf32>) -> tensor<?xf32> {
  %0 = "graph.matmul"(%x, %w) : (tensor<?x4xf32, #graph.shape<["n", 4]>>, tensor<4x8xf32>) -> tensor<?x?xf32>
  %1 = "graph.exp"(%0) : (tensor<?x?xf32>) -> tensor<*xf32>
  %2 = "graph.reshape"(%1) {shape = #graph.shape<["8*n"]>} : (tensor<*xf32>) -> tensor<?xf32>
  return %2 : tensor<?xf32>
}

// -----

// What is written and finer stays. Dims that broadcast at run time reach one that is right in each
// case; of many operands it has each dim once. A static dim decides.
// CHECK-LABEL: func @broadcast(
// CHECK-NEXT:    %0 = graph.add(%arg0, %arg1) : tensor<max(m, n)*min(m, n, 1) x f32>
// CHECK-NEXT:    %1 = graph.add(%arg0, %arg1) : tensor<n x f32>
// CHECK-NEXT:    %2 = graph.add(%arg2, %arg1) : tensor<8 x f32>
// CHECK-NEXT:    %3 = graph.add(%0, %arg1) : tensor<max(m, n)*min(m, n, 1) x f32>
func.func @broadcast(%x: tensor<?xf32, #graph.shape<["n"]>>, %y: tensor<?xf32, #graph.shape<["m"]>>, %z: tensor<8xf32>) {
  %0 = "graph.add"(%x, %y) : (tensor<?xf32, #graph.shape<["n"]>>, tensor<?xf32, #graph.shape<["m"]>>) -> tensor<?xf32>
  %1 = "graph.add"(%x, %y) : (tensor<?xf32, #graph.shape<["n"]>>, tensor<?xf32, #graph.shape<["m"]>>) -> tensor<?xf32, #graph.shape<["n"]>>
  %2 = "graph.add"(%z, %y) : (tensor<8xf32>, tensor<?xf32, #graph.shape<["m"]>>) -> tensor<?xf32>
  %3 = "graph.add"(%0, %y) : (tensor<?xf32>, tensor<?xf32, #graph.shape<["m"]>>) -> tensor<?xf32>
  return
}

// -----

// What cannot be deduced is coarse, no error.
// CHECK-LABEL: func @negative_coarse(
// CHECK-NEXT:    %0 = graph.add(%arg0, %arg1) : tensor<? x f32>
func.func @negative_coarse(%x: tensor<?xf32, #graph.shape<["n"]>>, %y: tensor<?xf32>) {
  %0 = "graph.add"(%x, %y) : (tensor<?xf32, #graph.shape<["n"]>>, tensor<?xf32>) -> tensor<?xf32>
  return
}

// -----

// A cast names a dim; later ops know it. Its own unknown dims come from the operand.
// CHECK-LABEL: func @cast(%arg0: tensor<? x 4 x f32>) -> tensor<k x 4 x f32>
// CHECK-NEXT:    %0 = graph.match_cast(%arg0) : tensor<k x 4 x f32>
// CHECK-NEXT:    %1 = graph.exp(%0) : tensor<k x 4 x f32>
func.func @cast(%x: tensor<?x4xf32>) -> tensor<?x?xf32> {
  %0 = "graph.match_cast"(%x) : (tensor<?x4xf32>) -> tensor<?x?xf32, #graph.shape<["k", "?"]>>
  %1 = "graph.exp"(%0) : (tensor<?x?xf32, #graph.shape<["k", "?"]>>) -> tensor<?x?xf32>
  return %1 : tensor<?x?xf32>
}

// -----

#in1  = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2  = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
// Symbols are solved for, `2*n + 1` exactly; the callee stands behind its caller and is refined
// first all the same.
// CHECK-LABEL: func @calls(
// CHECK-NEXT:    %0 = graph.call @halve(%arg0) : tensor<6*k x f32>
// CHECK-NEXT:    %1 = graph.call @halve(%arg1) : tensor<3 x f32>
// CHECK-NEXT:    %2 = graph.call @halve(%arg2) : tensor<? x f32>
// CHECK-NEXT:    %3 = graph.call @shaped(%arg3) : tensor<k + 1 x f32>
func.func @calls(%x: tensor<?xf32, #graph.shape<["12*k + 1"]>>, %y: tensor<7xf32>, %z: tensor<?xf32, #graph.shape<["k"]>>, %s: !graph.shape_value<["k"]>) {
  %0 = "graph.call"(%x) {callee = @halve, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<?xf32, #graph.shape<["12*k + 1"]>>) -> tensor<?xf32>
  %1 = "graph.call"(%y) {callee = @halve, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<7xf32>) -> tensor<?xf32>
  %2 = "graph.call"(%z) {callee = @halve, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<?xf32, #graph.shape<["k"]>>) -> tensor<?xf32>
  %3 = "graph.call"(%s) {callee = @shaped, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!graph.shape_value<["k"]>) -> tensor<?xf32>
  return
}
// CHECK-LABEL: func private @halve(%arg0: tensor<2*n + 1 x f32>) -> tensor<n x f32>
func.func private @halve(%x: tensor<?xf32, #graph.shape<["2*n + 1"]>>) -> tensor<?xf32> {
  %0 = "graph.strided_slice"(%x) {axes = array<i64: 0>, begin = #graph.shape<[0]>, end = #graph.shape<["n"]>, strides = array<i64: 1>} : (tensor<?xf32, #graph.shape<["2*n + 1"]>>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func private @shaped(%s: !graph.shape_value<["n"]>) -> tensor<?xf32, #graph.shape<["n + 1"]>>

// -----

!n = tensor<?xf32, #graph.shape<["n"]>>

// The result of a branch is what both sides agree on, that of a dataflow block what it yields; a
// loop keeps the type that it carries.
// CHECK-LABEL: func @regions(
// CHECK:         scf.if
// CHECK:           graph.match_cast(%{{.*}}) : tensor<n x ? x f32>
// CHECK:           graph.match_cast(%{{.*}}) : tensor<n x ? x f32>
// CHECK:         graph.exp(%{{.*}}) : tensor<n x ? x f32>
// CHECK:         graph.exp(%{{.*}}) : tensor<n x 3 x f32>
// CHECK:         graph.match_cast(%{{.*}}) : tensor<? x ? x f32>
// CHECK:         graph.match_cast(%{{.*}}) : tensor<? x ? x f32>
func.func @regions(%c: i1, %n: index, %x: tensor<?x3xf32, #graph.shape<["n", 3]>>, %y: tensor<?x4xf32, #graph.shape<["n", 4]>>) {
  %0 = scf.if %c -> tensor<?x?xf32> {
    %a = "graph.exp"(%x) : (tensor<?x3xf32, #graph.shape<["n", 3]>>) -> tensor<?x?xf32>
    scf.yield %a : tensor<?x?xf32>
  } else {
    %a = "graph.exp"(%y) : (tensor<?x4xf32, #graph.shape<["n", 4]>>) -> tensor<?x?xf32>
    scf.yield %a : tensor<?x?xf32>
  }
  %1 = "graph.exp"(%0) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %2 = scf.execute_region -> tensor<?x?xf32> no_inline {
    %a = "graph.exp"(%x) : (tensor<?x3xf32, #graph.shape<["n", 3]>>) -> tensor<?x?xf32>
    scf.yield %a : tensor<?x?xf32>
  } {graph.dataflow}
  %3 = "graph.exp"(%2) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %4 = scf.for %i = %zero to %n step %one iter_args(%a = %3) -> tensor<?x?xf32> {
    %b = "graph.reshape"(%a) {shape = #graph.shape<["n", 3]>} : (tensor<?x?xf32>) -> tensor<?x?xf32>
    scf.yield %b : tensor<?x?xf32>
  }
  return
}

// Each branch binds a k of its own, which nobody knows outside; n is bound before.
// CHECK-LABEL: func @branches_bind(
// CHECK:         scf.if(%{{.*}}) : tensor<n x ? x f32>
// CHECK-COUNT-2: graph.match_cast(%{{.*}}) : tensor<n x ? x f32>
// CHECK:         graph.exp(%{{.*}}) : tensor<n x ? x f32>
// CHECK:         graph.exp(%{{.*}}) : tensor<n x m x f32>
func.func @branches_bind(%c: i1, %x: tensor<?x?xf32, #graph.shape<["n", "?"]>>) {
  %0 = scf.if %c -> tensor<?x?xf32> {
    %a = "graph.match_cast"(%x) : (tensor<?x?xf32, #graph.shape<["n", "?"]>>) -> tensor<?x?xf32, #graph.shape<["n", "k"]>>
    %b = "graph.exp"(%a) : (tensor<?x?xf32, #graph.shape<["n", "k"]>>) -> tensor<?x?xf32>
    scf.yield %b : tensor<?x?xf32>
  } else {
    %a = "graph.match_cast"(%x) : (tensor<?x?xf32, #graph.shape<["n", "?"]>>) -> tensor<?x?xf32, #graph.shape<["n", "k"]>>
    %b = "graph.exp"(%a) : (tensor<?x?xf32, #graph.shape<["n", "k"]>>) -> tensor<?x?xf32>
    scf.yield %b : tensor<?x?xf32>
  }
  %1 = "graph.exp"(%0) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %2 = scf.execute_region -> tensor<?x?xf32> no_inline {
    %a = "graph.match_cast"(%x) : (tensor<?x?xf32, #graph.shape<["n", "?"]>>) -> tensor<?x?xf32, #graph.shape<["n", "m"]>>
    %b = "graph.exp"(%a) : (tensor<?x?xf32, #graph.shape<["n", "m"]>>) -> tensor<?x?xf32>
    scf.yield %b : tensor<?x?xf32>
  } {graph.dataflow}
  %3 = "graph.exp"(%2) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  return
}

// -----

// A slice of as many rows of a table as there are has one row only where there is one.
// CHECK-LABEL: func @rows_of_a_table
// CHECK:         graph.add(%{{.*}}) : tensor<n x 3 x f32>
// CHECK:         graph.add(%{{.*}}) : tensor<max(min(k, n), n)*min(k, n, 1) x 3 x f32>
func.func @rows_of_a_table(%x: tensor<?x3xf32, #graph.shape<["n", 3]>>, %k: tensor<?xf32, #graph.shape<["k"]>>,
                           %rows: tensor<?x3xf32, #graph.shape<["min(n, 8)", 3]>>,
                           %some: tensor<?x3xf32, #graph.shape<["min(n, k)", 3]>>) {
  %0 = "graph.add"(%rows, %x) : (tensor<?x3xf32, #graph.shape<["min(n, 8)", 3]>>, tensor<?x3xf32, #graph.shape<["n", 3]>>) -> tensor<?x3xf32>
  %1 = "graph.add"(%some, %x) : (tensor<?x3xf32, #graph.shape<["min(n, k)", 3]>>, tensor<?x3xf32, #graph.shape<["n", 3]>>) -> tensor<?x3xf32>
  return
}
