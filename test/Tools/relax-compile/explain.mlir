// What became of a program: symbols, facts, dims that no expression gives, memory, kernels, refusals.
// RUN: relax-compile %s --explain --target=x86-64-v3 | FileCheck %s
// RUN: relax-compile %s --explain=json --target=x86-64-v3 | FileCheck %s --check-prefix=JSON
// RUN: relax-compile %s --explain -O0 --target=x86-64-v3 | FileCheck %s --check-prefix=SEPARATE
// RUN: exits 2 relax-compile %s --explain --emit=llvm 2>&1 | FileCheck %s --check-prefix=EMIT
// RUN: exits 2 relax-compile %s --explain --pass-pipeline=cse 2>&1 | FileCheck %s --check-prefix=PASSES
// RUN: exits 2 relax-compile %s --explain -O7 2>&1 | FileCheck %s --check-prefix=LEVEL

// CHECK-LABEL: @main
// CHECK:      arguments
// CHECK-NEXT:   x tensor<n x 3 x f32>
// CHECK:      results
// CHECK-NEXT:   tensor<2 x nonzero x i64>
// CHECK:      symbols
// CHECK-NEXT:   n dim 0 of 'x'
// CHECK-NEXT:   m dim 0 of 'y', which is 2*m
// CHECK-NEXT:   nonzero count that graph.nonzero finds
// CHECK-NEXT: facts, checked at each call
// CHECK-NEXT:   n <= 64 given
// CHECK-NEXT:   n == 2*m graph.add {{.*}}explain.mlir:[[# @LINE + 31]]:8
// CHECK-NEXT: checks where symbols are bound
// CHECK-NEXT:   nonzero <= 8*n graph.nonzero {{.*}}explain.mlir
// CHECK-NEXT: dims that no expression gives
// CHECK-NEXT:   nonzero count that graph.nonzero finds {{.*}}explain.mlir:[[# @LINE + 30]]:8
// CHECK-NEXT: bytes
// CHECK-NEXT:   arguments 24*m + 12*n + 96
// CHECK-NEXT:   results 16*nonzero
// CHECK-NEXT:   temporaries 64*((n + 1) floordiv 2) + 64*max((3*n + 15) floordiv 16, 1)
// CHECK:      kernels
// CHECK:        1x fused_matmul_relu matmul matmul, relu
// CHECK:        1x first_nonzero scalar first_nonzero
// CHECK:      refused
// CHECK-NEXT:   relax-fuse-ops 1x 'add' is not fused with 'matmul': a matmul reads operands
// CHECK:        relax-schedule 1x kernel 'first_nonzero': 'scf.for' op has no vector form; scheduled as scalar

// JSON: "symbol": "nonzero"
// JSON: "temporaries": "64*((n + 1) floordiv 2) + 64*max((3*n + 15) floordiv 16, 1)"

// SEPARATE: 1x matmul matmul matmul
// SEPARATE: 1x relu elementwise relu

// EMIT: relax-compile: --explain is about the whole default pipeline; it excludes --emit
// PASSES: relax-compile: --explain is about the whole default pipeline; it excludes --pass-pipeline
// LEVEL: relax-compile: unknown optimisation level 7; levels are 0, 1, 2, 3

!x = tensor<?x3xf32, #graph.shape<["n", 3]>>
!y = tensor<?x3xf32, #graph.shape<["2*m", 3]>>
!h = tensor<?x8xf32, #graph.shape<["n", 8]>>
func.func @main(%x: !x {graph.name = "x"}, %y: !y {graph.name = "y"}, %w: tensor<3x8xf32>) -> tensor<2x?xi64>
    attributes {graph.facts = ["n <= 64"]} {
  %0 = "graph.add"(%x, %y) : (!x, !y) -> !x
  %1 = "graph.matmul"(%0, %w) : (!x, tensor<3x8xf32>) -> !h
  %2 = "graph.nn_relu"(%1) : (!h) -> !h
  %3 = "graph.nonzero"(%2) : (!h) -> tensor<2x?xi64>
  return %3 : tensor<2x?xi64>
}
