// RUN: relax-opt %s --check-equivalent-after-each --pass-pipeline='relax-infer-shapes,relax-state-assumptions,relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,symbol-dce,relax-lower-calls,relax-plan-memory' 2>&1 | FileCheck %s
// RUN: exits 1 relax-opt %s --load-passes=%ROOT/test/lib/test_passes.py --check-equivalent-after-each --pass-pipeline='relax-infer-shapes,test-swap-subtraction,relax-legalize-ops' 2>&1 | FileCheck %s --check-prefix=SWAPPED
// RUN: exits 1 relax-opt %s --load-passes=%ROOT/test/lib/test_passes.py --check-equivalent-after-each --pass-pipeline='relax-legalize-ops,relax-lower-calls,relax-plan-memory,test-plan-in-one-place' 2>&1 | FileCheck %s --check-prefix=PLAN
// RUN: relax-opt %s --check-equivalent-after-each --relax-quantize=scheme=q4_32 2>&1 | FileCheck %s --check-prefix=QUANTIZED

// A right pass changes no answer; a wrong one is named, with the sizes and the first element that differs.

!x = tensor<?x32xf32, #graph.shape<["n", 32]>>

// CHECK-NOT:   {{error|remark}}
// CHECK-LABEL: func.func @main
// CHECK:         "graph.call_dps"

// SWAPPED: check_equivalent.mlir:{{[0-9]+}}:1: error: after 'test-swap-subtraction', @main differs for n = 1: result 0 at [0, 0] is

// Two tensors on the same bytes: a kernel would write over what it reads.
// PLAN: error: after 'test-plan-in-one-place', @main fails for n = 1: {{.*}} 'graph.call_dps' op writes to operand {{[0-9]}} and reads it as operand

// Rounding weights changes numbers, so what follows is compared with the rounded ones.
// QUANTIZED: remark: 'relax-quantize' rounds weights: @main is compared anew
// QUANTIZED-NOT: error

func.func @main(%x: !x {graph.name = "x"}, %w: tensor<32x32xf32> {graph.name = "w"}) -> !x
    attributes {graph.num_inputs = 1 : i64, graph.facts = ["n <= 40"]} {
  %0 = "graph.matmul"(%x, %w) : (!x, tensor<32x32xf32>) -> !x
  %1 = "graph.nn_silu"(%0) : (!x) -> !x
  %2 = "graph.subtract"(%1, %x) : (!x, !x) -> !x
  return %2 : !x
}
