// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-build-kernels{target=x86-64-v3},relax-lower-calls' | FileCheck %s
// RUN: relax-compile %s -O1 --print-pipeline --target=x86-64-v3 | FileCheck %s --check-prefix=RUNS
// RUN: relax-compile %s -O1 --print-pipeline --emit=llvm | FileCheck %s --check-prefix=SHOWS

!x = tensor<?xf32, #graph.shape<["n"]>>

// Kernels are those of relax-schedule; only declarations are left of them.
// CHECK-LABEL: func.func @main
// CHECK:         "graph.call_dps"{{.*}}callee = @negative
// CHECK:       func.func private @negative(memref<?xf32>, memref<?xf32>)
// CHECK-SAME:    tir.flops = "a1d0"
// CHECK-SAME:    tir.schedule = "elementwise", tir.scheduled
// CHECK-NOT:   scf.parallel
func.func @main(%x: !x) -> !x {
  %0 = "graph.negative"(%x) : (!x) -> !x
  return %0 : !x
}

// RUNS:      symbol-dce
// RUNS-NEXT: relax-build-kernels{target=x86-64-v3}
// RUNS-SAME: tensor programs are scheduled and compiled
// RUNS-NEXT: relax-lift-workspace{kernels=false}
// RUNS-NEXT: relax-lower-calls
// SHOWS:      symbol-dce
// SHOWS-NEXT: relax-schedule{target=native}
