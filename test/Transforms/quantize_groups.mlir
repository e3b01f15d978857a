// RUN: relax-opt %s --relax-quantize=scheme=q4_128_minimum | FileCheck %s
// RUN: relax-opt %s --pass-pipeline='relax-quantize{scheme=q4_128_minimum},relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,symbol-dce' | FileCheck %s --check-prefix=FUSED

// 128 numbers, four blocks, share a scale and a minimum: two of each for a row of 256. The product
// reads them by block floordiv 4, and nothing is repeated.

!x = tensor<?x256xf32, #graph.shape<["n", 256]>>
!y = tensor<?x40xf32, #graph.shape<["n", 40]>>
// CHECK-LABEL: func.func @main_quantize
// CHECK-SAME:    -> (tensor<3x8x4x16x4xi8>, tensor<3x2x16xf16>, tensor<3x2x16xf16>)
// CHECK-NEXT:    "graph.quantize"(%{{.*}}) {axis = 0 : i64{{.*}}scheme = "q4_128_minimum"
// CHECK-LABEL: func.func @main(
// CHECK-SAME:    tensor<3x8x4x16x4xi8> {graph.name = "w.data"}, %{{.*}}: tensor<3x2x16xf16> {graph.name = "w.scale"}, %{{.*}}: tensor<3x2x16xf16> {graph.name = "w.minimum"})
// CHECK-NEXT:    "graph.dequantize"(%{{.*}}) {{.*}}scheme = "q4_128_minimum"
// CHECK-SAME:      -> tensor<48x256xf32>
// CHECK-NEXT:    "graph.permute_dims"
// CHECK-NEXT:    "graph.matmul"

// FUSED-DAG:   #[[$DATA:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d1, d3, d5, d2, d6)>
// FUSED-DAG:   #[[$FACTOR:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d1, d3 floordiv 4, d2)>
// FUSED-LABEL: func.func private @fused_dequantize_permute_dims_matmul(
// FUSED:         linalg.generic {indexing_maps = [#{{.*}}, #[[$DATA]], #[[$FACTOR]], #[[$FACTOR]], #{{.*}}]
// FUSED-NOT:     linalg.generic
// FUSED:         return
func.func @main(%x: !x {graph.name = "x"}, %w: tensor<256x40xf32> {graph.name = "w"}) -> !y
    attributes {graph.num_inputs = 1 : i64} {
  %0 = "graph.matmul"(%x, %w) : (!x, tensor<256x40xf32>) -> !y
  return %0 : !y
}
