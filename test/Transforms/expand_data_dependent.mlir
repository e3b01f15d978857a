// RUN: relax-opt %s --split-input-file --relax-name-dims --relax-expand-data-dependent --relax-verify --pretty | FileCheck %s

!x = tensor<?x3xf32, #graph.shape<["n", 3]>>

// The host reads the count; it never exceeds the elements that there are.
// CHECK-LABEL: func @nonzero(
// CHECK:         %[[IS:.*]] = graph.not_equal(%arg0, %{{.*}}) : tensor<n x 3 x i1>
// CHECK:         %[[COUNT:.*]] = graph.sum({{.*}}) {{.*}} : tensor<i64>
// CHECK:         graph.tensor_to_shape
// CHECK-NEXT:    graph.match_cast({{.*}}) : shape<nonzero>
// CHECK-NEXT:    graph.require nonzero <= 3*n  by graph.nonzero
// CHECK-NEXT:    %[[AT:.*]] = graph.first_nonzero(%arg0) {count=#graph.shape<["nonzero"]>} : tensor<2 x nonzero x i64>
// CHECK-NEXT:    graph.match_cast(%[[AT]]) : tensor<2 x m x i64>
func.func @nonzero(%x: !x) -> tensor<2x?xi64> {
  %0 = "graph.nonzero"(%x) : (!x) -> tensor<2x?xi64>
  %1 = "graph.match_cast"(%0) : (tensor<2x?xi64>) -> tensor<2x?xi64, #graph.shape<[2, "m"]>>
  %2 = "graph.match_cast"(%1) : (tensor<2x?xi64, #graph.shape<[2, "m"]>>) -> tensor<2x?xi64>
  return %2 : tensor<2x?xi64>
}

// -----

// What is declared of the size is checked.
// CHECK-LABEL: func @declared(
// CHECK:         %[[AT:.*]] = graph.first_nonzero
// CHECK-NEXT:    %[[CAST:.*]] = graph.match_cast(%[[AT]]) : tensor<1 x n x i64>
// CHECK-NEXT:    return %[[CAST]]
!n = tensor<1x?xi64, #graph.shape<[1, "n"]>>
func.func @declared(%x: tensor<?xi8, #graph.shape<["n"]>>) -> !n {
  %0 = "graph.nonzero"(%x) : (tensor<?xi8, #graph.shape<["n"]>>) -> !n
  return %0 : !n
}

// -----

// What nothing uses is not computed: of the results, or all of it.
// CHECK-LABEL: func @unused(
// CHECK:         graph.sort
// CHECK-NOT:     graph.scatter_elements
// CHECK:         return
// CHECK-LABEL: func @all_unused(
// CHECK-NEXT:    return
!v = tensor<?xf32, #graph.shape<["n"]>>
func.func @unused(%x: !v) -> tensor<?xf32> {
  %0:4 = "graph.unique"(%x) {axes = array<i64>, sorted = true} : (!v) -> (tensor<?xf32>, tensor<?xi64>, tensor<?xi64>, tensor<?xi64>)
  return %0#0 : tensor<?xf32>
}

func.func @all_unused(%x: !v) {
  %0 = "graph.nonzero"(%x) : (!v) -> tensor<1x?xi64>
  return
}

// -----

// Counts that are wrong become -1, which no dim is.
// CHECK-LABEL: func @repeat_interleave(
// CHECK:         %[[TOTAL:.*]] = graph.where(%{{.*}}, %{{.*}}, %{{.*}}) : tensor<i64>
// CHECK-NEXT:    graph.reshape(%[[TOTAL]])
// CHECK-NEXT:    graph.tensor_to_shape
// CHECK-NEXT:    graph.match_cast({{.*}}) : shape<repeats>
// CHECK:         graph.searchsorted({{.*}}) {right=true} : tensor<repeats x i64>
// CHECK:         graph.take({{.*}}) {axis=0 : i64} : tensor<repeats x 3 x f32>
!x = tensor<?x3xf32, #graph.shape<["n", 3]>>
!r = tensor<?xi32, #graph.shape<["n"]>>
func.func @repeat_interleave(%x: !x, %r: !r) -> tensor<?x3xf32> {
  %0 = "graph.repeat_interleave"(%x, %r) {axis = 0 : i64} : (!x, !r) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}

// -----

// A loop finds another size in each round.
// CHECK-LABEL: func @loop(
// CHECK:         scf.for
// CHECK:           graph.match_cast({{.*}}) : shape<[[M:nonzero_[0-9]+]]>
// CHECK:           graph.first_nonzero({{.*}}) {count=#graph.shape<["[[M]]"]>}
!x = tensor<?x3xf32, #graph.shape<["n", 3]>>
func.func @loop(%x: !x, %k: index) -> tensor<2x?xi64> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %first = "graph.nonzero"(%x) : (!x) -> tensor<2x?xi64>
  %r = scf.for %i = %zero to %k step %one iter_args(%a = %first) -> tensor<2x?xi64> {
    %0 = "graph.nonzero"(%a) : (tensor<2x?xi64>) -> tensor<2x?xi64>
    scf.yield %0 : tensor<2x?xi64>
  }
  return %r : tensor<2x?xi64>
}
