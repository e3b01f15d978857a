// A pipeline of one's own, with a pass of a file in it, is all that runs.
// RUN: relax-compile %s --emit=mlir-test-tag --load-passes=%ROOT/test/lib/test_passes.py --pass-pipeline='relax-legalize-ops,test-tag,cse' | FileCheck %s
// RUN: relax-compile %s -o %t.so --pass-pipeline='relax-name-dims,relax-legalize-ops,relax-schedule,relax-lower-calls,relax-plan-memory,relax-to-host'
// RUN: relax-run %t.so --input 1,-2 | FileCheck %s --check-prefix=VALUE
// RUN: exits 1 relax-compile %s -o %t.so --pass-pipeline=relax-legalize-ops 2>&1 | FileCheck %s --check-prefix=TENSORS
// RUN: exits 2 relax-compile %s -o %t.so --pass-pipeline=relax-legalise-ops 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: exits 2 relax-compile %s -o %t.so --target=x86-64 --pass-pipeline='relax-schedule{target=x86-64-v3}' 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: exits 2 relax-compile %s -o %t.so --quantize=q8_32 --pass-pipeline=cse 2>&1 | FileCheck %s --check-prefix=QUANTIZE
// RUN: exits 2 relax-compile %s --print-pipeline --pass-pipeline=cse 2>&1 | FileCheck %s --check-prefix=PRINT
// RUN: exits 2 relax-run %t.so --load-ops=none.py 2>&1 | FileCheck %s --check-prefix=OPS

func.func @main(%x: tensor<?xi32, #graph.shape<["n"]>> {graph.name = "x"}) -> tensor<?xi32, #graph.shape<["n"]>> {
  %0 = "graph.negative"(%x) : (tensor<?xi32, #graph.shape<["n"]>>) -> tensor<?xi32, #graph.shape<["n"]>>
  return %0 : tensor<?xi32, #graph.shape<["n"]>>
}

// CHECK: test.tag
// CHECK: graph.call_tir
// VALUE: result 0: 2xi32
// VALUE-NEXT: [-1  2]
// TENSORS: pass_pipeline.mlir:{{[0-9]+}}:{{[0-9]+}}: error: 'func.func' op has no lowering to LLVM
// NAME: relax-compile: unknown pass 'relax-legalise-ops'; did you mean 'relax-legalize-ops'
// TARGET: relax-compile: the pass 'relax-schedule' is for x86-64-v3, but the module is compiled for x86-64; write relax-schedule{target=x86-64}
// RUN: exits 2 relax-compile %s -o %t.so --libraries=openblas --pass-pipeline=cse 2>&1 | FileCheck %s --check-prefix=LIBRARIES
// LIBRARIES: relax-compile: --pass-pipeline names all passes; it does not go with --libraries
// QUANTIZE: relax-compile: --pass-pipeline names all passes; it does not go with --quantize
// PRINT: relax-compile: --pass-pipeline names all passes; it does not go with --print-pipeline
// OPS: relax-run: --load-ops is for --interpret; a compiled module needs no operators
