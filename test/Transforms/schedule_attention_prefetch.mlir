// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-schedule{target=x86-64-v4+avx512bf16}' | FileCheck %s
// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-schedule{target=x86-64-v3}' | FileCheck %s --check-prefix=NARROW

!q = tensor<?x28x128xbf16, #graph.shape<["n", 28, 128]>>
!c = tensor<4x?x128xbf16, #graph.shape<[4, "c", 128]>>

func.func @main(%q: !q, %k: !c, %v: !c, %p: !graph.shape_value<["m"]>) -> !q {
  %0 = "graph.nn_attention"(%q, %k, %v) {position = #graph.shape<["m"]>, scale = 0.125 : f64, causal = true} : (!q, !c, !c) -> !q
  return %0 : !q
}

// Seven heads multiply each key: keys and values are prefetched 32 rows of the cache ahead.
// CHECK-LABEL: func.func private @attention(
// CHECK:         scf.if
// CHECK:           %[[LATER:.*]] = arith.addi %{{.*}}, %c4096
// CHECK-NEXT:      %[[AT:.*]] = arith.minui %[[LATER]], %{{.*}}
// CHECK-NEXT:      memref.prefetch %{{.*}}[%[[AT]]], read, locality<2>, data : memref<?xbf16>
// CHECK:           llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// CHECK:           memref.prefetch {{.*}}, read, locality<2>, data : memref<?xbf16>
// CHECK:         } else {
// CHECK-NOT:       memref.prefetch

// NARROW-LABEL: func.func private @attention(
// NARROW-NOT:     memref.prefetch
