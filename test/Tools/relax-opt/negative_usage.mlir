// Wrong flags and files: one line, exit status 2, no traceback.

// RUN: exits 2 relax-opt %t.does-not-exist 2>&1 | FileCheck %s --check-prefix=INPUT
// INPUT: relax-opt: cannot read '{{.*}}.does-not-exist': no such file or directory
// INPUT-NOT: Traceback

// RUN: exits 2 relax-opt %S 2>&1 | FileCheck %s --check-prefix=FOLDER
// FOLDER: relax-opt: cannot read '{{.*}}': is a directory

// RUN: exits 2 relax-opt %s -o %t.nowhere/x.mlir 2>&1 | FileCheck %s --check-prefix=OUTPUT
// OUTPUT: relax-opt: cannot write '{{.*}}/x.mlir': no such file or directory

// RUN: exits 2 relax-opt %s --no-such-flag 2>&1 | FileCheck %s --check-prefix=FLAG
// FLAG: relax-opt: unknown flag '--no-such-flag'

// RUN: exits 2 relax-opt %s --canonicalise 2>&1 | FileCheck %s --check-prefix=NEAR
// NEAR: relax-opt: unknown flag '--canonicalise'; did you mean 'canonicalize'?

// RUN: exits 2 relax-opt %s -x 2>&1 | FileCheck %s --check-prefix=SHORT
// SHORT: relax-opt: error: unrecognized arguments: -x

// RUN: exits 2 relax-opt %s --cse --pass-pipeline=cse 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: relax-opt: --cse and --pass-pipeline exclude each other

// RUN: exits 2 relax-opt %s --verify-each=perhaps 2>&1 | FileCheck %s --check-prefix=BOOLEAN
// BOOLEAN: relax-opt: error: argument --verify-each: expected true or false, but got 'perhaps'

// RUN: exits 2 relax-opt %s --load-passes=%t.py 2>&1 | FileCheck %s --check-prefix=LOAD
// LOAD: relax-opt: cannot load '{{.*}}': no such file

// RUN: echo "x = 1" > %t.empty.py
// RUN: exits 2 relax-opt %s --load-passes=%t.empty.py 2>&1 | FileCheck %s --check-prefix=NOPASS
// NOPASS: relax-opt: cannot load passes from '{{.*}}': no class in it is a Pass

// RUN: exits 2 relax-opt %s --run-reproducer 2>&1 | FileCheck %s --check-prefix=REPRODUCER
// REPRODUCER: relax-opt: the input has no 'mlir_reproducer' section, so it is not a reproducer

// RUN: exits 2 relax-opt %s --run-reproducer --pass-pipeline=cse 2>&1 | FileCheck %s --check-prefix=BOTH
// BOTH: relax-opt: --run-reproducer takes the pipeline from the input; give no other

// RUN: %PYTHON -c "open(r'%t.bin', 'wb').write(bytes([255, 254, 0, 1]))"
// RUN: exits 2 relax-opt %t.bin 2>&1 | FileCheck %s --check-prefix=BINARY
// BINARY: relax-opt: cannot read '{{.*}}.bin': neither UTF-8 text nor MLIR bytecode

// RUN: exits 2 relax-opt %s --emit-bytecode --split-input-file 2>&1 | FileCheck %s --check-prefix=BYTECODE
// BYTECODE: relax-opt: --emit-bytecode writes one module; drop --split-input-file

// RUN: exits 2 relax-opt %s --dataflow-svg --pretty 2>&1 | FileCheck %s --check-prefix=FORMS
// FORMS: relax-opt: --dataflow-svg and --pretty exclude each other

// RUN: exits 2 relax-opt %s --dataflow-svg 2>&1 | FileCheck %s --check-prefix=PICTURE
// PICTURE: relax-opt: no function runs a dataflow node, so that there is nothing to draw

module {}
