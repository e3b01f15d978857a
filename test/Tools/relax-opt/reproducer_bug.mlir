// A bug in a pass shows its traceback, and leaves a reproducer too.

// RUN: rm -rf %t && mkdir %t
// RUN: env TMPDIR=%t not relax-opt %s --load-passes=%ROOT/test/lib/test_passes.py --pass-pipeline='builtin.module(func.func(canonicalize,test-bug))' 2>&1 | FileCheck %s
// CHECK: Traceback
// CHECK: ZeroDivisionError: a bug while running on 'func.func'
// RUN: ls %t | FileCheck %s --check-prefix=LEFT
// LEFT: relax-mlir-

// RUN: cat %t/relax-mlir-*/reproducer.mlir | FileCheck %s --check-prefix=FILE
// FILE: pipeline: "builtin.module(func.func(canonicalize,test-bug))"

func.func @f() {
  return
}
