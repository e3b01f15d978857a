// RUN: relax-opt %s '--relax-tile-node=sizes=4,64 leaves=product,scaled' | FileCheck %s
// RUN: relax-opt %s '--relax-tile-node=sizes=4,64' --relax-verify --relax-lower-dataflow | FileCheck %s --check-prefix=LOWERED
// RUN: relax-opt %s '--relax-tile-node=sizes=4,64 leaves=product' --relax-lower-dataflow --relax-schedule=target=x86-64-v3 | FileCheck %s --check-prefix=LOOPS
// RUN: relax-opt %s '--relax-tile-node=sizes=4,64' '--relax-tile-node=sizes=4,64' | FileCheck %s --check-prefix=TWICE
// RUN: exits 2 relax-opt %s '--relax-tile-node=sizes=4,0' 2>&1 | FileCheck %s --check-prefix=SIZES
// RUN: exits 2 relax-opt %s --relax-tile-node=sizes= 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: exits 2 relax-opt %s '--relax-tile-node=sizes=300,300' 2>&1 | FileCheck %s --check-prefix=LARGE
// RUN: exits 2 relax-opt %s '--relax-tile-node=sizes=4 leaves=main' 2>&1 | FileCheck %s --check-prefix=LEAVES
// SIZES: relax-opt: pass 'relax-tile-node': sizes=4,0 are none of a tile; expects 1 to 3, above 0, of at most 65536 instances
// NONE: relax-opt: pass 'relax-tile-node': sizes= are none of a tile; expects 1 to 3
// LARGE: relax-opt: pass 'relax-tile-node': sizes=300,300 are none of a tile; expects 1 to 3
// LEAVES: relax-opt: relax-tile-node has leaves=main, which is no leaf

#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!a = tensor<?x?xf32, #graph.shape<["n", "k"]>>
!b = tensor<?x?xf32, #graph.shape<["k", "m"]>>
!c = tensor<?x?xf32, #graph.shape<["n", "m"]>>

// A sum would be scheduled as an operator's; each round of this loop needs the one before. Loops over tiles have constant bounds in the dim of which all tiles are whole, which a fact says.
// LOOPS-LABEL: func.func private @product_in_tile_node
// LOOPS:         scf.parallel
// LOOPS:         %[[M:[0-9]+]] = arith.minui
// LOOPS-NOT:     minui
// LOOPS:         scf.for %{{.*}} = %c0 to %dim{{.*}} step
// LOOPS-NEXT:      scf.for %{{.*}} = %c0 to %c4 step
// LOOPS:             scf.for %{{.*}} = %c0 to %[[M]] step
// LOOPS:               arith.addf
// CHECK-LABEL: func.func @main
// CHECK:         "graph.node"(%arg0, %arg1) {callee = @product_tile, edges = ["all_to_all", "all_to_all"],
// CHECK-SAME:      graph.extents = #graph.shape<["n", "m"]>, grid = #graph.shape<["n floordiv 4", "(m + 63) floordiv 64"]>
// CHECK:         "graph.node"({{.*}}) {callee = @scaled_tile, edges = ["tiles", "all_to_all"], graph.extents
// CHECK-NOT:   @product(
// LOWERED-LABEL: func.func @main
// LOWERED-COUNT-2: graph.call_tir
// LOWERED-NOT:   graph.call_tir
// LOWERED:       return
// TWICE-NOT:   _tile_tile
func.func @main(%a: !a, %b: !b) -> !c attributes {graph.facts = ["n mod 4 == 0"]} {
  %0 = "graph.node"(%a, %b) {callee = @product, grid = #graph.shape<["n", "m"]>,
      edges = ["all_to_all", "all_to_all"],
      operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!a, !b) -> !c
  %1 = "graph.node"(%0, %b) {callee = @scaled, grid = #graph.shape<["n", "m"]>,
      edges = ["one_to_one", "all_to_all"],
      operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!c, !b) -> !c
  return %1 : !c
}

// CHECK-LABEL: func.func private @product_in_tile
// CHECK:         "tir.global_id"() {dim = 0 : i64, level = 0 : i64}
// CHECK-LABEL: func.func private @product_tile
// CHECK-SAME:    -> tensor<4x64xf32> attributes {graph.internal_node}
// CHECK:         "graph.node"(%arg0, %arg1) {callee = @product_in_tile, edges = ["all_to_all", "all_to_all"], grid = #graph.shape<[4, 64]>
// LOWERED-LABEL: func.func private @product_in_tile_node
// LOWERED:       linalg.generic
// LOWERED-SAME:    tir.tile = array<i64: 4, 64>, tir.whole_tiles = array<i1: true, false>
func.func private @product(%a: !a, %b: !b) -> f32 attributes {tir.leaf} {
  %i = "tir.node_id"() {level = 0 : i64, dim = 0 : i64} : () -> index
  %j = "tir.node_id"() {level = 0 : i64, dim = 1 : i64} : () -> index
  %one = arith.constant 1 : index
  %zero = arith.constant 0 : index
  %k = tensor.dim %a, %one : !a
  %z = arith.constant 0.0 : f32
  %0 = scf.for %l = %zero to %k step %one iter_args(%sum = %z) -> f32 {
    %x = tensor.extract %a[%i, %l] : !a
    %y = tensor.extract %b[%l, %j] : !b
    %p = arith.mulf %sum, %x : f32
    %s = arith.addf %p, %y : f32
    scf.yield %s : f32
  }
  return %0 : f32
}

// Other levels are one further out.
// CHECK-LABEL: func.func private @scaled_in_tile
// CHECK:         "tir.global_size"() {dim = 1 : i64, level = 0 : i64}
// CHECK-LABEL: func.func private @scaled_tile(%arg0: tensor<4x64xf32>,
// CHECK:         edges = ["one_to_one", "all_to_all"]
func.func private @scaled(%x: f32, %b: !b) -> f32 attributes {tir.leaf} {
  %m = "tir.grid_size"() {level = 0 : i64, dim = 1 : i64} : () -> index
  %n = arith.index_cast %m : index to i64
  %f = arith.sitofp %n : i64 to f32
  %0 = arith.mulf %x, %f : f32
  return %0 : f32
}
