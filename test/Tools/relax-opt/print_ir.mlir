// RUN: relax-opt %s --load-passes=%ROOT/test/lib/test_passes.py --pass-pipeline='cse,func.func(test-tag,canonicalize)' --mlir-print-ir-before-all --mlir-print-ir-after-all -o /dev/null 2>&1 | FileCheck %s
// CHECK:      // -----// IR Dump Before cse //----- //
// CHECK-NEXT: module {
// CHECK:      // -----// IR Dump After cse //----- //
// CHECK-NEXT: module {
// CHECK:      // -----// IR Dump Before test-tag ('func.func' operation: @f) //----- //
// CHECK-NEXT: func.func @f() {
// CHECK:      // -----// IR Dump After test-tag ('func.func' operation: @f) //----- //
// CHECK-NEXT: func.func @f() attributes {test.tag = "test-tag"} {
// CHECK:      // -----// IR Dump Before canonicalize ('func.func' operation: @f) //----- //
// CHECK:      // -----// IR Dump After canonicalize ('func.func' operation: @f) //----- //

// By name, only around changes, and with the whole module around.
// RUN: relax-opt %s --load-passes=%ROOT/test/lib/test_passes.py --pass-pipeline='cse,func.func(test-tag,canonicalize)' --mlir-print-ir-after=test-tag --mlir-print-ir-module-scope -o /dev/null 2>&1 | FileCheck %s --check-prefix=NAMED
// NAMED-NOT:  Before
// NAMED:      // -----// IR Dump After test-tag ('func.func' operation: @f) //----- //
// NAMED-NEXT: module {
// NAMED-NOT:  IR Dump

// RUN: relax-opt %s --load-passes=%ROOT/test/lib/test_passes.py --pass-pipeline='cse,func.func(test-tag,canonicalize)' --mlir-print-ir-after-change -o /dev/null 2>&1 | FileCheck %s --check-prefix=CHANGE
// CHANGE-NOT: cse
// CHANGE:     // -----// IR Dump After test-tag
// CHANGE-NOT: IR Dump

func.func @f() {
  return
}
