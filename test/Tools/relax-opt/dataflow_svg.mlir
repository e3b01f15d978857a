// RUN: relax-opt %s --dataflow-svg | FileCheck %s
// RUN: not relax-opt %s --relax-dataflow-fuse --relax-lower-dataflow --dataflow-svg 2>&1 | FileCheck %s --check-prefix=LOWERED
// LOWERED: relax-opt: no function runs a dataflow node

#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!x = tensor<?x4xf32, #graph.shape<["n", 4]>>

// CHECK:      <svg xmlns="http://www.w3.org/2000/svg" width="{{[0-9]+}}" height="{{[0-9]+}}"
// CHECK:      <title>main | n &lt;= 9</title>
// CHECK-NEXT: <rect class="function"
// CHECK:      <path {{.*}} stroke="#2a6db0"
// CHECK:      <title>arg0 | f32[n, 4]</title>
// CHECK:      <title>tile | grid n | f32[n, 4]</title>
// CHECK-NEXT: <rect class="internal"
// CHECK:      <path {{.*}} stroke="#c2570c"
// CHECK:      <title>one | grid 4 | f32[4]</title>
// CHECK-COUNT-3: <rect class="leaf"
// CHECK:      >grid 4</text>
// CHECK:      <rect class="target"
// CHECK-NEXT: >vulkan</text>
// CHECK:      >one_to_one: a part each</text>
// CHECK:      </svg>
func.func private @one(%x: tensor<4xf32>) -> f32 attributes {tir.leaf, tir.targets = ["vulkan"]} {
  %i = "tir.node_id"() {level = 0 : i64, dim = 0 : i64} : () -> index
  %0 = tensor.extract %x[%i] : tensor<4xf32>
  return %0 : f32
}
func.func private @tile(%x: tensor<4xf32>) -> tensor<4xf32> attributes {graph.internal_node} {
  %0 = "graph.node"(%x) {callee = @one, grid = #graph.shape<[4]>, edges = ["all_to_all"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @main(%x: !x) -> !x attributes {graph.facts = ["n <= 9"]} {
  %0 = "graph.node"(%x) {callee = @tile, grid = #graph.shape<["n"]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!x) -> !x
  return %0 : !x
}
