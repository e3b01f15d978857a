// RUN: relax-opt --list-passes | FileCheck %s --check-prefix=PASSES
// PASSES: Passes of relax-mlir:
// PASSES-NEXT: relax-{{[a-z-]+ +[A-Z]}}
// PASSES: relax-fuse-ops{{ +[A-Z]}}
// PASSES-NEXT: {max-size: int = 256}
// PASSES: Pipelines may contain all passes of MLIR too:
// PASSES: canonicalize, 
// PASSES: one-shot-bufferize

// RUN: relax-opt --list-passes --load-passes=%ROOT/test/lib/test_passes.py | FileCheck %s --check-prefix=LOADED
// LOADED: test-tag {{.*}}test_passes.py

// RUN: relax-opt --show-dialects | FileCheck %s --check-prefix=DIALECTS
// DIALECTS: Available dialects: {{.*}}arith,{{.*}},graph,{{.*}}tir,

// RUN: relax-opt --irdl | FileCheck %s --check-prefix=IRDL
// IRDL: irdl.dialect @graph
// IRDL: irdl.operation @matmul
// IRDL: irdl.dialect @tir

// RUN: rm -rf %t && relax-opt --export-irdl %t/irdl && relax-opt %t/irdl/graph.mlir | FileCheck %s --check-prefix=EXPORT
// EXPORT: irdl.dialect @graph

// RUN: relax-opt --help | FileCheck %s --check-prefix=HELP
// HELP: --pass-pipeline
// HELP: A pass is a flag too: --relax-fuse-ops
// HELP: Exit status: 0 success, 1 the IR is wrong or a pass failed, 2 wrong usage.

// The command line is read before anything slow is imported.
// RUN: %PYTHON -c "import sys; from relax_mlir.tools.relax_opt import arguments; arguments(); sys.exit(any(m in sys.modules for m in ('numpy', 'torch_mlir')))"
