// RUN: relax-opt %s --relax-infer-shapes --pretty | FileCheck %s
// RUN: relax-compile %s -o %t.so
// RUN: relax-run %t.so --input ones:3x2x2xf32 | FileCheck %s --check-prefix=ONES
// RUN: relax-run %t.so --input ones:0x2x2xf32 | FileCheck %s --check-prefix=NONE
// RUN: relax-run --interpret %s --input ones:3x2x2xf32 | FileCheck %s --check-prefix=ONES

// Only the data tell how many distinct elements there are. `graph.unique` has an unknown dim, which
// a cast names; from there on it is a dim as any other (paper Figure 4).

#n  = #graph.shape<["n", 4]>
!m  = tensor<?xf32, #graph.shape<["m"]>>
!in = tensor<?x2x2xf32, #graph.shape<["n", 2, 2]>>

func.func @main(%x: !in {graph.name = "x"}) -> !m {
  %0 = "graph.reshape"(%x) {shape = #graph.shape<["n", 4]>} : (!in) -> tensor<?x4xf32>
  %1 = "graph.reshape"(%0) {shape = #graph.shape<["4*n"]>} : (tensor<?x4xf32>) -> tensor<?xf32>
  %2:4 = "graph.unique"(%1) {axes = array<i64>, sorted = true}
      : (tensor<?xf32>) -> (tensor<?xf32>, tensor<?xi64>, tensor<?xi64>, tensor<?xi64>)
  %3 = "graph.match_cast"(%2#0) : (tensor<?xf32>) -> !m
  %4 = "graph.exp"(%3) : (!m) -> !m
  return %4 : !m
}
// CHECK-LABEL: func @main(%arg0: tensor<n x 2 x 2 x f32>)
// CHECK-NEXT:    %0 = graph.reshape(%arg0) {{.*}} : tensor<n x 4 x f32>
// CHECK-NEXT:    %1 = graph.reshape(%0) {{.*}} : tensor<4*n x f32>
// CHECK-NEXT:    %2, %3, %4, %5 = graph.unique(%1) {{.*}} : tensor<? x f32>, tensor<? x i64>, tensor<4*n x i64>, tensor<? x i64>
// CHECK-NEXT:    %6 = graph.match_cast(%2) : tensor<m x f32>
// CHECK-NEXT:    %7 = graph.exp(%6) : tensor<m x f32>

// ONES:      result 0: 1xf32
// ONES-NEXT: [2.71
// NONE:      result 0: 0xf32
