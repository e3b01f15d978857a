// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,relax-pack-weights{target=x86-64-v4+avx512vnni},symbol-dce' | FileCheck %s
// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,relax-pack-weights{target=x86-64-v3},symbol-dce' | FileCheck %s --check-prefix=AVX2
// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,relax-pack-weights{target=aarch64-v8.2},symbol-dce' | FileCheck %s --check-prefix=SDOT
// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,relax-pack-weights{target=aarch64-v8.6},symbol-dce' | FileCheck %s --check-prefix=MATRICES
// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,relax-pack-weights{target=aarch64},symbol-dce' | FileCheck %s --check-prefix=PLAIN
// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,relax-pack-weights{target=x86-64-v4+avx512vnni},symbol-dce,relax-schedule{target=x86-64-v4+avx512vnni}' | FileCheck %s --check-prefix=LOOPS

// Groups of four along k, the last one filled up; numbers are unsigned in panels, and signed again
// where they are multiplied.
// CHECK:         #[[$PANELS:.*]] = affine_map<(d0, d1, d2, d3) -> (d1, d3 floordiv 4, d2, d3 mod 4)>
// CHECK-LABEL: func.func @scaled
// CHECK:         callee = @pack_weights,
// CHECK-SAME:      -> tensor<2x26x32x4xi8>
// CHECK:       func.func private @fused_astype_permute_dims_matmul_multiply_packed(
// CHECK:         indexing_maps = [#{{[a-z0-9]*}}, #[[$PANELS]], #{{[a-z0-9]*}}]
// CHECK-SAME:    iterator_types = ["parallel", "parallel", "parallel", "reduction"]
// CHECK:         ^bb0(%[[X:.*]]: i8, %[[W:.*]]: i8, %{{.*}}: i32):
// CHECK:           %[[SIGNED:.*]] = arith.xori %[[W]], %c-128_i8
// CHECK:           arith.extsi %[[SIGNED]] : i8 to i32
// CHECK:       func.func private @pack_weights(
// CHECK:         arith.xori %{{.*}}, %c-128_i8

// AVX2-LABEL:  func.func @scaled
// AVX2:          -> tensor<3x51x16x2xi8>
// AVX2-NOT:      arith.xori

// SDOT-LABEL:  func.func @scaled
// SDOT:          -> tensor<5x26x8x4xi8>
// SDOT-NOT:      arith.xori

// MATRICES-LABEL: func.func @scaled
// MATRICES:         -> tensor<5x13x8x8xi8>
// MATRICES-NOT:     arith.xori

// The first tile of a panel asks for what lies 8 KiB ahead, the others for what they load anyway.
// LOOPS:         %[[NUMBERS:.*]] = memref.collapse_shape {{.*}} : memref<2x26x32x4xi8> into memref<6656xi8>
// LOOPS:         %[[AHEAD:.*]] = arith.select %{{.*}}, %c8192, %c0 : index
// LOOPS:         %[[FIRST:.*]] = arith.addi %{{.*}}, %[[AHEAD]] : index
// LOOPS:         scf.for
// LOOPS:           %[[AT:.*]] = arith.addi %[[FIRST]], %{{.*}} : index
// LOOPS:           memref.prefetch %[[NUMBERS]][%[[AT]]], read, locality<2>, data : memref<6656xi8>

// A machine without dot products reads the weights as they lie.
// PLAIN-LABEL: func.func @scaled
// PLAIN-NOT:     pack_weights
func.func @scaled(%x: tensor<?x101xi8, #graph.shape<["m", 101]>>, %s: tensor<40xf32>, %w: tensor<40x101xi8>) -> tensor<?x40xf32, #graph.shape<["m", 40]>> attributes {graph.num_inputs = 2 : i64} {
  %l = "graph.astype"(%x) {dtype = i32} : (tensor<?x101xi8, #graph.shape<["m", 101]>>) -> tensor<?x101xi32, #graph.shape<["m", 101]>>
  %r = "graph.astype"(%w) {dtype = i32} : (tensor<40x101xi8>) -> tensor<40x101xi32>
  %t = "graph.permute_dims"(%r) {axes = array<i64: 1, 0>} : (tensor<40x101xi32>) -> tensor<101x40xi32>
  %y = "graph.matmul"(%l, %t) : (tensor<?x101xi32, #graph.shape<["m", 101]>>, tensor<101x40xi32>) -> tensor<?x40xi32, #graph.shape<["m", 40]>>
  %f = "graph.astype"(%y) {dtype = f32} : (tensor<?x40xi32, #graph.shape<["m", 40]>>) -> tensor<?x40xf32, #graph.shape<["m", 40]>>
  %z = "graph.multiply"(%f, %s) : (tensor<?x40xf32, #graph.shape<["m", 40]>>, tensor<40xf32>) -> tensor<?x40xf32, #graph.shape<["m", 40]>>
  return %z : tensor<?x40xf32, #graph.shape<["m", 40]>>
}
