// RUN: relax-opt %s --pass-pipeline='relax-outline-launches' | FileCheck %s

// What the region uses of the host are arguments, but for the constant, which is in the kernel.
// CHECK:       module attributes {gpu.container_module}
// CHECK-LABEL: func.func private @scale(
// CHECK-SAME:    %[[X:.*]]: memref<?xf32>, %[[N:.*]]: index
// CHECK:         gpu.launch_func @scale_kernel::@scale_kernel blocks in (%[[N]], %c1, %c1)
// CHECK-SAME:    threads in (%c64, %c1, %c1) args(%[[X]] : memref<?xf32>)
// CHECK-NOT:     gpu.launch
// CHECK:       gpu.module @scale_kernel
// CHECK-NEXT:    gpu.func @scale_kernel(%[[BUFFER:.*]]: memref<?xf32> {llvm.noalias})
// CHECK-SAME:      workgroup(%[[SHARED:.*]] : memref<64xf32, #gpu.address_space<workgroup>>)
// CHECK-SAME:      known_block_size = array<i32: 64, 1, 1>
// CHECK-DAG:     %[[TWO:.*]] = arith.constant 2.0
// CHECK-DAG:     %[[THREAD:.*]] = gpu.thread_id x
// CHECK:         memref.load %[[BUFFER]][%[[THREAD]]]
// CHECK:         arith.mulf %{{.*}}, %[[TWO]]
// CHECK:         memref.store %{{.*}}, %[[SHARED]][%[[THREAD]]]
// CHECK:         gpu.barrier
// CHECK:         gpu.return
func.func private @scale(%x: memref<?xf32>, %n: index) attributes {tir.scheduled} {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %two = arith.constant 2.0 : f32
  gpu.launch blocks(%a, %b, %c) in (%g = %n, %h = %c1, %i = %c1)
      threads(%d, %e, %f) in (%s = %c64, %t = %c1, %u = %c1)
      workgroup(%shared : memref<64xf32, #gpu.address_space<workgroup>>) {
    %0 = memref.load %x[%d] : memref<?xf32>
    %1 = arith.mulf %0, %two : f32
    memref.store %1, %shared[%d] : memref<64xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %2 = memref.load %shared[%a] : memref<64xf32, #gpu.address_space<workgroup>>
    memref.store %2, %x[%d] : memref<?xf32>
    gpu.terminator
  }
  return
}

// Functions of tensors stay as they are: MLIR would make a select of this, which the host has not.
// CHECK-LABEL: func.func @either(
// CHECK-NEXT:    scf.if
func.func @either(%c: i1, %x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = scf.if %c -> (tensor<4xf32>) {
    scf.yield %x : tensor<4xf32>
  } else {
    scf.yield %y : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
