// RUN: relax-opt %s --load-passes=%ROOT/test/lib/test_passes.py --pass-pipeline='cse,func.func(test-tag,canonicalize),cse' --mlir-timing -o /dev/null 2>&1 | FileCheck %s

// Our passes and MLIR's stand in one table, nested as the pipeline is.
// CHECK:      Total Execution Time: {{[0-9.]+}} seconds
// CHECK:      ----Wall Time----  ----Name----
// CHECK:      %)  (parse)
// CHECK-NEXT: %)  cse
// CHECK-NEXT: %)  'func.func' pipeline
// CHECK-NEXT: %)    test-tag
// CHECK-NEXT: %)      (verify)
// CHECK-NEXT: %)    canonicalize
// CHECK-NEXT: %)  cse
// CHECK-NEXT: %)  (print)
// CHECK-NEXT: %)  Rest
// CHECK-NEXT: (100.0%)  Total

func.func @f() {
  return
}

func.func @g() {
  return
}
