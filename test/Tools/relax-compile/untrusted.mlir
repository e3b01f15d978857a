// A module of somebody else: operators are compiled, what could open libraries or address memory is not.
// RUN: relax-compile --untrusted %S/pass_pipeline.mlir -o %t.good.so
// RUN: relax-run %t.good.so --input 1,-2 | FileCheck %s --check-prefix=VALUE
// RUN: exits 1 relax-compile --untrusted %s -o %t.so 2>&1 | FileCheck %s
// RUN: exits 1 relax-compile --untrusted %s --emit=llvm 2>&1 | FileCheck %s
// RUN: exits 1 relax-compile --untrusted %s --stats -o %t.so 2>&1 | FileCheck %s
// RUN: relax-opt %s --emit-bytecode -o %t.mlirbc
// RUN: exits 1 relax-compile --untrusted %t.mlirbc -o %t.so 2>&1 | FileCheck %s --check-prefix=BYTECODE
// RUN: exits 2 relax-compile --untrusted %t.good.so -o %t.so 2>&1 | FileCheck %s --check-prefix=OBJECT
// RUN: exits 2 relax-compile --untrusted --pass-pipeline='builtin.module()' %s 2>&1 | FileCheck %s --check-prefix=PIPELINE
// RUN: exits 2 relax-compile --untrusted --load-ops=a.py %S/pass_pipeline.mlir 2>&1 | FileCheck %s --check-prefix=OPS
// RUN: exits 2 relax-compile --untrusted --load-passes=a.py %S/pass_pipeline.mlir 2>&1 | FileCheck %s --check-prefix=PASSES

// VALUE: result 0: 2xi32
// VALUE-NEXT: [-1  2]
// CHECK: untrusted.mlir:{{[0-9]+}}:1: error: 'lib.function' op opens a library; untrusted modules have operators only
// CHECK: untrusted.mlir:{{[0-9]+}}:1: error: 'func.func' op 'scheduled' is a tensor program, which may address any memory
// CHECK: untrusted.mlir:{{[0-9]+}}:1: error: 'func.func' op 'program' is a tensor program, which may address any memory
// CHECK: untrusted.mlir:{{[0-9]+}}:1: error: 'func.func' op 'elsewhere' has no body
// CHECK: untrusted.mlir:{{[0-9]+}}:8: error: 'graph.call_tir' op may address any memory
// CHECK-NOT: error
// BYTECODE: error: 'lib.function' op opens a library
// OBJECT: good.so': neither UTF-8 text nor MLIR bytecode
// PIPELINE: relax-compile: --pass-pipeline may lack checks; it does not go with --untrusted
// OPS: relax-compile: --load-ops runs Python; it does not go with --untrusted
// PASSES: relax-compile: --load-passes runs Python; it does not go with --untrusted

"lib.function"() {sym_name = "evil", c_symbol = "evil", convention = "cblas_sgemm_nt",
                  libraries = ["./evil.so"]} : () -> ()
func.func private @scheduled(%x: memref<4xf32>, %out: memref<4xf32>)
    attributes {tir.prim_func, tir.num_outs = 1 : i64, tir.scheduled} {
  return
}
func.func private @program(%x: tensor<4xf32>, %out: tensor<4xf32>) -> tensor<4xf32> attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  return %out : tensor<4xf32>
}
func.func private @elsewhere(%x: tensor<4xf32>) -> tensor<4xf32>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "graph.call_tir"(%x) {callee = @program, sym_args = #graph.shape<[]>, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
