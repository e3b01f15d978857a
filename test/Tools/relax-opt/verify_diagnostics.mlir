// RUN: relax-opt %s --split-input-file --verify-diagnostics --load-passes=%ROOT/test/lib/test_passes.py --pass-pipeline='test-fail'

// expected-note @+1 {{in this}}
func.func @below_and_note(%x: i32) -> i32 {
  // expected-error @below {{op must not be here}}
  %0 = arith.addi %x, %x {test.fail} : i32
  return %0 : i32
}

// -----

func.func @above() -> i32 {
  return %x : i32
  // expected-error @above {{use of undeclared SSA value name}}
}

// -----

func.func @same_line() -> i32 {
  return %x : i32 // expected-error {{use of undeclared}}
}

// -----

func.func @offsets_and_patterns() -> i32 {
  // expected-error-re @+1 {{use of {{[a-z]+}} SSA value name}}
  return %x : i32
}
