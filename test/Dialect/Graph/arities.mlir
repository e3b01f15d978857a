// RUN: relax-opt %s --relax-infer-shapes | FileCheck %s
// RUN: relax-opt %s --relax-infer-shapes --pretty | FileCheck %s --check-prefix=PRETTY
// RUN: relax-opt %s --relax-remove-unused-parameters | FileCheck %s --check-prefix=UNUSED

// An op of more than 32 operands has its arity in its name, and no sizes of segments.
// CHECK-LABEL: func.func @many
// CHECK:       "graph.concat_34to1"({{.*}}) {axis = 0 : i64} : ({{.*}}) -> tensor<68xf32>
// PRETTY-LABEL: func @many
// PRETTY:       graph.concat({{.*}}) {axis=0 : i64} : tensor<68 x f32>
func.func @many(
      %a0: tensor<2xf32>, %a1: tensor<2xf32>, %a2: tensor<2xf32>, %a3: tensor<2xf32>, %a4: tensor<2xf32>, %a5:
      tensor<2xf32>, %a6: tensor<2xf32>, %a7: tensor<2xf32>, %a8: tensor<2xf32>, %a9: tensor<2xf32>, %a10:
      tensor<2xf32>, %a11: tensor<2xf32>, %a12: tensor<2xf32>, %a13: tensor<2xf32>, %a14: tensor<2xf32>, %a15:
      tensor<2xf32>, %a16: tensor<2xf32>, %a17: tensor<2xf32>, %a18: tensor<2xf32>, %a19: tensor<2xf32>, %a20:
      tensor<2xf32>, %a21: tensor<2xf32>, %a22: tensor<2xf32>, %a23: tensor<2xf32>, %a24: tensor<2xf32>, %a25:
      tensor<2xf32>, %a26: tensor<2xf32>, %a27: tensor<2xf32>, %a28: tensor<2xf32>, %a29: tensor<2xf32>, %a30:
      tensor<2xf32>, %a31: tensor<2xf32>, %a32: tensor<2xf32>, %a33: tensor<2xf32>) -> tensor<?xf32> {
  %0 = "graph.concat_34to1"(
      %a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7, %a8, %a9, %a10, %a11, %a12, %a13, %a14, %a15, %a16, %a17, %a18,
      %a19, %a20, %a21, %a22, %a23, %a24, %a25, %a26, %a27, %a28, %a29, %a30, %a31, %a32, %a33)
      {axis = 0 : i64} : (
      tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>,
      tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>,
      tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>,
      tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>,
      tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>)
      -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

func.func private @first(
      %a0: tensor<2xf32>, %a1: tensor<2xf32>, %a2: tensor<2xf32>, %a3: tensor<2xf32>, %a4: tensor<2xf32>, %a5:
      tensor<2xf32>, %a6: tensor<2xf32>, %a7: tensor<2xf32>, %a8: tensor<2xf32>, %a9: tensor<2xf32>, %a10:
      tensor<2xf32>, %a11: tensor<2xf32>, %a12: tensor<2xf32>, %a13: tensor<2xf32>, %a14: tensor<2xf32>, %a15:
      tensor<2xf32>, %a16: tensor<2xf32>, %a17: tensor<2xf32>, %a18: tensor<2xf32>, %a19: tensor<2xf32>, %a20:
      tensor<2xf32>, %a21: tensor<2xf32>, %a22: tensor<2xf32>, %a23: tensor<2xf32>, %a24: tensor<2xf32>, %a25:
      tensor<2xf32>, %a26: tensor<2xf32>, %a27: tensor<2xf32>, %a28: tensor<2xf32>, %a29: tensor<2xf32>, %a30:
      tensor<2xf32>, %a31: tensor<2xf32>, %a32: tensor<2xf32>, %a33: tensor<2xf32>) -> tensor<2xf32> {
  return %a0 : tensor<2xf32>
}

// What is left of the operands fits into the slots of the op as it is declared.
// UNUSED-LABEL: func.func @call
// UNUSED:       "graph.call"(%{{.*}}) {callee = @first, operandSegmentSizes = array<i32: 1, 0,
func.func @call(
      %a0: tensor<2xf32>, %a1: tensor<2xf32>, %a2: tensor<2xf32>, %a3: tensor<2xf32>, %a4: tensor<2xf32>, %a5:
      tensor<2xf32>, %a6: tensor<2xf32>, %a7: tensor<2xf32>, %a8: tensor<2xf32>, %a9: tensor<2xf32>, %a10:
      tensor<2xf32>, %a11: tensor<2xf32>, %a12: tensor<2xf32>, %a13: tensor<2xf32>, %a14: tensor<2xf32>, %a15:
      tensor<2xf32>, %a16: tensor<2xf32>, %a17: tensor<2xf32>, %a18: tensor<2xf32>, %a19: tensor<2xf32>, %a20:
      tensor<2xf32>, %a21: tensor<2xf32>, %a22: tensor<2xf32>, %a23: tensor<2xf32>, %a24: tensor<2xf32>, %a25:
      tensor<2xf32>, %a26: tensor<2xf32>, %a27: tensor<2xf32>, %a28: tensor<2xf32>, %a29: tensor<2xf32>, %a30:
      tensor<2xf32>, %a31: tensor<2xf32>, %a32: tensor<2xf32>, %a33: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "graph.call_34to1"(
      %a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7, %a8, %a9, %a10, %a11, %a12, %a13, %a14, %a15, %a16, %a17, %a18,
      %a19, %a20, %a21, %a22, %a23, %a24, %a25, %a26, %a27, %a28, %a29, %a30, %a31, %a32, %a33)
      {callee = @first} : (
      tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>,
      tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>,
      tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>,
      tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>,
      tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>)
      -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
