// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-legalize-ops,relax-annotate-pattern)' | FileCheck %s

!v = tensor<?xf32, #graph.shape<["n"]>>
!m = tensor<?x8xf32, #graph.shape<["n", 8]>>
!t = tensor<8x?xf32, #graph.shape<[8, "n"]>>

// Written at its own loops: what reads the same element is element-wise.
// CHECK-DAG: func.func private @exp({{.*}}tir.pattern = #tir.pattern<"element_wise">
// CHECK-DAG: func.func private @subtract({{.*}}tir.pattern = #tir.pattern<"element_wise">
// A bias beside an element-wise read does not make a program harder.
// CHECK-DAG: func.func private @add({{.*}}tir.pattern = #tir.pattern<"element_wise">
// CHECK-DAG: func.func private @triu({{.*}}tir.pattern = #tir.pattern<"element_wise">
func.func @element_wise(%x: !m, %b: tensor<8xf32>) -> !m {
  %0 = "graph.exp"(%x) : (!m) -> !m
  %1 = "graph.subtract"(%0, %x) : (!m, !m) -> !m
  %2 = "graph.add"(%1, %b) : (!m, tensor<8xf32>) -> !m
  %3 = "graph.triu"(%2) {k = 0 : i64} : (!m) -> !m
  return %3 : !m
}

// CHECK-DAG: func.func private @broadcast_to({{.*}}tir.pattern = #tir.pattern<"broadcast">
// CHECK-DAG: func.func private @multiply({{.*}}tir.pattern = #tir.pattern<"broadcast">
func.func @broadcast(%b: tensor<8xf32>, %c: tensor<?x1xf32, #graph.shape<["n", 1]>>) -> (!m, !m) {
  %0 = "graph.broadcast_to"(%b) {shape = #graph.shape<["n", 8]>} : (tensor<8xf32>) -> !m
  %1 = "graph.multiply"(%c, %b) : (tensor<?x1xf32, #graph.shape<["n", 1]>>, tensor<8xf32>) -> !m
  return %0, %1 : !m, !m
}

// CHECK-DAG: func.func private @permute_dims({{.*}}tir.pattern = #tir.pattern<"injective">
// CHECK-DAG: func.func private @reshape({{.*}}tir.pattern = #tir.pattern<"injective">{{.*}}tir.reshape
// CHECK-DAG: func.func private @take({{.*}}tir.pattern = #tir.pattern<"injective">
// CHECK-DAG: func.func private @strided_slice({{.*}}tir.pattern = #tir.pattern<"injective">
// CHECK-DAG: func.func private @concat({{.*}}tir.pattern = #tir.pattern<"injective">
func.func @injective(%x: !m, %i: tensor<3xi64>) -> (!t, tensor<?xf32, #graph.shape<["8*n"]>>, tensor<3x8xf32>, tensor<?x2xf32, #graph.shape<["n", 2]>>, tensor<?x16xf32, #graph.shape<["n", 16]>>) {
  %0 = "graph.permute_dims"(%x) {axes = array<i64: 1, 0>} : (!m) -> !t
  %1 = "graph.reshape"(%x) {shape = #graph.shape<["8*n"]>} : (!m) -> tensor<?xf32, #graph.shape<["8*n"]>>
  %2 = "graph.take"(%x, %i) {axis = 0 : i64} : (!m, tensor<3xi64>) -> tensor<3x8xf32>
  %3 = "graph.strided_slice"(%x) {axes = array<i64: 1>, begin = #graph.shape<[3]>, end = #graph.shape<[5]>, strides = array<i64: 1>} : (!m) -> tensor<?x2xf32, #graph.shape<["n", 2]>>
  %4 = "graph.concat"(%x, %x) {axis = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (!m, !m) -> tensor<?x16xf32, #graph.shape<["n", 16]>>
  return %0, %1, %2, %3, %4 : !t, tensor<?xf32, #graph.shape<["8*n"]>>, tensor<3x8xf32>, tensor<?x2xf32, #graph.shape<["n", 2]>>, tensor<?x16xf32, #graph.shape<["n", 16]>>
}

// Padding comes in front of the sums, and groups are joined behind them in place.
// CHECK-DAG: func.func private @conv2d({{.*}}tir.pattern = #tir.pattern<"out_fusible">
// CHECK-DAG: func.func private @conv2d_1({{.*}}tir.pattern = #tir.pattern<"out_fusible">
// CHECK-DAG: func.func private @max_pool2d({{.*}}tir.pattern = #tir.pattern<"reduction">
func.func @windows(%x: tensor<1x4x8x8xf32>, %w: tensor<4x4x3x3xf32>, %v: tensor<4x2x3x3xf32>) {
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x8x8xf32>
  %1 = "graph.nn_conv2d"(%x, %v) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 2 : i64} : (tensor<1x4x8x8xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x8x8xf32>
  %2 = "graph.nn_max_pool2d"(%x) {window = array<i64: 3, 3>, strides = array<i64: 2, 2>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>} : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32>
  return
}

// CHECK-DAG: func.func private @sum({{.*}}tir.pattern = #tir.pattern<"reduction">
// CHECK-DAG: func.func private @softmax({{.*}}tir.pattern = #tir.pattern<"reduction">
// CHECK-DAG: func.func private @rms_norm({{.*}}tir.pattern = #tir.pattern<"reduction">
func.func @reduction(%x: !m, %w: tensor<8xf32>) -> (!v, !m, !m) {
  %0 = "graph.sum"(%x) {axes = array<i64: 1>, keepdims = false} : (!m) -> !v
  %1 = "graph.nn_softmax"(%x) {axis = -1 : i64} : (!m) -> !m
  %2 = "graph.nn_rms_norm"(%x, %w) {epsilon = 1.0e-5 : f64} : (!m, tensor<8xf32>) -> !m
  return %0, %1, %2 : !v, !m, !m
}

// CHECK-DAG: func.func private @matmul({{.*}}tir.pattern = #tir.pattern<"out_fusible">
// The sums of half-precision products are f32; their conversion changes nothing.
// CHECK-DAG: func.func private @matmul_1({{.*}}tir.pattern = #tir.pattern<"out_fusible">
func.func @out_fusible(%x: !m, %w: tensor<8x8xf32>, %y: tensor<4x8xf16>, %v: tensor<8x8xf16>) -> (!m, tensor<4x8xf16>) {
  %0 = "graph.matmul"(%x, %w) : (!m, tensor<8x8xf32>) -> !m
  %1 = "graph.matmul"(%y, %v) : (tensor<4x8xf16>, tensor<8x8xf16>) -> tensor<4x8xf16>
  return %0, %1 : !m, tensor<4x8xf16>
}

// An epilogue that moves the sums is none that other calls can join.
// CHECK-DAG: func.func private @negative_moved({{.*}}tir.pattern = #tir.pattern<"reduction">
func.func private @negative_moved(%x: tensor<4x8xf32>, %y: tensor<8x5xf32>, %out: tensor<5x4xf32>) -> tensor<5x4xf32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %new = tensor.empty() : tensor<4x5xf32>
  %sums = linalg.fill ins(%zero : f32) outs(%new : tensor<4x5xf32>) -> tensor<4x5xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %y : tensor<4x8xf32>, tensor<8x5xf32>) outs(%sums : tensor<4x5xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<4x5xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<4x5xf32>) outs(%out : tensor<5x4xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<5x4xf32>
  return %1 : tensor<5x4xf32>
}

// Loops that are not linalg's are opaque, whatever they compute.
// CHECK-DAG: func.func private @negative_loop({{.*}}tir.pattern = #tir.pattern<"opaque">
func.func private @negative_loop(%x: tensor<4xf32>, %out: tensor<4xf32>) -> tensor<4xf32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%o = %out) -> tensor<4xf32> {
    %e = tensor.extract %x[%i] : tensor<4xf32>
    %n = tensor.insert %e into %o[%i] : tensor<4xf32>
    scf.yield %n : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// One that says itself what shape of program it is, is left alone by fusion.
// CHECK-DAG: func.func private @negative_hint({{.*}}tir.pattern = #tir.pattern<"opaque">
func.func private @negative_hint(%x: tensor<4xf32>, %out: tensor<4xf32>) -> tensor<4xf32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64, tir.schedule_hint = "attention"} {
  return %out : tensor<4xf32>
}

// A pattern that is there already stays.
// CHECK-DAG: func.func private @negative_known({{.*}}tir.pattern = #tir.pattern<"broadcast">
func.func private @negative_known(%x: tensor<4xf32>, %out: tensor<4xf32>) -> tensor<4xf32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64, tir.pattern = #tir.pattern<"broadcast">} {
  return %out : tensor<4xf32>
}
