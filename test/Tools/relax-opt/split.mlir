// RUN: exits 1 relax-opt %s --split-input-file > %t 2> %t.err
// RUN: FileCheck %s < %t
// RUN: FileCheck %s --check-prefix=ERR < %t.err

// Each part is a module of its own; one that is wrong does not keep the others from being printed.
// CHECK: @first
// CHECK: // -----
// CHECK-NOT: @second
// CHECK: @third
func.func @first() {
  return
}

// -----

// Lines count in the whole file.
// ERR: split.mlir:19:10: error: use of undeclared SSA value name
func.func @second() -> i32 {
  return %x : i32
}

// -----

func.func @third() {
  return
}
