// A failing pass leaves its input, after the passes before it, and the rest of the pipeline.

// RUN: rm -rf %t && mkdir %t
// RUN: env TMPDIR=%t not relax-opt %s --load-passes=%ROOT/test/lib/test_passes.py --pass-pipeline='cse,canonicalize,test-tag{count=3},test-fail,symbol-dce' 2>&1 | FileCheck %s --check-prefix=TELLS
// TELLS:      error: 'arith.addi' op must not be here
// TELLS:      note: reproduce with: relax-opt --run-reproducer {{.*}}reproducer.mlir

// RUN: cat %t/relax-mlir-*/reproducer.mlir | FileCheck %s
// CHECK:      test.tag = "test-tag{count=3}"
// CHECK:      arith.addi
// CHECK-NOT:  arith.addi
// CHECK:      {-#
// CHECK-NEXT:   external_resources: {
// CHECK-NEXT:     mlir_reproducer: {
// CHECK-NEXT:       pipeline: "builtin.module(test-fail,symbol-dce)",
// CHECK-NEXT:       disable_threading: true,
// CHECK-NEXT:       verify_each: true

// RUN: exits 1 relax-opt --load-passes=%ROOT/test/lib/test_passes.py --run-reproducer %t/relax-mlir-*/reproducer.mlir 2>&1 | FileCheck %s --check-prefix=AGAIN
// AGAIN: reproducer.mlir:{{[0-9]+}}:{{[0-9]+}}: error: 'arith.addi' op must not be here

func.func @f(%x: i32) -> (i32, i32) {
  %0 = arith.addi %x, %x {test.fail} : i32
  %1 = arith.addi %x, %x {test.fail} : i32
  return %0, %1 : i32, i32
}
