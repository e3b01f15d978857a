// Armv7 has no maximum of f64: it is compares and bits there. f32 has one.
//
// RUN: relax-compile %s --target=armv7 --emit=llvm | FileCheck %s
// RUN: relax-compile %s --target=riscv64 --emit=llvm | FileCheck %s --check-prefix=RISCV

!x = tensor<?xf64, #graph.shape<["n"]>>
!y = tensor<?xf32, #graph.shape<["n"]>>

// CHECK-NOT: llvm.maximum.{{.*}}f64
// CHECK: fcmp ogt <2 x double> %[[X:.*]], %[[Y:.*]]
// CHECK: fcmp oeq <2 x double> %[[X]], %[[Y]]
// CHECK: fcmp uno <2 x double> %[[X]], %[[Y]]
// CHECK-NEXT: fadd <2 x double> %[[X]], %[[Y]]
// CHECK-NOT: llvm.maximum.{{.*}}f64
// RISCV: llvm.maximum.{{.*}}f64
func.func @double(%x: !x, %y: !x) -> !x {
  %0 = "graph.maximum"(%x, %y) : (!x, !x) -> !x
  return %0 : !x
}

// CHECK: call <4 x float> @llvm.maximum.v4f32
func.func @single(%x: !y, %y: !y) -> !y {
  %0 = "graph.maximum"(%x, %y) : (!y, !y) -> !y
  return %0 : !y
}
