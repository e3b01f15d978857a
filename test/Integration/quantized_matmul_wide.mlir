// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,relax-schedule{target=x86-64-v3})' | FileCheck %s
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,relax-schedule{target=znver3})' | FileCheck %s --check-prefix=STREAMS
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,relax-schedule{target=znver5})' | FileCheck %s --check-prefix=PAIR

!x = tensor<?x64xf32, #graph.shape<["n", 64]>>
!q = tensor<?x64xi8, #graph.shape<["n", 64]>>
!s = tensor<?x2xf32, #graph.shape<["n", 2]>>
!y = tensor<?x48xf32, #graph.shape<["n", 48]>>

// Without dot products of 8 bits, many rows and weights of 8 bits are multiplied as 16-bit numbers: those of four
// neighbours along k at even places, and those at odd ones. Rows are copied like that,
// CHECK-LABEL: func.func private @fused_
// CHECK-SAME:    tir.schedule = "quantized_matmul"
// CHECK:         scf.parallel
// CHECK:           arith.shli %{{.*}} : vector<16xi16>
// CHECK:           arith.shrsi %{{.*}} : vector<16xi16>
// CHECK:           arith.shrsi %{{.*}} : vector<16xi16>
// few rows multiply bytes, with signs moved from weights to numbers, and add up weights in 16 bits,
// CHECK:         scf.parallel
// CHECK:           psign.b
// CHECK:           pmadd.ub.sw
// CHECK:           pmadd.wd
// CHECK:           scf.yield
// and four of many read what the block of weights was made, once for all rows.
// CHECK:           %[[ROOM:.*]] = memref.alloc() : memref<512xi16>
// CHECK:           scf.for
// CHECK-COUNT-32:    vector.store %{{.*}}, %[[ROOM]]
// CHECK:             scf.for %{{.*}} step %c4
// CHECK-NOT:           psign
// CHECK:               vector.load %[[ROOM]]
// CHECK-COUNT-128:     pmadd.wd
// CHECK-NOT:           pmadd
// CHECK:               arith.sitofp
// CHECK-NOT:     linalg

// Where memory is read faster from several places, one row reads a block of each of three panels in turn, four
// numbers along k of all of them before the next four: two vectors of each, multiplied and added up.
// STREAMS-LABEL: func.func private @fused_
// STREAMS:         %[[ONE:.*]] = arith.cmpi ult, %{{.*}}, %c2 : index
// STREAMS:         scf.parallel
// STREAMS:         scf.if %[[ONE]] {
// STREAMS:           %{{.*}}:6 = scf.for %{{.*}} = %c0 to %c2 step %c1 iter_args
// STREAMS-NOT:         memref.prefetch
// STREAMS-COUNT-96:    pmadd.ub.sw
// STREAMS-NOT:         pmadd.ub.sw
// STREAMS:             scf.yield
// STREAMS:         } else {
// STREAMS-NOT:     linalg

// Two panels on Zen 5, of a vector each, the last one of an odd number by itself.
// PAIR-LABEL: func.func private @fused_
// PAIR:         %[[ONE:.*]] = arith.cmpi ult, %{{.*}}, %c2 : index
// PAIR:         scf.if %[[ONE]] {
// PAIR:           scf.parallel {{.*}} to (%c2)
// PAIR:             arith.cmpi ult, %{{.*}}, %c1 : index
// PAIR:             %{{.*}}:2 = scf.for %{{.*}} = %c0 to %c2 step %c1 iter_args
// PAIR-NOT:           memref.prefetch
// PAIR-COUNT-32:      vpdpbusd.512
// PAIR-NOT:           vpdpbusd.512
// PAIR:               scf.yield
// PAIR:             } else {
// PAIR:             scf.for
// PAIR-NOT:           memref.prefetch
// PAIR-COUNT-16:      vpdpbusd.512
// PAIR-NOT:           vpdpbusd.512
// PAIR:               scf.yield
func.func @main(%q: !q, %s: !s, %o: !s, %d: tensor<3x2x2x4x16x4xi8>, %f: tensor<3x2x16xf16>) -> !y {
  %x = "graph.dequantize_blocks"(%q, %s, %o) {operandSegmentSizes = array<i32: 1, 1, 1>} : (!q, !s, !s) -> !x
  %w = "graph.dequantize"(%d, %f) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0>, scheme = "q8_0"} : (tensor<3x2x2x4x16x4xi8>, tensor<3x2x16xf16>) -> tensor<48x64xf32>
  %t = "graph.permute_dims"(%w) {axes = array<i64: 1, 0>} : (tensor<48x64xf32>) -> tensor<64x48xf32>
  %0 = "graph.matmul"(%x, %t) : (!x, tensor<64x48xf32>) -> !y
  return %0 : !y
}
