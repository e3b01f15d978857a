// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-legalize-ops,relax-schedule{target=gpu},relax-lower-calls,relax-plan-memory{alignment=256},relax-outline-launches,relax-to-host{target=gpu})' | FileCheck %s

// The host launches kernels by their numbers. Constants are copies on the device, and scalars are read from it.

// CHECK-LABEL: func.func private @add(
// CHECK:         %[[WORDS:.*]] = llvm.alloca
// CHECK:         call @rx_launch(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[WORDS]])
// CHECK-NOT:     gpu.launch_func
// CHECK:       gpu.module @add_kernel
// CHECK-LABEL: func.func @rx_fn_main
// CHECK:         %[[C:.*]] = call @rx_device_constant(%c0_i32)
// CHECK:         call @call.add(%{{.*}}, %{{.*}}, %[[C]], %{{.*}}, %{{.*}})
// CHECK:         %[[READ:.*]] = call @rx_device_read(%arg0, %{{.*}}, %c4_i64)
// CHECK:         %[[X:.*]] = llvm.load %[[READ]] : !llvm.ptr -> f32
// CHECK:         %[[RESULT:.*]] = call @rx_host_result(
// CHECK:         llvm.store %[[X]], %[[RESULT]]
// CHECK:       llvm.mlir.global external constant @rx_device_constants
// CHECK:       llvm.mlir.global external constant @rx_num_device_constants(1 : i32)
!x = tensor<?x3xf32, #graph.shape<["n", 3]>>
func.func @main(%x: !x) -> (!x, f32) {
  %c = arith.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %0 = "graph.add"(%x, %c) : (!x, tensor<3xf32>) -> !x
  %at = arith.constant 0 : index
  %1 = tensor.extract %0[%at, %at] : !x
  return %0, %1 : !x, f32
}
