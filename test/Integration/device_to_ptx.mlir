// RUN: relax-compile %s --target=cuda:sm_80 --emit=kernels | FileCheck %s

// Buffers are addresses, indices have 64 bits, or 32 where sizes are known to be small, memory of a group is a variable; nothing is called.

// CHECK-LABEL: // kernel softmax_kernel
// CHECK:       .version 7.0
// CHECK-NEXT:  .target sm_80
// CHECK-NOT:   .func
// CHECK:       .visible .entry softmax_kernel(
// CHECK-COUNT-2: .param .u64 softmax_kernel_param
// CHECK-COUNT-2: .param .u64 .ptr .global
// CHECK:       .maxntid 128, 1, 1
// CHECK-NEXT:  .minnctapersm 4
// CHECK:       .shared .align 16 .b8 shared_1[16];
// CHECK:       .shared .align 16 .b8 shared_0[16];
// CHECK:       mov.u32 {{.*}}, %ctaid.x;
// CHECK:       .pragma "nounroll";
// CHECK-COUNT-4: ld.global.nc.b32
// CHECK:       shfl.sync.bfly.b32 {{.*}}, 16, 31, -1;
// CHECK:       st.shared.b32
// CHECK:       bar.sync 0;
// CHECK:       ld.shared.b32
// CHECK:       shfl.sync.bfly.b32 {{.*}}, 2, 31, -1;
// CHECK:       fma.rn.f32
// CHECK:       st.global.b32
// CHECK-NOT:   call

// The quotient of a position by 3, which is a constant, is a product.
// CHECK-LABEL: // kernel add_kernel
// CHECK:       .maxntid 256, 1, 1
// CHECK:       setp.ge.u64 [[OUTSIDE:%p[0-9]+]]
// CHECK-NEXT:  @[[OUTSIDE]] bra
// CHECK:       mul.hi.u64
// CHECK:       ld.global.nc.b32 [[A:%r[0-9]+]]
// CHECK:       ld.global.nc.b32 [[B:%r[0-9]+]]
// CHECK:       add.f32 [[SUM:%r[0-9]+]], [[A]], [[B]];
// CHECK:       st.global.b32 [{{.*}}], [[SUM]];

// CHECK-LABEL: // kernel astype_kernel
// CHECK:       ld.global.nc.s8 [[BYTE:%rs[0-9]+]]
// CHECK-NEXT:  cvt.rn.f16.s16 [[HALF:%rs[0-9]+]], [[BYTE]];
// CHECK-NEXT:  st.global.b16 [{{.*}}], [[HALF]];

// CHECK-LABEL: // kernel permute_dims_kernel
// CHECK-NOT:   {{div|rem|shr|shl|mul.hi}}.{{[bus]}}64
// CHECK:       shl.b32
// CHECK-NOT:   {{div|rem|shr|shl|mul.hi}}.{{[bus]}}64
// CHECK:       mul.wide.u32
// CHECK:       ld.global.nc.b32
// CHECK:       st.global.b32
!m = tensor<?x?xf32, #graph.shape<["m", "n"]>>
func.func @rows(%x: !m) -> !m {
  %0 = "graph.nn_softmax"(%x) {axis = -1 : i64} : (!m) -> !m
  return %0 : !m
}
!x = tensor<?x3xf32, #graph.shape<["n", 3]>>
func.func @sum(%x: !x, %y: tensor<3xf32>) -> !x {
  %0 = "graph.add"(%x, %y) : (!x, tensor<3xf32>) -> !x
  return %0 : !x
}
!i = tensor<?xi8, #graph.shape<["n"]>>
!h = tensor<?xf16, #graph.shape<["n"]>>
func.func @half(%x: !i) -> !h {
  %0 = "graph.astype"(%x) {dtype = f16} : (!i) -> !h
  return %0 : !h
}
func.func @small(%x: tensor<64x3x7xf32>) -> tensor<7x64x3xf32> {
  %0 = "graph.permute_dims"(%x) {axes = array<i64: 2, 0, 1>} : (tensor<64x3x7xf32>) -> tensor<7x64x3xf32>
  return %0 : tensor<7x64x3xf32>
}
