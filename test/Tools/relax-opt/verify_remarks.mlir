// RUN: relax-opt %s --verify-diagnostics --pass-pipeline=transform-interpreter
// RUN: relax-opt %s --pass-pipeline=transform-interpreter -o /dev/null 2>&1 | FileCheck %s

// Remarks are shown, expected like errors, and are no failure.
// CHECK: verify_remarks.mlir:{{[0-9]+}}:3: remark: seen
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %f = transform.structured.match ops{["func.func"]} in %root : (!transform.any_op) -> !transform.any_op
    transform.debug.emit_remark_at %f, "seen" : !transform.any_op
    transform.yield
  }
  // expected-remark @below {{seen}}
  func.func @f() {
    return
  }
}
