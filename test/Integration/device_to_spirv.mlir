// RUN: relax-compile %s --target=vulkan --emit=kernels | FileCheck %s

// Buffers are descriptors, scalars are push constants (storage class 9), memory of a group is a
// variable of class 4; loops and branches say where they join.

// CHECK-LABEL: // kernel softmax_kernel
// CHECK-NEXT:  OpCapability Shader
// CHECK:       OpExecutionMode [[MAIN:%[0-9]+]] 17 128 1 1
// CHECK-NEXT:  OpExecutionMode [[MAIN]] 4461 32
// CHECK:       [[I32:%[0-9]+]] = OpTypeInt 32 0
// CHECK:       [[F32:%[0-9]+]] = OpTypeFloat 32
// CHECK:       [[COUNT:%[0-9]+]] = OpConstant [[I32]] 128
// CHECK-NEXT:  OpTypeArray [[F32]] [[COUNT]]
// CHECK:       OpVariable {{.*}} 4
// CHECK:       [[SEMANTICS:%[0-9]+]] = OpConstant [[I32]] 328
// CHECK:       [[MAIN]] = OpFunction
// CHECK:       [[HEADER:%[0-9]+]] = OpLabel
// CHECK:       OpPhi [[I32]]
// CHECK:       OpLoopMerge
// CHECK:       OpControlBarrier {{.*}} [[SEMANTICS]]
// CHECK:       OpReturn
// CHECK-NEXT:  OpFunctionEnd

// The sum must not be fused with anything (decoration 42), and inputs are not written to (24).
// CHECK-LABEL: // kernel add_kernel
// CHECK:       OpDecorate [[X:%[0-9]+]] 34 0
// CHECK-NEXT:  OpDecorate [[X]] 33 0
// CHECK-NEXT:  OpDecorate [[X]] 24
// CHECK:       OpDecorate [[SUM:%[0-9]+]] 42
// CHECK:       OpULessThan
// CHECK-NEXT:  OpSelectionMerge
// CHECK:       OpUMod
// CHECK:       [[SUM]] = OpFAdd
// CHECK:       OpStore {{.*}} [[SUM]]

// CHECK-LABEL: // kernel astype_kernel
// CHECK:       OpCapability Float16
// CHECK-NEXT:  OpCapability Int8
// CHECK-NEXT:  OpCapability StorageBuffer16BitAccess
// CHECK-NEXT:  OpCapability StorageBuffer8BitAccess
// CHECK:       [[F16:%[0-9]+]] = OpTypeFloat 16
// CHECK:       OpConvertSToF
// CHECK-NEXT:  OpFConvert [[F16]]
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
