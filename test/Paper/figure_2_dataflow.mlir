// RUN: relax-opt %s --pretty | FileCheck %s
// RUN: relax-opt %s --relax-lower-calls --pretty | FileCheck %s --check-prefix=LOWERED

// A graph function and a loop-level tensor program live in one module (paper Figure 2). Ops of the
// dataflow block have no side effects, so passes may move, fuse and drop them without asking.

!rows    = tensor<?x128xf32, #graph.shape<["n", 128]>>
!outputs = tensor<?x256xf32, #graph.shape<["n", 256]>>
#two_ins = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#one_out = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>

func.func private @mm(%x: !rows, %w: tensor<128x256xf32>, %y: !outputs) -> !outputs
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %lhs = tensor.cast %x : !rows to tensor<?x128xf32>
  %out = tensor.cast %y : !outputs to tensor<?x256xf32>
  %zero = arith.constant 0.0 : f32
  %init = linalg.fill ins(%zero : f32) outs(%out : tensor<?x256xf32>) -> tensor<?x256xf32>
  %sum = linalg.generic {
      indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
                       affine_map<(i, j, k) -> (i, j)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%lhs, %w : tensor<?x128xf32>, tensor<128x256xf32>) outs(%init : tensor<?x256xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %product = arith.mulf %a, %b : f32
    %next = arith.addf %c, %product : f32
    linalg.yield %next : f32
  } -> tensor<?x256xf32>
  %result = tensor.cast %sum : tensor<?x256xf32> to !outputs
  return %result : !outputs
}

func.func @main(%x: !rows {graph.name = "x"}, %w: tensor<128x256xf32> {graph.name = "w"}) -> !outputs {
  %0 = scf.execute_region -> !outputs no_inline {
    %1 = "graph.call_tir"(%x, %w) {callee = @mm, sym_args = #graph.shape<[]>,
        operandSegmentSizes = #two_ins, resultSegmentSizes = #one_out}
        : (!rows, tensor<128x256xf32>) -> !outputs
    %2 = "graph.nn_relu"(%1) : (!outputs) -> !outputs
    scf.yield %2 : !outputs
  } {graph.dataflow}
  return %0 : !outputs
}

// CHECK-LABEL: func @main(%arg0: tensor<n x 128 x f32>, %arg1: tensor<128 x 256 x f32>) -> tensor<n x 256 x f32>
// CHECK-NEXT:    scf.execute_region() {graph.dataflow
// CHECK-NEXT:      %[[Y:.*]] = graph.call_tir @mm(%arg0, %arg1) : tensor<n x 256 x f32>
// CHECK-NEXT:      graph.nn_relu(%[[Y]]) : tensor<n x 256 x f32>

// Order matters once memory is explicit, so lowering dissolves the block.
// LOWERED-LABEL: func @main
// LOWERED-NOT:     execute_region
// LOWERED:         graph.alloc_tensor() {{.*}}: tensor<n x 256 x f32>
// LOWERED-NEXT:    graph.call_dps @mm(
// LOWERED-NEXT:    graph.nn_relu(
