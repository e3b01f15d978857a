// RUN: relax-opt %s --pretty | FileCheck %s --check-prefix=BEFORE
// RUN: relax-opt %s --pass-pipeline='relax-dispatch-library{libraries=openblas},symbol-dce' --pretty | FileCheck %s --check-prefix=PARTIAL
// RUN: relax-opt %s --pass-pipeline='relax-dispatch-library{libraries=openblas},relax-legalize-ops,relax-annotate-pattern' --check-equivalent-after-each --pretty | FileCheck %s --check-prefix=FEEDBACK
// RUN: relax-opt %s --pass-pipeline='relax-dispatch-library{libraries=openblas},relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,symbol-dce' --check-equivalent-after-each --pretty | FileCheck %s --check-prefix=TRANSFORM

// Three kinds of optimisation across levels (paper Figure 6): some operators are lowered, here to a
// library, and others stay; what is found out about loops is told to the graph; graph and loops
// are transformed together.

!x = tensor<?x128xf32, #graph.shape<["n", 128]>>
!y = tensor<?x256xf32, #graph.shape<["n", 256]>>

// BEFORE-LABEL: func @main(
// BEFORE-NEXT:    %0 = graph.matmul(%arg0, %arg1)
// BEFORE-NEXT:    %1 = graph.add(%0, %arg2)
// BEFORE-NEXT:    %2 = graph.nn_relu(%1)

// PARTIAL-LABEL: func @main(
// PARTIAL-NEXT:    %0 = graph.call_dps_library @openblas.sgemm
// PARTIAL-NEXT:    %1 = graph.add(%0, %arg2)
// PARTIAL-NEXT:    %2 = graph.nn_relu(%1)

// FEEDBACK-DAG: func private @add({{.*}}tir.pattern=#tir.pattern<"element_wise">
// FEEDBACK-DAG: func private @relu({{.*}}tir.pattern=#tir.pattern<"element_wise">

// TRANSFORM-LABEL: func @main(
// TRANSFORM-NEXT:    %0 = graph.call_dps_library @openblas.sgemm
// TRANSFORM-NEXT:    %1 = graph.call_tir @fused_add_relu(%0, %arg2)
// TRANSFORM-NEXT:    return %1
// TRANSFORM:       func private @fused_add_relu(
func.func @main(%x: !x, %w: tensor<128x256xf32>, %b: tensor<256xf32>) -> !y {
  %0 = "graph.matmul"(%x, %w) : (!x, tensor<128x256xf32>) -> !y
  %1 = "graph.add"(%0, %b) : (!y, tensor<256xf32>) -> !y
  %2 = "graph.nn_relu"(%1) : (!y) -> !y
  return %2 : !y
}
