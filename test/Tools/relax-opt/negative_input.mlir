// RUN: exits 1 relax-opt %s 2>&1 | FileCheck %s

// Wrong IR: file, line and column, the line itself with a caret, exit status 1.
// CHECK:      negative_input.mlir:{{[0-9]+}}:10: error: use of undeclared SSA value name
// CHECK-NEXT:   return %y : i32
// CHECK-NEXT:          ^
// CHECK-NOT:  Traceback
func.func @undeclared(%x: i32) -> i32 {
  return %y : i32
}
