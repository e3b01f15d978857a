// The verifier runs after each pass and says which one broke the IR; it can be turned off.

// RUN: exits 1 relax-opt %s --load-passes=%ROOT/test/lib/test_passes.py --pass-pipeline='cse,test-break' 2>&1 | FileCheck %s
// CHECK: error: 'func.return' op has 0 operands, but enclosing function (@f) returns 1
// CHECK: note: found by the verifier after the pass 'test-break'

// RUN: relax-opt %s --load-passes=%ROOT/test/lib/test_passes.py --pass-pipeline='cse,test-break' --verify-each=false | FileCheck %s --check-prefix=OFF
// OFF: return{{$}}

func.func @f(%x: i32) -> i32 {
  return %x : i32
}
