// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,relax-pack-weights{target=znver3},symbol-dce,relax-schedule{target=znver3}' | FileCheck %s
// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,relax-pack-weights{target=znver5},symbol-dce,relax-schedule{target=znver5}' | FileCheck %s --check-prefix=ZEN5

// Where several streams from memory are faster, one row reads four panels in turn, a quarter of the
// panels apart. The ninth panel is left over: it is read in four streams along k.
// CHECK-LABEL: func.func private @fused_permute_dims_matmul_packed(
// CHECK-SAME:    memref<9x64x16xf32>
// CHECK:         scf.if
// CHECK:           scf.parallel (%[[TASK:.*]]) = (%c0) to (%c3)
// CHECK:             %[[I:.*]] = arith.remui %[[TASK]], %c3
// CHECK:             arith.cmpi ult, %[[I]], %c2
// CHECK:             scf.if
// CHECK-DAG:           %[[P1:.*]] = arith.addi %[[I]], %c2
// CHECK-DAG:           %[[P2:.*]] = arith.addi %[[I]], %c4
// CHECK-DAG:           %[[P3:.*]] = arith.addi %[[I]], %c6
// CHECK-DAG:           %[[AT0:.*]] = arith.muli %[[I]], %c1024
// CHECK-DAG:           %[[AT1:.*]] = arith.muli %[[P1]], %c1024
// CHECK-DAG:           %[[AT2:.*]] = arith.muli %[[P2]], %c1024
// CHECK-DAG:           %[[AT3:.*]] = arith.muli %[[P3]], %c1024
// CHECK:               %{{.*}}:8 = scf.for %[[K:.*]] = %c0 to %c64 step %c1 iter_args
// CHECK-NOT:             memref.prefetch
// CHECK:                 arith.addi %[[AT0]]
// CHECK:                 memref.load %{{.*}}[%[[K]]] : memref<?xf32>
// CHECK-COUNT-2:         vector.fma
// CHECK:                 arith.addi %[[AT1]]
// CHECK-COUNT-2:         vector.fma
// CHECK:                 arith.addi %[[AT2]]
// CHECK-COUNT-2:         vector.fma
// CHECK:                 arith.addi %[[AT3]]
// CHECK-COUNT-2:         vector.fma
// CHECK-NEXT:            scf.yield
// CHECK:             } else {
// CHECK:               arith.addi %[[I]], %c6
// CHECK:               %{{.*}}:8 = scf.for %[[K:.*]] = %c0 to %c16 step %c1 iter_args
// CHECK-COUNT-2:         vector.fma
// CHECK:                 arith.addi %[[K]], %c16
// CHECK-COUNT-2:         vector.fma
// CHECK:                 arith.addi %[[K]], %c32
// CHECK-COUNT-2:         vector.fma
// CHECK:                 arith.addi %[[K]], %c48
// CHECK-COUNT-2:         vector.fma
// CHECK-NOT:             vector.fma
// CHECK:                 scf.yield

// Two panels, of twice the width, are enough for Zen 5, which reads a single one in order.
// ZEN5-LABEL: func.func private @fused_permute_dims_matmul_packed(
// ZEN5-SAME:    memref<5x64x32xf32>
// ZEN5:         scf.parallel (%[[TASK:.*]]) = (%c0) to (%c3)
// ZEN5:           %[[I:.*]] = arith.remui %[[TASK]], %c3
// ZEN5:           arith.cmpi ult, %[[I]], %c2
// ZEN5:           scf.if
// ZEN5-DAG:         %[[P1:.*]] = arith.addi %[[I]], %c2
// ZEN5-DAG:         %[[AT0:.*]] = arith.muli %[[I]], %c2048
// ZEN5-DAG:         %[[AT1:.*]] = arith.muli %[[P1]], %c2048
// ZEN5:             %{{.*}}:4 = scf.for %{{.*}} = %c0 to %c64 step %c1 iter_args
// ZEN5-NOT:           memref.prefetch
// ZEN5:               arith.addi %[[AT0]]
// ZEN5-COUNT-2:       vector.fma
// ZEN5:               arith.addi %[[AT1]]
// ZEN5-COUNT-2:       vector.fma
// ZEN5-NEXT:          scf.yield
// ZEN5:           } else {
// ZEN5:             arith.addi %[[I]], %c2
// ZEN5:             scf.for
// ZEN5-NOT:           arith.muli %{{.*}}, %c16
// ZEN5:               vector.fma
func.func @numbers(%x: tensor<?x64xf32, #graph.shape<["n", 64]>>, %w: tensor<136x64xf32>) -> tensor<?x136xf32, #graph.shape<["n", 136]>> attributes {graph.num_inputs = 1 : i64} {
  %t = "graph.permute_dims"(%w) {axes = array<i64: 1, 0>} : (tensor<136x64xf32>) -> tensor<64x136xf32>
  %0 = "graph.matmul"(%x, %t) : (tensor<?x64xf32, #graph.shape<["n", 64]>>, tensor<64x136xf32>) -> tensor<?x136xf32, #graph.shape<["n", 136]>>
  return %0 : tensor<?x136xf32, #graph.shape<["n", 136]>>
}

// So does a row that is known to be alone.
// CHECK-LABEL: func.func private @fused_permute_dims_matmul_1_packed(
// CHECK:         scf.parallel
// CHECK:           arith.cmpi ult, %{{.*}}, %c2
// CHECK:           %{{.*}}:8 = scf.for %{{.*}} = %c0 to %c64 step %c1 iter_args
func.func @known(%x: tensor<1x64xf32>, %w: tensor<136x64xf32>) -> tensor<1x136xf32> attributes {graph.num_inputs = 1 : i64} {
  %t = "graph.permute_dims"(%w) {axes = array<i64: 1, 0>} : (tensor<136x64xf32>) -> tensor<64x136xf32>
  %0 = "graph.matmul"(%x, %t) : (tensor<1x64xf32>, tensor<64x136xf32>) -> tensor<1x136xf32>
  return %0 : tensor<1x136xf32>
}

// Pairs of bf16 elements: a shift converts the first ones to f32, a mask the second ones.
// CHECK-LABEL: func.func private @fused_astype_permute_dims_matmul_packed(
// CHECK-SAME:    memref<9x32x16x2xbf16>
// CHECK-DAG:     %[[UPPER:.*]] = arith.constant dense<-65536> : vector<8xi32>
// CHECK-DAG:     %[[HALF:.*]] = arith.constant dense<16> : vector<8xi32>
// CHECK:         scf.if
// CHECK:           scf.parallel
// CHECK:             %{{.*}}:8 = scf.for %{{.*}} = %c0 to %c32 step %c1 iter_args
// CHECK:               vector.load {{.*}} vector<16xbf16>
// CHECK:               arith.shli %{{.*}}, %[[HALF]]
// CHECK:               vector.load {{.*}} vector<16xbf16>
// CHECK:               arith.shli %{{.*}}, %[[HALF]]
// CHECK-COUNT-2:       vector.fma
// CHECK-COUNT-2:       arith.andi %{{.*}}, %[[UPPER]]
// CHECK-COUNT-2:       vector.fma
// CHECK:               scf.yield
// A tile of six rows, whose sums leave no register for it, loads a pair once for each element.
// CHECK:           scf.parallel
// CHECK:           scf.parallel
// CHECK:             %{{.*}}:12 = scf.for %{{.*}} = %c0 to %c32 step %c1 iter_args
// CHECK-COUNT-2:       vector.load {{.*}} vector<16xbf16>
// CHECK-COUNT-12:      vector.fma
// CHECK:               llvm.inline_asm "", "=r,0"
// CHECK:               llvm.load %{{.*}} {alignment = 1 : i64} : !llvm.ptr -> vector<16xbf16>
// CHECK:               llvm.inline_asm "", "=r,0"
// CHECK:               llvm.load %{{.*}} {alignment = 1 : i64} : !llvm.ptr -> vector<16xbf16>
// CHECK-COUNT-12:      vector.fma
// CHECK-NEXT:          scf.yield
func.func @pairs(%x: tensor<?x64xbf16, #graph.shape<["n", 64]>>, %w: tensor<136x64xbf16>) -> tensor<?x136xf32, #graph.shape<["n", 136]>> attributes {graph.num_inputs = 1 : i64} {
  %l = "graph.astype"(%x) {dtype = f32} : (tensor<?x64xbf16, #graph.shape<["n", 64]>>) -> tensor<?x64xf32, #graph.shape<["n", 64]>>
  %r = "graph.astype"(%w) {dtype = f32} : (tensor<136x64xbf16>) -> tensor<136x64xf32>
  %t = "graph.permute_dims"(%r) {axes = array<i64: 1, 0>} : (tensor<136x64xf32>) -> tensor<64x136xf32>
  %0 = "graph.matmul"(%l, %t) : (tensor<?x64xf32, #graph.shape<["n", 64]>>, tensor<64x136xf32>) -> tensor<?x136xf32, #graph.shape<["n", 136]>>
  return %0 : tensor<?x136xf32, #graph.shape<["n", 136]>>
}
