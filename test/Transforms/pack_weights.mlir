// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,relax-pack-weights{target=x86-64-v4},symbol-dce' | FileCheck %s
// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,relax-pack-weights{target=x86-64-v4},symbol-dce,relax-schedule{target=x86-64-v4}' | FileCheck %s --check-prefix=LOOPS

// A parameter [40, 64] is read in two panels of 32 columns.
// CHECK-LABEL: func.func @parameter
// CHECK-SAME:    %[[X:[a-z0-9]*]]: tensor<?x64xf32
// CHECK-SAME:    %[[W:[a-z0-9]*]]: tensor<40x64xf32>
// CHECK:         %[[P:.*]] = "graph.call_tir"(%[[W]]) {callee = @pack_weights,
// CHECK-SAME:      -> tensor<2x64x32xf32>
// CHECK:         "graph.call_tir"(%[[P]], %[[X]]) {callee = @fused_permute_dims_matmul_packed,
func.func @parameter(%x: tensor<?x64xf32, #graph.shape<["n", 64]>>, %w: tensor<40x64xf32>) -> tensor<?x40xf32, #graph.shape<["n", 40]>> attributes {graph.num_inputs = 1 : i64} {
  %t = "graph.permute_dims"(%w) {axes = array<i64: 1, 0>} : (tensor<40x64xf32>) -> tensor<64x40xf32>
  %0 = "graph.matmul"(%x, %t) : (tensor<?x64xf32, #graph.shape<["n", 64]>>, tensor<64x40xf32>) -> tensor<?x40xf32, #graph.shape<["n", 40]>>
  return %0 : tensor<?x40xf32, #graph.shape<["n", 40]>>
}

// What is computed from parameters alone is packed behind it, for a loop too.
// CHECK-LABEL: func.func @made_of_a_parameter
// CHECK-SAME:    %[[W:[a-z0-9]*]]: tensor<1x64x40xf32>
// CHECK:         %[[M:.*]] = "graph.call_tir"(%[[W]]) {callee = @squeeze,
// CHECK-NEXT:    %[[P:.*]] = "graph.call_tir"(%[[M]]) {callee = @pack_weights
// CHECK-SAME:      -> tensor<2x64x32xf32>
// CHECK:         scf.for
// CHECK:           "graph.call_tir"(%{{.*}}, %[[P]]) {callee = @matmul{{[_0-9]*}}_packed,
func.func @made_of_a_parameter(%x: tensor<?x64xf32, #graph.shape<["n", 64]>>, %y: tensor<?x40xf32, #graph.shape<["n", 40]>>, %w: tensor<1x64x40xf32>) -> tensor<?x40xf32, #graph.shape<["n", 40]>> attributes {graph.num_inputs = 2 : i64} {
  %m = "graph.squeeze"(%w) {axes = array<i64: 0>} : (tensor<1x64x40xf32>) -> tensor<64x40xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%sum = %y) -> tensor<?x40xf32, #graph.shape<["n", 40]>> {
    %0 = "graph.matmul"(%x, %m) : (tensor<?x64xf32, #graph.shape<["n", 64]>>, tensor<64x40xf32>) -> tensor<?x40xf32, #graph.shape<["n", 40]>>
    scf.yield %0 : tensor<?x40xf32, #graph.shape<["n", 40]>>
  }
  return %r : tensor<?x40xf32, #graph.shape<["n", 40]>>
}

// Rows may have several dims.
// CHECK-LABEL: func.func @batched
// CHECK-SAME:    %[[X:[a-z0-9]*]]: tensor<?x?x64xf32
// CHECK-SAME:    %[[W:[a-z0-9]*]]: tensor<64x40xf32>
// CHECK:         %[[P:.*]] = "graph.call_tir"(%[[W]]) {callee = @pack_weights
// CHECK-SAME:      -> tensor<2x64x32xf32>
// CHECK:         "graph.call_tir"(%[[X]], %[[P]]) {callee = @matmul{{[_0-9]*}}_packed,
func.func @batched(%x: tensor<?x?x64xf32, #graph.shape<["b", "n", 64]>>, %w: tensor<64x40xf32>) -> tensor<?x?x40xf32, #graph.shape<["b", "n", 40]>> attributes {graph.num_inputs = 1 : i64} {
  %0 = "graph.matmul"(%x, %w) : (tensor<?x?x64xf32, #graph.shape<["b", "n", 64]>>, tensor<64x40xf32>) -> tensor<?x?x40xf32, #graph.shape<["b", "n", 40]>>
  return %0 : tensor<?x?x40xf32, #graph.shape<["b", "n", 40]>>
}

// What is no parameter changes from call to call: packing it would cost more than it gains.
// CHECK-LABEL: func.func @negative_input
// CHECK-NOT:     pack_weights
// CHECK:         return
func.func @negative_input(%x: tensor<?x64xf32, #graph.shape<["n", 64]>>, %w: tensor<40x64xf32>) -> tensor<?x40xf32, #graph.shape<["n", 40]>> attributes {graph.num_inputs = 2 : i64} {
  %t = "graph.permute_dims"(%w) {axes = array<i64: 1, 0>} : (tensor<40x64xf32>) -> tensor<64x40xf32>
  %0 = "graph.matmul"(%x, %t) : (tensor<?x64xf32, #graph.shape<["n", 64]>>, tensor<64x40xf32>) -> tensor<?x40xf32, #graph.shape<["n", 40]>>
  return %0 : tensor<?x40xf32, #graph.shape<["n", 40]>>
}

// CHECK-LABEL: func.func @negative_no_declared_parameters
// CHECK-NOT:     pack_weights
// CHECK:         return
func.func @negative_no_declared_parameters(%x: tensor<?x64xf32, #graph.shape<["n", 64]>>, %w: tensor<40x64xf32>) -> tensor<?x40xf32, #graph.shape<["n", 40]>> {
  %t = "graph.permute_dims"(%w) {axes = array<i64: 1, 0>} : (tensor<40x64xf32>) -> tensor<64x40xf32>
  %0 = "graph.matmul"(%x, %t) : (tensor<?x64xf32, #graph.shape<["n", 64]>>, tensor<64x40xf32>) -> tensor<?x40xf32, #graph.shape<["n", 40]>>
  return %0 : tensor<?x40xf32, #graph.shape<["n", 40]>>
}

// A table that is also looked up is kept in panels only: row r lies in panel r / 32, column r % 32.
// CHECK-LABEL: func.func @tied
// CHECK-SAME:    %[[IDS:[a-z0-9]*]]: tensor<?xi32
// CHECK-SAME:    %[[W:[a-z0-9]*]]: tensor<40x64xf32>
// CHECK:         %[[P:.*]] = "graph.call_tir"(%[[W]]) {callee = @pack_weights
// CHECK:         %[[X:.*]] = "graph.call_tir"(%[[P]], %[[IDS]]) {callee = @take_packed,
// CHECK-NOT:     %[[W]]
// CHECK:         "graph.call_tir"(%[[P]], %[[X]]) {callee = @fused_permute_dims_matmul_packed
func.func @tied(%ids: tensor<?xi32, #graph.shape<["n"]>>, %w: tensor<40x64xf32>) -> tensor<?x40xf32, #graph.shape<["n", 40]>> attributes {graph.num_inputs = 1 : i64} {
  %x = "graph.take"(%w, %ids) {axis = 0 : i64} : (tensor<40x64xf32>, tensor<?xi32, #graph.shape<["n"]>>) -> tensor<?x64xf32, #graph.shape<["n", 64]>>
  %t = "graph.permute_dims"(%w) {axes = array<i64: 1, 0>} : (tensor<40x64xf32>) -> tensor<64x40xf32>
  %0 = "graph.matmul"(%x, %t) : (tensor<?x64xf32, #graph.shape<["n", 64]>>, tensor<64x40xf32>) -> tensor<?x40xf32, #graph.shape<["n", 40]>>
  return %0 : tensor<?x40xf32, #graph.shape<["n", 40]>>
}

// What reads a weight row by row keeps it as it is.
// CHECK-LABEL: func.func @negative_other_reader
// CHECK-SAME:    %[[W:[a-z0-9]*]]: tensor<64x64xf32>
// CHECK:         "graph.call_tir"(%[[W]]) {callee = @exp
func.func @negative_other_reader(%x: tensor<?x64xf32, #graph.shape<["n", 64]>>, %w: tensor<64x64xf32>) -> (tensor<?x64xf32, #graph.shape<["n", 64]>>, tensor<64x64xf32>) attributes {graph.num_inputs = 1 : i64} {
  %e = "graph.exp"(%w) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %0 = "graph.matmul"(%x, %w) : (tensor<?x64xf32, #graph.shape<["n", 64]>>, tensor<64x64xf32>) -> tensor<?x64xf32, #graph.shape<["n", 64]>>
  return %0, %e : tensor<?x64xf32, #graph.shape<["n", 64]>>, tensor<64x64xf32>
}

// Packing it would be part of each call.
// CHECK-LABEL: func.func @negative_not_lifted
// CHECK-NOT:     pack
// CHECK:         return
func.func @negative_not_lifted(%x: tensor<?x64xf32, #graph.shape<["n", 64]>>, %w: tensor<64x64xf32> {graph.no_lift}) -> tensor<?x64xf32, #graph.shape<["n", 64]>> attributes {graph.num_inputs = 1 : i64} {
  %0 = "graph.matmul"(%x, %w) : (tensor<?x64xf32, #graph.shape<["n", 64]>>, tensor<64x64xf32>) -> tensor<?x64xf32, #graph.shape<["n", 64]>>
  return %0 : tensor<?x64xf32, #graph.shape<["n", 64]>>
}

// CHECK:         func.func private @fused_permute_dims_matmul_packed
// CHECK-SAME:      tensor<2x64x32xf32>
// CHECK:           linalg.generic
// CHECK-SAME:        iterator_types = ["parallel", "parallel", "parallel", "reduction"]
// CHECK:           tensor.collapse_shape {{.*}} tensor<?x2x32xf32> into tensor<?x64xf32>
// CHECK:           tensor.extract_slice {{.*}} tensor<?x64xf32> to tensor<?x40xf32>

// A single row has code of its own, whose blocks are known: no sizes are computed. Its loop along k
// has three times eight multiply-adds.
// LOOPS:       #[[$COUNT:.*]] = #llvm.loop_unroll<count = 3 : i32>
// LOOPS:       #[[$THRICE:.*]] = #llvm.loop_annotation<unroll = #[[$COUNT]]>
// LOOPS-LABEL: func.func private @fused_permute_dims_matmul_packed
// LOOPS:         %[[ROWS:.*]] = memref.dim %arg1, %c0
// LOOPS:         %[[SOME:.*]] = arith.cmpi ugt, %[[ROWS]], %c0
// LOOPS:         %[[FEW:.*]] = arith.cmpi ult, %[[ROWS]], %c2
// LOOPS:         %[[ONE:.*]] = arith.andi %[[SOME]], %[[FEW]]
// LOOPS:         scf.if %[[ONE]] {
// LOOPS-NOT:       arith.divui
// LOOPS:           scf.for %{{.*}} = %c0 to %c2 step %c1
// LOOPS-NOT:       arith.divui
// LOOPS:           scf.for {{.*}} to %c64 step %c4
// LOOPS-COUNT-8:     vector.fma
// LOOPS:             scf.yield
// LOOPS-NEXT:      } {llvm.loop_annotation = #[[$THRICE]]}
// LOOPS-NOT:       arith.divui
// LOOPS:         } else {
// LOOPS:           arith.divui
