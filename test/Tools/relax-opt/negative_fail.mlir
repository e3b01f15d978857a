// A failing pass reports at the op, with notes; a pass may also emit several errors.

// RUN: exits 1 relax-opt %s --load-passes=%ROOT/test/lib/test_passes.py --pass-pipeline='cse,func.func(test-fail)' 2>&1 | FileCheck %s
// CHECK:      negative_fail.mlir:[[LINE:[0-9]+]]:8: error: 'arith.addi' op must not be here
// CHECK-NEXT:   %0 = arith.addi
// CHECK-NEXT:        ^
// CHECK-NEXT: negative_fail.mlir:{{[0-9]+}}:1: note: in this
// CHECK-NEXT: func.func @one
// CHECK-NOT:  Traceback

// RUN: exits 1 relax-opt %s --load-passes=%ROOT/test/lib/test_passes.py --pass-pipeline='test-emit-errors' 2>&1 | FileCheck %s --check-prefix=MANY
// MANY: :8: error: this one is wrong
// MANY: :8: error: this one is wrong

func.func @one(%x: i32) -> i32 {
  %0 = arith.addi %x, %x {test.fail} : i32
  %1 = arith.muli %0, %x {test.fail} : i32
  return %1 : i32
}
