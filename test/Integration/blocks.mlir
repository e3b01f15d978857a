// RUN: relax-compile %s -o %t.so
// RUN: relax-run %t.so --list | FileCheck %s --check-prefix=LIST
// RUN: relax-run %t.so --input ones:32xf32 | FileCheck %s
// RUN: exits 1 relax-run %t.so --input ones:31xf32 2>&1 | FileCheck %s --check-prefix=FACT
// RUN: relax-run --interpret %s --list | FileCheck %s --check-prefix=LIST
// RUN: relax-run --interpret %s --input ones:32xf32 | FileCheck %s

// A fact about a symbol makes a reshape by division exact, and is checked at every call.

!x = tensor<?xf32, #graph.shape<["n"]>>
!b = tensor<?x16xf32, #graph.shape<["n floordiv 16", 16]>>
!s = tensor<?x1xf32, #graph.shape<["n floordiv 16", 1]>>

func.func @main(%x: !x {graph.name = "x"}) -> (!b, !s) attributes {graph.facts = ["n mod 16 == 0", "n <= 256"]} {
  %0 = "graph.reshape"(%x) {shape = #graph.shape<["n floordiv 16", 16]>} : (!x) -> !b
  %1 = "graph.abs"(%0) : (!b) -> !b
  %2 = "graph.max"(%1) {axes = array<i64: 1>, keepdims = true} : (!b) -> !s
  %3 = "graph.divide"(%0, %2) : (!b, !s) -> !b
  return %3, %2 : !b, !s
}

// LIST: main(x: f32[n]) -> (f32[n floordiv 16, 16], f32[n floordiv 16, 1])

// CHECK:      result 0: 2x16xf32
// CHECK-NEXT: {{\[\[1. 1. 1. .*1.\]}}
// CHECK:      result 1: 2x1xf32
// CHECK-NEXT: {{\[\[1.\]}}
// CHECK-NEXT: {{ \[1.\]\]}}

// FACT: relax-run: 'main' requires n mod 16 == 0, but n = 31 from argument 0 'x', dim 0
