// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,relax-schedule{target=aarch64-v8.6}' | FileCheck %s
// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,relax-schedule{target=aarch64-v8.2}' | FileCheck %s --check-prefix=OLDER

!x = tensor<?x40xui8, #graph.shape<["n", 40]>>
!w = tensor<40x24xi8>
!xi = tensor<?x40xi32, #graph.shape<["n", 40]>>
!wi = tensor<40x24xi32>
!y = tensor<?x24xi32, #graph.shape<["n", 24]>>

// Unsigned times signed elements by one instruction, two rows at a time: their sums are rearranged before and after.
// Else signed elements are biased while they are packed.
// CHECK-LABEL: func.func private @fused_{{.*}}matmul
// CHECK-NOT:     arith.xori
// CHECK:         vector.shuffle %[[ROW:.*]], %[[NEXT:.*]] [0, 1, 4, 5] : vector<4xi32>, vector<4xi32>
// CHECK:         vector.shuffle %[[ROW]], %[[NEXT]] [2, 3, 6, 7] : vector<4xi32>, vector<4xi32>
// CHECK-COUNT-28: llvm.call_intrinsic "llvm.aarch64.neon.usmmla"({{.*}}) : (vector<4xi32>, vector<16xi8>, vector<16xi8>) -> vector<4xi32>
// CHECK:         scf.yield
// CHECK:         vector.shuffle %{{.*}}, %{{.*}} [0, 1, 4, 5] : vector<4xi32>, vector<4xi32>
// CHECK-NOT:     linalg
// OLDER-LABEL: func.func private @fused_{{.*}}matmul
// OLDER:         arith.xori %{{.*}} : vector<{{[0-9]+}}xi8>
// OLDER-COUNT-28: llvm.call_intrinsic "llvm.aarch64.neon.udot"
// OLDER-NOT:     linalg
func.func @signs(%x: !x, %w: !w) -> !y {
  %l = "graph.astype"(%x) {dtype = i32} : (!x) -> !xi
  %r = "graph.astype"(%w) {dtype = i32} : (!w) -> !wi
  %y = "graph.matmul"(%l, %r) : (!xi, !wi) -> !y
  return %y : !y
}

!xh = tensor<?x40xbf16, #graph.shape<["n", 40]>>
!wh = tensor<40x24xbf16>
!xf = tensor<?x40xf32, #graph.shape<["n", 40]>>
!wf = tensor<40x24xf32>
!yf = tensor<?x24xf32, #graph.shape<["n", 24]>>

// Pairs of bf16 elements, of a left side that is rounded while it is packed.
// CHECK-LABEL: func.func private @fused_{{.*}}matmul
// CHECK:         arith.truncf %{{.*}} : vector<4xf32> to vector<4xbf16>
// CHECK-COUNT-28: llvm.call_intrinsic "llvm.aarch64.neon.bfdot"({{.*}}) : (vector<4xf32>, vector<8xbf16>, vector<8xbf16>) -> vector<4xf32>
// CHECK-NOT:     linalg
// OLDER-LABEL: func.func private @fused_{{.*}}matmul
// OLDER-COUNT-28: vector.fma %{{.*}} : vector<4xf32>
func.func @pairs(%x: !xf, %w: !wh) -> !yf {
  %h = "graph.astype"(%x) {dtype = bf16} : (!xf) -> !xh
  %l = "graph.astype"(%h) {dtype = f32} : (!xh) -> !xf
  %r = "graph.astype"(%w) {dtype = f32} : (!wh) -> !wf
  %y = "graph.matmul"(%l, %r) : (!xf, !wf) -> !yf
  return %y : !yf
}
