// RUN: rm -rf %t && mkdir %t
// RUN: relax-opt %s -o %t/out.mlir > %t.stdout && test ! -s %t.stdout
// RUN: FileCheck %s < %t/out.mlir
// CHECK: func.func @f

// A failure leaves the file that was there, and nothing else.
// RUN: not relax-opt %s --load-passes=%ROOT/test/lib/test_passes.py --pass-pipeline=test-fail -o %t/out.mlir
// RUN: FileCheck %s < %t/out.mlir
// RUN: ls %t | FileCheck %s --check-prefix=FILES
// FILES:     out.mlir
// FILES-NOT: {{.}}

// Bytecode goes out and comes in.
// RUN: relax-opt %s --emit-bytecode -o %t/out.mlirbc && relax-opt %t/out.mlirbc | FileCheck %s

// RUN: relax-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// GENERIC: "func.func"()

// RUN: relax-opt %s --mlir-print-debuginfo | FileCheck %s --check-prefix=DEBUG
// DEBUG: loc(

func.func @f() attributes {test.fail} {
  return
}
