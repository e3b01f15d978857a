// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-state-assumptions --pretty | FileCheck %s

!n = tensor<?xf32, #graph.shape<["n"]>>
!m = tensor<?xf32, #graph.shape<["m"]>>

// Neither refuted nor proved: kernels would read beyond the shorter one.
// CHECK-LABEL: func @add
// CHECK-SAME:    facts n == m {
func.func @add(%x: !n, %y: !m) -> !n {
  %0 = "graph.add"(%x, %y) : (!n, !m) -> !n
  return %0 : !n
}

// What is neither proved nor refuted counts as not proved: the least n of these is 1766319049.
// CHECK-LABEL: func @unknown
// CHECK-SAME:    facts n*n == 61*m*m + 1, 1 < n, n == m {
func.func @unknown(%x: !n, %y: !m) -> !n attributes {graph.facts = ["n * n == 61 * m * m + 1", "1 < n"]} {
  %0 = "graph.add"(%x, %y) : (!n, !m) -> !n
  return %0 : !n
}

// A result that is declared to be another than what is deduced.
// CHECK-LABEL: func @declared
// CHECK-SAME:    facts n == m {
func.func @declared(%x: !n, %y: !m) -> !m {
  %0 = "graph.exp"(%x) : (!n) -> !m
  return %0 : !m
}

// CHECK-LABEL: func @matmul
// CHECK-SAME:    facts n == m {
func.func @matmul(%x: tensor<2x?xf32, #graph.shape<[2, "n"]>>, %y: tensor<?x3xf32, #graph.shape<["m", 3]>>) -> tensor<2x3xf32> {
  %0 = "graph.matmul"(%x, %y) : (tensor<2x?xf32, #graph.shape<[2, "n"]>>, tensor<?x3xf32, #graph.shape<["m", 3]>>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// CHECK-LABEL: func @reshape
// CHECK-SAME:    facts n == 16 {
func.func @reshape(%x: !n) -> tensor<4x4xf32> {
  %0 = "graph.reshape"(%x) {shape = #graph.shape<[4, 4]>} : (!n) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// A slice stays within the tensor, and runs forwards.
// CHECK-LABEL: func @slice
// CHECK-SAME:    facts m <= k, k <= n {
func.func @slice(%x: !n, %bounds: !graph.shape_value<["m", "k"]>) -> tensor<?xf32, #graph.shape<["k - m"]>> {
  %0 = "graph.strided_slice"(%x) {axes = array<i64: 0>, begin = #graph.shape<["m"]>, end = #graph.shape<["k"]>, strides = array<i64: 1>} : (!n) -> tensor<?xf32, #graph.shape<["k - m"]>>
  return %0 : tensor<?xf32, #graph.shape<["k - m"]>>
}

// New tokens fit behind the cached ones, in both caches.
// CHECK-LABEL: func @attention
// CHECK-SAME:    facts m + n <= c, m + n <= d {
func.func @attention(%q: tensor<?x2x4xf32, #graph.shape<["n", 2, 4]>>, %k: tensor<2x?x4xf32, #graph.shape<[2, "c", 4]>>, %v: tensor<2x?x4xf32, #graph.shape<[2, "d", 4]>>, %past: !graph.shape_value<["m"]>) -> tensor<?x2x4xf32, #graph.shape<["n", 2, 4]>> {
  %0 = "graph.nn_attention"(%q, %k, %v) {position = #graph.shape<["m"]>, scale = 0.5 : f64, causal = true} : (tensor<?x2x4xf32, #graph.shape<["n", 2, 4]>>, tensor<2x?x4xf32, #graph.shape<[2, "c", 4]>>, tensor<2x?x4xf32, #graph.shape<[2, "d", 4]>>) -> tensor<?x2x4xf32, #graph.shape<["n", 2, 4]>>
  return %0 : tensor<?x2x4xf32, #graph.shape<["n", 2, 4]>>
}

// A tensor program relies on its signature.
// CHECK-LABEL: func @call
// CHECK-SAME:    facts n == m {
func.func private @k(%x: !n, %y: !n) -> !n attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  return %y : !n
}
func.func @call(%x: !n, %s: !graph.shape_value<["m"]>) -> !m attributes {graph.facts = []} {
  %0 = "graph.call_tir"(%x) {callee = @k, sym_args = #graph.shape<[]>, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (!n) -> !m
  return %0 : !m
}

// There must be something to look up, unless nothing is looked up.
// CHECK-LABEL: func @lookup
// CHECK-SAME:    facts min(n, 1) <= m {
func.func @lookup(%x: !m, %ids: tensor<?xi32, #graph.shape<["n"]>>) -> !n {
  %0 = "graph.take"(%x, %ids) {axis = 0 : i64} : (!m, tensor<?xi32, #graph.shape<["n"]>>) -> !n
  return %0 : !n
}

// Where nothing says that the dims agree, they broadcast, and the op says of which that is required.
// CHECK-LABEL: func @broadcast
// CHECK-NEXT:    graph.require n == m or n == 1 or m == 1  by graph.add
// CHECK-NEXT:    graph.add
// CHECK-NEXT:    graph.add
func.func @broadcast(%x: !n, %y: !m) -> tensor<?xf32> {
  %0 = "graph.add"(%x, %y) : (!n, !m) -> tensor<?xf32>
  %1 = "graph.add"(%x, %y) : (!n, !m) -> tensor<?xf32, #graph.shape<["max(m, n)*min(m, n, 1)"]>>
  return %0 : tensor<?xf32>
}

// Each of three dims is 1 or the others'; one that is static and not 1 decides.
// CHECK-LABEL: func @broadcast_three
// CHECK-SAME:    facts k == 4 {
// CHECK-NEXT:    graph.require n == m or n == 1 or m == 1  by graph.where
// CHECK-NEXT:    graph.require n == k or n == 1 or k == 1  by graph.where
// CHECK-NEXT:    graph.require m == k or m == 1 or k == 1  by graph.where
// CHECK-NEXT:    graph.where
func.func @broadcast_three(%c: tensor<?xi1, #graph.shape<["k"]>>, %x: !n, %y: !m, %z: tensor<4xf32>) {
  %0 = "graph.where"(%c, %x, %y) : (tensor<?xi1, #graph.shape<["k"]>>, !n, !m) -> tensor<?xf32>
  %1 = "graph.where"(%c, %z, %z) : (tensor<?xi1, #graph.shape<["k"]>>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// What can not be is left out: n + 2 is never 1.
// CHECK-LABEL: func @broadcast_to
// CHECK-NEXT:    graph.require n == m or n == 1  by graph.broadcast_to
// CHECK-NEXT:    graph.require m == n + 2 or m == 1  by graph.add
func.func @broadcast_to(%x: !n, %y: !m, %z: tensor<?xf32, #graph.shape<["n + 2"]>>) {
  %0 = "graph.broadcast_to"(%x) {shape = #graph.shape<["m"]>} : (!n) -> !m
  %1 = "graph.add"(%y, %z) : (!m, tensor<?xf32, #graph.shape<["n + 2"]>>) -> tensor<?xf32>
  return
}

// What a library takes for granted of its operands, and of the result that the call states.
"lib.function"() {sym_name = "blas.gemm", c_symbol = "cblas_sgemm", convention = "cblas_sgemm_nn", libraries = ["libblas.so.3"]} : () -> ()
// CHECK-LABEL: func @library
// CHECK-SAME:    facts k == n, m == 7 {
func.func @library(%x: tensor<?x?xf32, #graph.shape<["m", "k"]>>, %w: tensor<?x4xf32, #graph.shape<["n", 4]>>) -> tensor<7x4xf32> {
  %0 = "graph.call_dps_library"(%x, %w) {callee = @blas.gemm, sym_args = #graph.shape<[]>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<?x?xf32, #graph.shape<["m", "k"]>>, tensor<?x4xf32, #graph.shape<["n", 4]>>) -> tensor<7x4xf32>
  return %0 : tensor<7x4xf32>
}

// What the facts say already is not said again.
// CHECK-LABEL: func @negative_implied
// CHECK-SAME:    facts n == 2*k, m == 2*k {
func.func @negative_implied(%x: !n, %y: !m, %s: !graph.shape_value<["k"]>) -> !n attributes {graph.facts = ["n == 2*k", "m == 2*k"]} {
  %0 = "graph.add"(%x, %y) : (!n, !m) -> !n
  %1 = "graph.add"(%0, %y) : (!n, !m) -> !n
  return %1 : !n
}

// CHECK-LABEL: func @negative_plain_to_see
// CHECK-NOT:     facts
// CHECK:         return
func.func @negative_plain_to_see(%x: !n) -> !n {
  %0 = "graph.exp"(%x) : (!n) -> !n
  return %0 : !n
}

// What a branch takes for granted is asked of it alone, and of what a cast binds behind the cast.
// CHECK-LABEL: func @branch
// CHECK-SAME:    facts n <= 64 {
// CHECK-NEXT:    graph.add
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      graph.require n == m  by graph.add
// CHECK-NEXT:      graph.match_cast
// CHECK-NEXT:      graph.require i == n  by graph.add
// CHECK-NEXT:      graph.add
// CHECK-NEXT:      graph.add
// CHECK:         } {
// CHECK-NEXT:      graph.require k == n  by graph.add
// CHECK:         graph.match_cast
// CHECK-NEXT:    graph.require j == n  by graph.add
// CHECK-NEXT:    graph.add
func.func @branch(%x: !n, %y: !m, %w: tensor<?xf32>, %v: tensor<?xf32, #graph.shape<["k"]>>, %c: i1) attributes {graph.facts = ["n <= 64"]} {
  %0 = "graph.add"(%x, %x) : (!n, !n) -> !n
  scf.if %c {
    %1 = "graph.match_cast"(%w) : (tensor<?xf32>) -> tensor<?xf32, #graph.shape<["i"]>>
    %2 = "graph.add"(%1, %x) : (tensor<?xf32, #graph.shape<["i"]>>, !n) -> !n
    %3 = "graph.add"(%x, %y) : (!n, !m) -> !n
  } else {
    %1 = "graph.add"(%v, %x) : (tensor<?xf32, #graph.shape<["k"]>>, !n) -> !n
  }
  %4 = "graph.match_cast"(%w) : (tensor<?xf32>) -> tensor<?xf32, #graph.shape<["j"]>>
  %5 = "graph.add"(%4, %x) : (tensor<?xf32, #graph.shape<["j"]>>, !n) -> !n
  return
}

// What is required already, or follows, is not required again.
// CHECK-LABEL: func @negative_required
// CHECK-SAME:    facts n == m {
// CHECK-NOT:     graph.require
// CHECK:         return
func.func @negative_required(%x: !n, %y: !m) -> !n attributes {graph.facts = ["n == m"]} {
  "graph.require"() {any_of = ["n == 1", "n <= m"], by = "@f"} : () -> ()
  %0 = "graph.add"(%x, %y) : (!n, !m) -> !n
  return %0 : !n
}

// A function that stays a call states what it needs, and each call requires it.
// CHECK-LABEL: func @caller
// CHECK-NEXT:    graph.require k mod 2 == 0  by @callee
// CHECK-NEXT:    graph.require k == 8  by @callee
// CHECK-NEXT:    graph.call
// CHECK-LABEL: func private @callee
// CHECK-SAME:    facts n mod 2 == 0, n == m {
func.func @caller(%x: tensor<?xf32, #graph.shape<["k"]>>, %y: tensor<8xf32>) {
  %0 = "graph.call"(%x, %y) {callee = @callee, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<?xf32, #graph.shape<["k"]>>, tensor<8xf32>) -> tensor<?xf32, #graph.shape<["k"]>>
  return
}
func.func private @callee(%x: !n, %y: !m) -> !n attributes {graph.noinline, graph.facts = ["n mod 2 == 0"]} {
  %0 = "graph.add"(%x, %y) : (!n, !m) -> !n
  return %0 : !n
}

// -----

!n = tensor<?xf32, #graph.shape<["n"]>>
!m = tensor<?xf32, #graph.shape<["m"]>>
// What a function that calls itself relies on is no fact that its own calls could miss.
// CHECK-LABEL: func private @recursive
// CHECK-NOT:     facts
// CHECK-NEXT:    graph.require n == m  by graph.add
// CHECK-NEXT:    graph.add
// CHECK-NEXT:    graph.call
func.func private @recursive(%x: !n, %y: !m) -> !n {
  %0 = "graph.add"(%x, %y) : (!n, !m) -> !n
  %1 = "graph.call"(%y, %x) {callee = @recursive, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (!m, !n) -> !m
  return %0 : !n
}

// -----

!n = tensor<?xf32, #graph.shape<["n"]>>
func.func @negative_contradiction(%x: !n) -> tensor<4x4xf32> attributes {graph.facts = ["n <= 8"]} {
  // expected-error @below {{'graph.reshape' op needs n == 16, which cannot be given n <= 8}}
  %0 = "graph.reshape"(%x) {shape = #graph.shape<[4, 4]>} : (!n) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

!n = tensor<?xf32, #graph.shape<["n"]>>
func.func @negative_required_contradiction(%x: !n) attributes {graph.facts = ["n <= 8"]} {
  // expected-error @below {{'graph.require' op needs n == 9 or n > 10, which cannot be given n <= 8}}
  "graph.require"() {any_of = ["n == 9", "n > 10"], by = "@f"} : () -> ()
  return
}

// -----

// A tensor of n - m elements tells that m <= n, which later proofs may use.
// CHECK-LABEL: func @dims_are_natural(
// CHECK-SAME:    facts 0 <= -m + n {
func.func @dims_are_natural(%x: tensor<?xf32, #graph.shape<["m"]>>, %y: tensor<?xf32, #graph.shape<["n"]>>, %z: tensor<?xf32, #graph.shape<["-m + n"]>>) -> tensor<?xf32, #graph.shape<["-m + n"]>> {
  %0 = "graph.strided_slice"(%y) {axes = array<i64: 0>, begin = #graph.shape<["m"]>, end = #graph.shape<["n"]>, strides = array<i64: 1>} : (tensor<?xf32, #graph.shape<["n"]>>) -> tensor<?xf32, #graph.shape<["-m + n"]>>
  return %0 : tensor<?xf32, #graph.shape<["-m + n"]>>
}

// -----

// CHECK-LABEL: func @negative_dims_are_natural(
// CHECK-SAME:    facts m <= n {
func.func @negative_dims_are_natural(%x: tensor<?xf32, #graph.shape<["m"]>>, %y: tensor<?xf32, #graph.shape<["n"]>>) -> tensor<?xf32, #graph.shape<["-m + n"]>> {
  %0 = "graph.strided_slice"(%y) {axes = array<i64: 0>, begin = #graph.shape<["m"]>, end = #graph.shape<["n"]>, strides = array<i64: 1>} : (tensor<?xf32, #graph.shape<["n"]>>) -> tensor<?xf32, #graph.shape<["-m + n"]>>
  return %0 : tensor<?xf32, #graph.shape<["-m + n"]>>
}
