// RUN: relax-opt %s --load-passes=%ROOT/test/lib/test_passes.py \
// RUN:   --pass-pipeline='builtin.module(test-tag{count=4 names=a,b verbose target="x y" share=0.25},func.func(canonicalize{max-iterations=3},test-tag,cse),symbol-dce)' \
// RUN:   | FileCheck %s

// Our passes and MLIR's in one text, nested by anchor; every option kind is read and printed.
// CHECK-LABEL: module attributes {test.tag = "test-tag{count=4 names=a,b verbose=true target=\22x y\22 share=0.25}"}
// CHECK:         func.func @twice
// CHECK-SAME:    test.tag = "test-tag"
// CHECK-NOT:     arith.constant
// CHECK:         arith.addi
// CHECK-NOT:     arith.addi
// CHECK:         return
func.func @twice(%x: i32) -> (i32, i32) {
  %unused = arith.constant 1 : i32
  %0 = arith.addi %x, %x : i32
  %1 = arith.addi %x, %x : i32
  return %0, %1 : i32, i32
}

// CHECK-NOT: @unreachable
func.func private @unreachable(%x: i32) -> i32 {
  return %x : i32
}
