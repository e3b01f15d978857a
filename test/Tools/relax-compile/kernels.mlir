// RUN: relax-compile %s --target=gpu --emit=kernels | FileCheck %s
// RUN: not relax-compile %s --emit=kernels 2>&1 | FileCheck %s --check-prefix=CPU
// RUN: not relax-compile %s --target=metal --emit=kernels 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not relax-compile %s --target=gpu --emit=kernel 2>&1 | FileCheck %s --check-prefix=STAGE
// RUN: not relax-compile %s --target=webgpu --emit=kernels --pass-pipeline='builtin.module(relax-legalize-ops)' 2>&1 | FileCheck %s --check-prefix=PASSES

// CHECK:      // kernel add_kernel
// CHECK:      gpu.func @add_kernel(
func.func @main(%x: tensor<2xi32>) -> tensor<2xi32> {
  %0 = "graph.add"(%x, %x) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}

// CPU: relax-compile: --emit=kernels is about the code of a device, and 'native' has none
// NAME: relax-compile: unknown target 'metal'
// STAGE: relax-compile: unknown stage 'kernel'; did you mean 'kernels'?
// PASSES: relax-compile: unknown stage 'mlir-outline-launches'
