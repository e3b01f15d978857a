// RUN: relax-compile %s --target=vulkan:16x16x16/16x16x32 --emit=kernels | FileCheck %s

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
// CHECK:       [[TWO:%[0-9]+]] = OpConstant [[I32]] 2{{$}}
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

// Of i8, all are signed (15): 16 x 32 by 32 x 16.
// CHECK-LABEL: // kernel matmul_1_kernel_4
// CHECK:       [[I32:%[0-9]+]] = OpTypeInt 32 0
// CHECK:       [[I8:%[0-9]+]] = OpTypeInt 8 0
// CHECK-DAG:   [[ROWS:%[0-9]+]] = OpConstant [[I32]] 16{{$}}
// CHECK-DAG:   [[DEPTH:%[0-9]+]] = OpConstant [[I32]] 32{{$}}
// CHECK-DAG:   [[SUMS:%[0-9]+]] = OpTypeCooperativeMatrixKHR [[I32]] {{%[0-9]+}} [[ROWS]] [[ROWS]]
// CHECK-DAG:   [[A:%[0-9]+]] = OpTypeCooperativeMatrixKHR [[I8]] {{%[0-9]+}} [[ROWS]] [[DEPTH]]
// CHECK-DAG:   [[B:%[0-9]+]] = OpTypeCooperativeMatrixKHR [[I8]] {{%[0-9]+}} [[DEPTH]] [[ROWS]]
// CHECK:       OpCooperativeMatrixLoadKHR [[A]]
// CHECK:       OpCooperativeMatrixLoadKHR [[B]]
// CHECK:       OpCooperativeMatrixMulAddKHR [[SUMS]] {{%[0-9]+}} {{%[0-9]+}} {{%[0-9]+}} 15
!x = tensor<?x?xf16, #graph.shape<["m", "k"]>>
!w = tensor<?x?xf16, #graph.shape<["k", "n"]>>
!y = tensor<?x?xf16, #graph.shape<["m", "n"]>>
func.func @main(%x: !x, %w: !w) -> !y {
  %0 = "graph.matmul"(%x, %w) : (!x, !w) -> !y
  return %0 : !y
}
!a = tensor<?x?xi8, #graph.shape<["m", "k"]>>
!b = tensor<?x?xi8, #graph.shape<["k", "n"]>>
!c = tensor<?x?xi8, #graph.shape<["m", "n"]>>
func.func @bytes(%a: !a, %b: !b) -> !c {
  %0 = "graph.matmul"(%a, %b) : (!a, !b) -> !c
  return %0 : !c
}
