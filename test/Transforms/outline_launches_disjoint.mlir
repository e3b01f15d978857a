// RUN: relax-opt %s --pass-pipeline='relax-outline-launches' | FileCheck %s
// RUN: relax-compile %s --target=cuda:sm_80 --pass-pipeline='builtin.module(relax-outline-launches)' --emit=kernels | FileCheck %s --check-prefix=PTX
// RUN: relax-compile %s --target=vulkan --pass-pipeline='builtin.module(relax-outline-launches)' --emit=kernels | FileCheck %s --check-prefix=SPIRV

// Of arguments of one function, no two are in one memory; %b and %c are views of one that is written.
// CHECK-LABEL: gpu.module @views_kernel
// CHECK: gpu.func @views_kernel(%{{.*}}: memref<?xf32> {llvm.noalias}, %{{.*}}: memref<?xf32>, %{{.*}}: memref<64xf32>)

// What nobody writes is read as a constant, what is written as a view of the same memory is not.
// PTX-LABEL: .entry views_kernel(
// PTX: ld.global.nc.b32
// PTX: ld.global.b32
// PTX: st.global.b32

// 19 is Restrict, 20 Aliased, 24 NonWritable.
// SPIRV-LABEL: kernel views_kernel
// SPIRV: OpDecorate %[[A:[0-9]+]] 33 0
// SPIRV-NEXT: OpDecorate %[[A]] 24
// SPIRV-NEXT: OpDecorate %[[A]] 19
// SPIRV: OpDecorate %[[B:[0-9]+]] 33 1
// SPIRV-NEXT: OpDecorate %[[B]] 24
// SPIRV-NEXT: OpDecorate %[[B]] 20
// SPIRV: OpDecorate %[[C:[0-9]+]] 33 2
// SPIRV-NEXT: OpDecorate %[[C]] 20
func.func private @views(%a: memref<?xf32>, %b: memref<?xf32>, %n: index) attributes {tir.prim_func, tir.scheduled, tir.num_outs = 1 : i64} {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c = memref.cast %b : memref<?xf32> to memref<64xf32>
  gpu.launch blocks(%x, %y, %z) in (%g = %n, %h = %c1, %i = %c1)
      threads(%d, %e, %f) in (%s = %c64, %t = %c1, %u = %c1) {
    %0 = memref.load %a[%d] : memref<?xf32>
    %1 = memref.load %b[%d] : memref<?xf32>
    %2 = arith.addf %0, %1 : f32
    memref.store %2, %c[%d] : memref<64xf32>
    gpu.terminator
  }
  return
}

// What is updated in place is one argument: it is apart from others, but no constant.
// CHECK-LABEL: gpu.module @update_kernel
// CHECK: gpu.func @update_kernel(%{{.*}}: memref<?xf32> {llvm.noalias}, %{{.*}}: memref<?xf32> {llvm.noalias})
// PTX-LABEL: .entry update_kernel(
// PTX: ld.global.nc.b32
// PTX: ld.global.b32
// PTX: st.global.b32
func.func private @update(%a: memref<?xf32>, %b: memref<?xf32>) attributes {tir.prim_func, tir.scheduled, tir.num_outs = 1 : i64} {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%x, %y, %z) in (%g = %c1, %h = %c1, %i = %c1)
      threads(%d, %e, %f) in (%s = %c64, %t = %c1, %u = %c1) {
    %0 = memref.load %a[%d] : memref<?xf32>
    %1 = memref.load %b[%d] : memref<?xf32>
    %2 = arith.addf %0, %1 : f32
    memref.store %2, %b[%d] : memref<?xf32>
    gpu.terminator
  }
  return
}
