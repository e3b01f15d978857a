// RUN: relax-opt %s --split-input-file --relax-resolve-kinds | FileCheck %s
// RUN: relax-opt %s --split-input-file --relax-infer-shapes -o /dev/null

// A function is copied for the kinds that it is called with; dims are not those of its callers.
// CHECK-LABEL: func.func @tuple(
// CHECK:         "graph.match_cast"(%{{.*}}) : (tuple<tensor<4xf32>, index>) -> tuple<tensor<4xf32>, index>
// CHECK:         "graph.call"(%{{.*}}) {{.*}}callee = @second_1{{.*}} : (tuple<tensor<4xf32>, index>) -> index
// CHECK:         "graph.call"(%{{.*}}) {{.*}}callee = @second_2{{.*}} -> tensor<?xf32>
// CHECK:         "graph.match_cast"(%{{.*}}) : (tensor<?xf32>) -> tensor<4xf32>
// CHECK-DAG:   func.func private @second_1(%{{.*}}: tuple<tensor<?xf32>, index>) -> index
// CHECK-DAG:   func.func private @second_2(%{{.*}}: tuple<index, tensor<?xf32>>) -> tensor<?xf32>
// CHECK-NOT:   any_tuple
#in0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
func.func @tuple(%x: tensor<4xf32>, %k: index) -> (index, tensor<4xf32>) {
  %0 = "graph.tuple"(%x, %k) {operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (tensor<4xf32>, index) -> tuple<tensor<4xf32>, index>
  %1 = "graph.match_cast"(%0) : (tuple<tensor<4xf32>, index>) -> !graph.any_tuple
  %2 = "graph.call"(%1) {callee = @second, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!graph.any_tuple) -> !graph.object
  %3 = "graph.match_cast"(%2) : (!graph.object) -> index
  %4 = "graph.tuple"(%k, %x) {operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (index, tensor<4xf32>) -> tuple<index, tensor<4xf32>>
  %5 = "graph.call"(%4) {callee = @second, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tuple<index, tensor<4xf32>>) -> !graph.object
  %6 = "graph.match_cast"(%5) : (!graph.object) -> tensor<4xf32>
  return %3, %6 : index, tensor<4xf32>
}
func.func private @second(%t: !graph.any_tuple) -> !graph.object {
  %0 = "graph.tuple_get"(%t) {index = 1 : i64} : (!graph.any_tuple) -> !graph.object
  return %0 : !graph.object
}

// -----

// Branches of one kind yield that kind.
// CHECK-LABEL: func.func @branch(
// CHECK:         scf.if %{{.*}} -> (tensor<?xf32>)
// CHECK:           "graph.match_cast"(%{{.*}}) : (tensor<4xf32>) -> tensor<?xf32>
func.func @branch(%x: tensor<4xf32>, %y: tensor<5xf32>, %c: i1) -> tensor<?xf32> {
  %0 = "graph.match_cast"(%x) : (tensor<4xf32>) -> tensor<*x!graph.any_element>
  %1 = "graph.match_cast"(%y) : (tensor<5xf32>) -> tensor<?x!graph.any_element>
  %2 = scf.if %c -> tensor<?x!graph.any_element> {
    %3 = "graph.match_cast"(%0) : (tensor<*x!graph.any_element>) -> tensor<?x!graph.any_element>
    scf.yield %3 : tensor<?x!graph.any_element>
  } else {
    scf.yield %1 : tensor<?x!graph.any_element>
  }
  %4 = "graph.match_cast"(%2) : (tensor<?x!graph.any_element>) -> tensor<?xf32>
  return %4 : tensor<?xf32>
}

// -----

// State is of the kind of its initial value, and so is what an operator makes of it.
// CHECK-LABEL: func.func @loop(
// CHECK:         scf.for {{.*}} -> (tensor<?xf32>)
// CHECK:           "graph.exp"(%{{.*}}) : (tensor<?xf32>) -> tensor<?xf32>
func.func @loop(%x: tensor<4xf32>, %k: index) -> !graph.object {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %0 = "graph.match_cast"(%x) : (tensor<4xf32>) -> tensor<?x!graph.any_element>
  %1 = scf.for %i = %zero to %k step %one iter_args(%s = %0) -> tensor<?x!graph.any_element> {
    %2 = "graph.exp"(%s) : (tensor<?x!graph.any_element>) -> tensor<?x!graph.any_element>
    scf.yield %2 : tensor<?x!graph.any_element>
  }
  %3 = "graph.match_cast"(%1) : (tensor<?x!graph.any_element>) -> !graph.object
  return %3 : !graph.object
}

// -----

// A function value has the type of its callee, without what it captures.
// CHECK-LABEL: func.func @callable(
// CHECK:         "graph.make_closure"(%{{.*}}) {{.*}} -> ((tensor<?xf32, #graph.shape<["k"]>>) -> tensor<?xf32, #graph.shape<["k"]>>)
// CHECK:         "graph.call"{{.*}}callee = @apply_1
// CHECK:       func.func private @apply_1(%{{.*}}: (tensor<?xf32, #graph.shape<["k"]>>) -> tensor<?xf32, #graph.shape<["k"]>>, %{{.*}}: tensor<?xf32>) -> tensor<?xf32>
#in0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!k = tensor<?xf32, #graph.shape<["k"]>>
func.func @callable(%x: tensor<4xf32>) -> tensor<4xf32> {
  %f = "graph.make_closure"(%x) {callee = @scaled, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> !graph.callable
  %0 = "graph.call"(%f, %x) {callee = @apply, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!graph.callable, tensor<4xf32>) -> !graph.object
  %1 = "graph.match_cast"(%0) : (!graph.object) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @scaled(%w: !k, %x: !k) -> !k {
  %0 = "graph.multiply"(%w, %x) : (!k, !k) -> !k
  return %0 : !k
}
func.func private @apply(%f: !graph.callable, %x: !graph.object) -> !graph.object {
  %0 = "graph.invoke_closure"(%f, %x) {operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!graph.callable, !graph.object) -> !graph.object
  return %0 : !graph.object
}

// -----

// An argument that users pass is of the kind to which casts take it.
// CHECK-LABEL: func.func @exported(
// CHECK-SAME:    %{{.*}}: tensor<?xf64>, %{{.*}}: tuple<index, tensor<?xi32>>)
func.func @exported(%a: tensor<?x!graph.any_element>, %t: !graph.any_tuple) -> tensor<?xf64> {
  %0 = "graph.match_cast"(%a) : (tensor<?x!graph.any_element>) -> tensor<?xf64>
  %1 = "graph.match_cast"(%t) : (!graph.any_tuple) -> tuple<index, tensor<4xi32>>
  return %0 : tensor<?xf64>
}

// -----

// Values of two kinds stay open: nothing says which one it is.
// CHECK-LABEL: func.func @negative_two_kinds(
// CHECK:         scf.if %{{.*}} -> (!graph.object)
func.func @negative_two_kinds(%x: tensor<4xf32>, %k: index, %c: i1) -> !graph.object {
  %0 = "graph.match_cast"(%x) : (tensor<4xf32>) -> !graph.object
  %1 = "graph.match_cast"(%k) : (index) -> !graph.object
  %2 = "graph.match_cast"(%0) : (!graph.object) -> tensor<?x!graph.any_element>
  %3 = scf.if %c -> !graph.object {
    scf.yield %0 : !graph.object
  } else {
    scf.yield %1 : !graph.object
  }
  return %3 : !graph.object
}
