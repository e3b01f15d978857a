// RUN: relax-compile %s --target=vulkan:16x16x16 --emit=kernels | FileCheck %s

// Kernels with matrices are of Vulkan's memory model (3), in which accesses to what several threads
// have say so (32), and barriers make them available and visible (328 + 8192 + 16384).

// CHECK-LABEL: // kernel matmul_kernel_1
// CHECK:       OpCapability GroupNonUniform
// CHECK:       OpCapability VulkanMemoryModel
// CHECK-NEXT:  OpCapability CooperativeMatrixKHR
// CHECK-NEXT:  OpExtension "SPV_KHR_cooperative_matrix"
// CHECK:       OpExtension "SPV_KHR_vulkan_memory_model"
// CHECK:       OpMemoryModel 0 3
// CHECK:       OpDecorate [[SUBGROUP:%[0-9]+]] 11 40
// CHECK:       [[I32:%[0-9]+]] = OpTypeInt 32 0
// CHECK:       [[F16:%[0-9]+]] = OpTypeFloat 16
// CHECK:       [[F32:%[0-9]+]] = OpTypeFloat 32
// CHECK:       [[TWO:%[0-9]+]] = OpConstant [[I32]] 2
// CHECK:       [[SUMS:%[0-9]+]] = OpTypeCooperativeMatrixKHR [[F32]] [[SCOPE:%[0-9]+]] [[EXTENT:%[0-9]+]] [[EXTENT]] [[TWO]]
// CHECK:       [[SEMANTICS:%[0-9]+]] = OpConstant [[I32]] 24904
// CHECK:       [[A:%[0-9]+]] = OpTypeCooperativeMatrixKHR [[F16]] [[SCOPE]] [[EXTENT]] [[EXTENT]] [[ZERO:%[0-9]+]]
// CHECK:       [[B:%[0-9]+]] = OpTypeCooperativeMatrixKHR [[F16]] [[SCOPE]] [[EXTENT]] [[EXTENT]]
// CHECK:       OpLoad [[I32]] [[SUBGROUP]]{{$}}
// CHECK:       [[START:%[0-9]+]] = OpCompositeConstruct [[SUMS]]
// CHECK:       [[CARRIED:%[0-9]+]] = OpPhi [[SUMS]] [[START]]
// CHECK:       OpLoad [[F16]] {{.*}} 32
// CHECK:       OpStore {{.*}} 32
// CHECK:       OpControlBarrier {{.*}} [[SEMANTICS]]
// CHECK:       [[LEFT:%[0-9]+]] = OpCooperativeMatrixLoadKHR [[A]] {{%[0-9]+}} [[ZERO]] {{%[0-9]+}} 32
// CHECK:       [[RIGHT:%[0-9]+]] = OpCooperativeMatrixLoadKHR [[B]]
// CHECK:       OpCooperativeMatrixMulAddKHR [[SUMS]] [[LEFT]] [[RIGHT]] [[CARRIED]]
// CHECK:       OpControlBarrier {{.*}} [[SEMANTICS]]
// CHECK:       OpCooperativeMatrixStoreKHR {{%[0-9]+}} {{%[0-9]+}} [[ZERO]] {{%[0-9]+}} 32
!x = tensor<?x?xf16, #graph.shape<["m", "k"]>>
!w = tensor<?x?xf16, #graph.shape<["k", "n"]>>
!y = tensor<?x?xf16, #graph.shape<["m", "n"]>>
func.func @main(%x: !x, %w: !w) -> !y {
  %0 = "graph.matmul"(%x, %w) : (!x, !w) -> !y
  return %0 : !y
}
