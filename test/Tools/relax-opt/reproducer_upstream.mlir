// The pass that fails inside a run of MLIR's own passes is found, and alone starts the reproducer.

// RUN: rm -rf %t && mkdir %t
// RUN: env TMPDIR=%t not relax-opt %s --pass-pipeline='canonicalize,cse,one-shot-bufferize,canonicalize' 2>&1 | FileCheck %s --check-prefix=TELLS
// TELLS:     error: op was not bufferized

// RUN: cat %t/relax-mlir-*/reproducer.mlir | FileCheck %s
// CHECK: graph.add
// CHECK: pipeline: "builtin.module(one-shot-bufferize,canonicalize)"

func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = arith.constant 0 : index
  %0 = "graph.add"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
