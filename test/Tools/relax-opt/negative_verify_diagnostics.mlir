// RUN: exits 1 relax-opt %s --split-input-file --verify-diagnostics 2>&1 | FileCheck %s

// CHECK: negative_verify_diagnostics.mlir:{{[0-9]+}}:1: error: expected error "no such thing" was not produced
// expected-error @below {{no such thing}}
func.func @missing() {
  return
}

// -----

// CHECK: error: unexpected error: use of undeclared SSA value name
func.func @unexpected() -> i32 {
  return %x : i32
}

// -----

// One comment stands for one diagnostic, and its text must fit.
// CHECK: error: unexpected error: use of undeclared SSA value name
// CHECK: error: expected error "another text" was not produced
func.func @other_text() -> i32 {
  // expected-error @below {{another text}}
  return %x : i32
}

// -----

// CHECK: error: unexpected error: use of undeclared SSA value name
// CHECK: error: expected warning "use of undeclared SSA value name" was not produced
func.func @other_severity() -> i32 {
  // expected-warning @below {{use of undeclared SSA value name}}
  return %x : i32
}
