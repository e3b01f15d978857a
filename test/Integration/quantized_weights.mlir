// RUN: relax-opt %s --relax-quantize=scheme=q4_32 | FileCheck %s
// RUN: relax-opt %s --pass-pipeline='relax-quantize{scheme=q4_32},relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,symbol-dce' | FileCheck %s --check-prefix=FUSED
// RUN: relax-opt %s --pass-pipeline='relax-quantize{scheme=q4_32},relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,symbol-dce,relax-schedule' | FileCheck %s --check-prefix=KERNEL

// A float matrix becomes numbers of 4 bits: decoding is a program of its own, and no longer one
// after fusion.

!x = tensor<?x64xf32, #graph.shape<["n", 64]>>
!y = tensor<?x32xf32, #graph.shape<["n", 32]>>

// CHECK-LABEL: func.func @main_quantize(
// CHECK:         "graph.quantize"
// CHECK-LABEL: func.func @main(
// CHECK-NEXT:    "graph.dequantize"
// CHECK-NEXT:    "graph.permute_dims"
// CHECK-NEXT:    "graph.matmul"
// CHECK-NEXT:    "graph.nn_relu"

// FUSED-LABEL: func.func @main(
// FUSED:         callee = @fused_dequantize_permute_dims_matmul_relu
// FUSED-NEXT:    return
// FUSED:       func.func private @fused_dequantize_permute_dims_matmul_relu
// FUSED-NOT:     32x64xf32
// FUSED:         return

// KERNEL:      func.func private @fused_dequantize_permute_dims_matmul_relu
// KERNEL-SAME:   tir.schedule = "quantized_matmul"
func.func @main(%x: !x {graph.name = "x"}, %w: tensor<64x32xf32> {graph.name = "w"}) -> !y
    attributes {graph.num_inputs = 1 : i64} {
  %0 = "graph.matmul"(%x, %w) : (!x, tensor<64x32xf32>) -> !y
  %1 = "graph.nn_relu"(%0) : (!y) -> !y
  return %1 : !y
}
