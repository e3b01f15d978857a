// RUN: relax-opt %s --relax-lower-calls --pretty | FileCheck %s

// A call across levels means: allocate what the result annotation says, let the callee fill it,
// return it (paper Figure 5). Both kinds of callee take destinations, so both lower alike.

!a = tensor<?x64xf32, #graph.shape<["n", 64]>>
!b = tensor<64x32xf32>
!c = tensor<?x32xf32, #graph.shape<["n", 32]>>
#one_in  = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#two_ins = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#one_out = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>

"lib.function"() {sym_name = "openblas.sgemm", c_symbol = "cblas_sgemm64_",
                  convention = "cblas_sgemm_nn", libraries = ["libopenblas64.so.0"]} : () -> ()

func.func private @negate(%x: !c, %y: !c) -> !c attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %in = tensor.cast %x : !c to tensor<?x32xf32>
  %out = tensor.cast %y : !c to tensor<?x32xf32>
  %0 = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%in : tensor<?x32xf32>) outs(%out : tensor<?x32xf32>) {
  ^bb0(%element: f32, %old: f32):
    %1 = arith.negf %element : f32
    linalg.yield %1 : f32
  } -> tensor<?x32xf32>
  %result = tensor.cast %0 : tensor<?x32xf32> to !c
  return %result : !c
}

func.func @main(%x: !a, %w: !b) -> !c {
  %0 = "graph.call_dps_library"(%x, %w) {callee = @openblas.sgemm, sym_args = #graph.shape<[]>,
      operandSegmentSizes = #two_ins, resultSegmentSizes = #one_out} : (!a, !b) -> !c
  %1 = "graph.call_tir"(%0) {callee = @negate, sym_args = #graph.shape<[]>,
      operandSegmentSizes = #one_in, resultSegmentSizes = #one_out} : (!c) -> !c
  return %1 : !c
}
// CHECK-LABEL: func @main(%arg0: tensor<n x 64 x f32>, %arg1: tensor<64 x 32 x f32>)
// CHECK-NEXT:    %0 = graph.alloc_tensor() {{.*}} : tensor<n x 32 x f32>
// CHECK-NEXT:    graph.call_dps @openblas.sgemm(%arg0, %arg1, %0)
// CHECK-NEXT:    %1 = graph.alloc_tensor() {{.*}} : tensor<n x 32 x f32>
// CHECK-NEXT:    graph.call_dps @negate(%0, %1)
// CHECK-NEXT:    return %1
