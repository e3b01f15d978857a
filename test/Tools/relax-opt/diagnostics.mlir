// Diagnostics as JSON, for other tools.

// RUN: not relax-opt %s --relax-infer-shapes --diagnostics=%t.json > %t.said 2>&1
// RUN: FileCheck %s --check-prefix=SILENT --allow-empty < %t.said
// SILENT-NOT: {{.}}
// RUN: FileCheck %s < %t.json
// CHECK:      [{"severity": "error", "message": "'graph.permute_dims' op expects a permutation
// CHECK-SAME: "line": 19, "column": 8, "notes": []}

// RUN: relax-opt %s --cse --diagnostics=%t.none -o /dev/null
// RUN: FileCheck %s --check-prefix=NONE < %t.none
// NONE: {{^}}[]{{$}}

// RUN: exits 2 relax-opt %s --cse --diagnostics=%t.json --verify-diagnostics 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: relax-opt: --diagnostics and --verify-diagnostics exclude each other

!x = tensor<?xf32, #graph.shape<["n"]>>
func.func @main(%x: !x) -> !x {
  %0 = "graph.permute_dims"(%x) {axes = array<i64: 1>} : (!x) -> !x
  return %0 : !x
}
