// RUN: relax-opt %s --pass-pipeline='cse' | FileCheck %s
// RUN: relax-opt %s --pass-pipeline=' builtin.module( cse ) ' | FileCheck %s
// RUN: relax-opt --pass-pipeline='any(cse)' < %s | FileCheck %s
// RUN: relax-opt --symbol-dce %s --cse | FileCheck %s
// RUN: relax-opt %s --canonicalize='max-iterations=3 top-down=false' --cse | FileCheck %s

// A list without an anchor is for the module; standard input is the default input.
// CHECK:     arith.addi
// CHECK-NOT: arith.addi
func.func @twice(%x: i32) -> (i32, i32) {
  %0 = arith.addi %x, %x : i32
  %1 = arith.addi %x, %x : i32
  return %0, %1 : i32, i32
}
