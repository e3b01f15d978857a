// RUN: relax-opt %s --load-passes=%ROOT/test/lib/test_passes.py --pass-pipeline='test-rewrite' | FileCheck %s
// RUN: relax-opt %s --load-passes=%ROOT/test/lib/test_passes.py --pass-pipeline='test-rewrite{greedy=false}' | FileCheck %s

// CHECK-LABEL: func.func @matches
// CHECK-SAME:    %[[X:.*]]: i32
// CHECK-DAG:     %[[C:.*]] = arith.constant 2
// CHECK:         %[[P:.*]] = arith.muli %[[X]], %[[C]]
// CHECK:         return %[[P]]
func.func @matches(%x: i32) -> i32 {
  %0 = arith.addi %x, %x : i32
  return %0 : i32
}

// CHECK-LABEL: func.func @negative_operands_differ
// CHECK:         arith.addi
func.func @negative_operands_differ(%x: i32, %y: i32) -> i32 {
  %0 = arith.addi %x, %y : i32
  return %0 : i32
}

// Patterns that never end are stopped; tried once each, they end.
// RUN: not relax-opt %s --load-passes=%ROOT/test/lib/test_passes.py --pass-pipeline='test-rewrite{pattern=swap-operands}' 2>&1 | FileCheck %s --check-prefix=CYCLE
// CYCLE: the patterns swap_operands did not converge in {{[0-9]+}} rewrites
// RUN: relax-opt %s --load-passes=%ROOT/test/lib/test_passes.py --pass-pipeline='test-rewrite{pattern=swap-operands greedy=false}' | FileCheck %s --check-prefix=SWAPPED
// SWAPPED-LABEL: func.func @negative_operands_differ
// SWAPPED-SAME:    %[[X:.*]]: i32, %[[Y:.*]]: i32
// SWAPPED:         arith.addi %[[Y]], %[[X]]
