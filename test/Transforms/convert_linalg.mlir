// RUN: relax-opt %s --split-input-file --relax-convert-linalg --relax-verify --pretty | FileCheck %s

// Dims that the ops need to be equal are one symbol. A fill is in the program of what begins with it.
// CHECK-LABEL: func @product(%arg0: tensor<arg0_0 x arg0_1 x f32>, %arg1: tensor<arg0_1 x 8 x f32>) -> tensor<arg0_0 x 8 x f32>
// CHECK-NEXT:    %0 = graph.call_tir @matmul(%arg0, %arg1) : tensor<arg0_0 x 8 x f32>
// CHECK-NEXT:    %1 = graph.call_tir @exp(%0) : tensor<arg0_0 x 8 x f32>
// CHECK-NEXT:    return %1
// CHECK:       func private @matmul(%arg0: tensor<arg0_0 x arg0_1 x f32>, %arg1: tensor<arg0_1 x 8 x f32>, %arg2: tensor<arg0_0 x 8 x f32>)
// CHECK:         linalg.fill
// CHECK:         linalg.generic
// CHECK:         arith.mulf
func.func @product(%x: tensor<?x?xf32>, %w: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  %e = tensor.empty(%n) : tensor<?x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  %0 = linalg.matmul ins(%x, %w : tensor<?x?xf32>, tensor<?x8xf32>) outs(%f : tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = math.exp %0 : tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}

// -----

// Equal programs are one; what a tensor holds is updated in place.
// CHECK-LABEL: func @shared(
// CHECK-NEXT:    %0 = graph.call_tir @absf(%arg0) : tensor<4 x f32>
// CHECK-NEXT:    %1 = graph.call_tir @absf(%0) : tensor<4 x f32>
// CHECK-NEXT:    %2 = graph.call_tir_inplace @addf(%1, %arg1) {inplace_indices=array<i64: 1>} : tensor<4 x f32>
// CHECK-NEXT:    return %2
func.func @shared(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = math.absf %x : tensor<4xf32>
  %1 = math.absf %0 : tensor<4xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%1 : tensor<4xf32>) outs(%y : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %3 = arith.addf %a, %b : f32
    linalg.yield %3 : f32
  } -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

// Arithmetic on dims is an expression; what slices and reshapes need are facts.
// CHECK-LABEL: func @sizes(%arg0: tensor<arg0_0 x f32>) -> tensor<2 x arg0_0 floordiv 2 x f32>, tensor<arg0_0 - 3 x f32>
// CHECK-SAME:    facts arg0_0 == 2*(arg0_0 floordiv 2), 0 <= arg0_0 - 3
// CHECK-NEXT:    graph.reshape(%arg0) {shape=#graph.shape<[2, "arg0_0 floordiv 2"]>}
// CHECK-NEXT:    graph.strided_slice(%arg0) {{.*}} begin=#graph.shape<[3]>, end=#graph.shape<["arg0_0"]>{{.*}} : tensor<arg0_0 - 3 x f32>
func.func @sizes(%x: tensor<?xf32>) -> (tensor<2x?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %half = arith.divui %n, %c2 : index
  %0 = tensor.expand_shape %x [[0, 1]] output_shape [2, %half] : tensor<?xf32> into tensor<2x?xf32>
  %rest = arith.subi %n, %c3 : index
  %1 = tensor.extract_slice %x[3] [%rest] [1] : tensor<?xf32> to tensor<?xf32>
  return %0, %1 : tensor<2x?xf32>, tensor<?xf32>
}

// -----

// A size that nothing tells is bound where it is known.
// CHECK-LABEL: func @told(%arg0: tensor<arg0_0 x f32>, %arg1: index)
// CHECK:         %[[SHAPE:.*]] = graph.tensor_to_shape(
// CHECK-NEXT:    %{{.*}} = graph.match_cast(%[[SHAPE]]) : shape<size>
// CHECK-NEXT:    graph.require size <= arg0_0 by tensor.extract_slice
// CHECK:         graph.strided_slice({{.*}} : tensor<size x f32>
func.func @told(%x: tensor<?xf32>, %k: index) -> tensor<?xf32> {
  %0 = tensor.extract_slice %x[0] [%k] [1] : tensor<?xf32> to tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// State of a loop keeps its dims where each round does; an update is in place.
// CHECK-LABEL: func @loop(
// CHECK:         scf.for({{.*}}) : tensor<arg0_0 x 4 x f32> {
// CHECK-NEXT:    ^0(%{{.*}}: index, %{{.*}}: tensor<arg0_0 x 4 x f32>):
// CHECK:           graph.dynamic_update_slice(
// CHECK:         scf.for({{.*}}) : tensor<? x 4 x f32> {
// CHECK-NEXT:    ^0(%{{.*}}: index, %[[ARG:.*]]: tensor<? x 4 x f32>):
// CHECK:           graph.match_cast(%[[ARG]]) : tensor<arg_0 x 4 x f32>
func.func @loop(%x: tensor<?x4xf32>, %row: tensor<1x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (tensor<?x4xf32>) {
    %2 = tensor.insert_slice %row into %a[%i, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<?x4xf32>
    scf.yield %2 : tensor<?x4xf32>
  }
  %1 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (tensor<?x4xf32>) {
    %2 = tensor.concat dim(0) %a, %row : (tensor<?x4xf32>, tensor<1x4xf32>) -> tensor<?x4xf32>
    scf.yield %2 : tensor<?x4xf32>
  }
  return %0, %1 : tensor<?x4xf32>, tensor<?x4xf32>
}

// -----

// Bodies cannot read out of bounds or stop the program, and have no flags that leave results open.
// CHECK-LABEL: func private @extract(
// CHECK:         %[[INDEX:.*]] = arith.index_cast
// CHECK:         %[[MOST:.*]] = arith.minsi(%[[INDEX]],
// CHECK:         %[[AT:.*]] = arith.maxsi(%[[MOST]],
// CHECK:         tensor.extract(%{{.*}}, %[[AT]])
// CHECK-LABEL: func private @divsi(
// CHECK:         arith.select
// CHECK:         arith.divsi
// CHECK:         arith.select
// CHECK-LABEL: func private @addi(
// CHECK:         arith.addi({{.*}}) {overflowFlags=#arith.overflow<none>}
func.func @safe(%table: tensor<9xi64>, %i: tensor<?xi64>) -> (tensor<?xi64>, tensor<?xi64>, tensor<?xi64>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %i, %c0 : tensor<?xi64>
  %e = tensor.empty(%n) : tensor<?xi64>
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%i : tensor<?xi64>) outs(%e : tensor<?xi64>) {
  ^bb0(%a: i64, %b: i64):
    %at = arith.index_cast %a : i64 to index
    %element = tensor.extract %table[%at] : tensor<9xi64>
    linalg.yield %element : i64
  } -> tensor<?xi64>
  %1 = arith.divsi %0, %i : tensor<?xi64>
  %2 = arith.addi %1, %i overflow<nsw> : tensor<?xi64>
  return %0, %1, %2 : tensor<?xi64>, tensor<?xi64>, tensor<?xi64>
}

// -----

// A function is called as before, and its results have the dims of the arguments.
// CHECK-LABEL: func @caller(%arg0: tensor<arg0_0 x f32>) -> tensor<2*arg0_0 x f32>
// CHECK-NEXT:    graph.call @twice(%arg0) : tensor<2*arg0_0 x f32>
// CHECK-LABEL: func private @twice(%arg0: tensor<arg0_0 x f32>) -> tensor<2*arg0_0 x f32>
func.func @caller(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = func.call @twice(%x) : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func private @twice(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = tensor.concat dim(0) %x, %x : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A function without ops of linalg stays as it is.
// CHECK-LABEL: func @negative_graph(%arg0: tensor<? x f32>)
// CHECK-NEXT:    graph.exp(%arg0) : tensor<? x f32>
func.func @negative_graph(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = "graph.exp"(%x) : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
