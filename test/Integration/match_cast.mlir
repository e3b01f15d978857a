// RUN: relax-compile %s -o %t.so
// RUN: relax-run %t.so --input ones:3xf32 --input 2,3,4 | FileCheck %s
// RUN: exits 1 relax-run %t.so --input ones:3xf32 --input ones:4xf32 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: relax-run --interpret %s --input ones:3xf32 --input 2,3,4 | FileCheck %s
// RUN: exits 1 relax-run --interpret %s --input ones:3xf32 --input ones:4xf32 2>&1 | FileCheck %s --check-prefix=WRONG

// Two tensors of unknown length: a cast names the first length and asserts it of the second.

!any = tensor<?xf32>
!k   = tensor<?xf32, #graph.shape<["k"]>>

func.func @main(%x: !any {graph.name = "x"}, %y: !any {graph.name = "y"}) -> !k {
  %0 = "graph.match_cast"(%x) : (!any) -> !k
  %1 = "graph.match_cast"(%y) : (!any) -> !k
  %2 = "graph.multiply"(%0, %1) : (!k, !k) -> !k
  return %2 : !k
}

// CHECK:      result 0: 3xf32
// CHECK-NEXT: [2. 3. 4.]

// WRONG: relax-run: match_cast: dim 0 is 4, but 'k' is 3
