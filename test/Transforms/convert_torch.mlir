// RUN: relax-opt %s --split-input-file --relax-convert-torch --relax-verify --pretty | FileCheck %s

// Dims that PyTorch's dialect leaves open are symbols, and equal where an op needs them to be.
// CHECK-LABEL: func @linear(%arg0: tensor<arg0_0 x 4 x f32>, %arg1: tensor<4 x 3 x f32>, %arg2: tensor<3 x f32>) -> tensor<arg0_0 x 3 x f32>
// CHECK:         graph.call_tir @matmul(%arg0, %arg1) : tensor<arg0_0 x 3 x f32>
// CHECK:         graph.call_tir @select({{.*}} : tensor<arg0_0 x 3 x f32>
func.func @linear(%x: !torch.vtensor<[?,4],f32>, %w: !torch.vtensor<[4,3],f32>, %b: !torch.vtensor<[3],f32>) -> !torch.vtensor<[?,3],f32> {
  %one = torch.constant.int 1
  %0 = torch.aten.mm %x, %w : !torch.vtensor<[?,4],f32>, !torch.vtensor<[4,3],f32> -> !torch.vtensor<[?,3],f32>
  %1 = torch.aten.add.Tensor %0, %b, %one : !torch.vtensor<[?,3],f32>, !torch.vtensor<[3],f32>, !torch.int -> !torch.vtensor<[?,3],f32>
  %zeros = torch.vtensor.literal(dense<0.0> : tensor<3xf32>) : !torch.vtensor<[3],f32>
  %2 = torch.aten.maximum %1, %zeros : !torch.vtensor<[?,3],f32>, !torch.vtensor<[3],f32> -> !torch.vtensor<[?,3],f32>
  return %2 : !torch.vtensor<[?,3],f32>
}

// -----

// What torch-mlir asserts of dims are facts.
// CHECK-LABEL: func @asserted(%arg0: tensor<arg{{.}}_0 x f32>, %arg1: tensor<arg{{.}}_0 x f32>)
func.func @asserted(%x: !torch.vtensor<[?],f32>, %y: !torch.vtensor<[?],f32>) -> !torch.vtensor<[?],f32> {
  %0 = torch.aten.mul.Tensor %x, %y : !torch.vtensor<[?],f32>, !torch.vtensor<[?],f32> -> !torch.vtensor<[?],f32>
  return %0 : !torch.vtensor<[?],f32>
}

// -----

// A dim that is expanded is 1 or as long as the result's.
// CHECK-LABEL: func @expanded(%arg0: tensor<arg0_0 x f32>, %arg1: tensor<arg1_0 x f32>) -> tensor<arg1_0 x f32>
// CHECK:         graph.require arg0_0 == arg1_0 or arg0_0 == 1 by linalg.generic
func.func @expanded(%x: !torch.vtensor<[?],f32>, %y: !torch.vtensor<[?],f32>) -> !torch.vtensor<[?],f32> {
  %zero = torch.constant.int 0
  %n = torch.aten.size.int %y, %zero : !torch.vtensor<[?],f32>, !torch.int -> !torch.int
  %dims = torch.prim.ListConstruct %n : (!torch.int) -> !torch.list<int>
  %0 = torch.aten.broadcast_to %x, %dims : !torch.vtensor<[?],f32>, !torch.list<int> -> !torch.vtensor<[?],f32>
  return %0 : !torch.vtensor<[?],f32>
}

// -----

// A scan is an operator.
// CHECK-LABEL: func @scan(%arg0: tensor<arg0_0 x f32>)
// CHECK:         graph.cumsum(%arg0) {axis=0 : i64, exclusive=false, reverse=false} : tensor<arg0_0 x f32>
func.func @scan(%x: !torch.vtensor<[?],f32>) -> !torch.vtensor<[?],f32> {
  %zero = torch.constant.int 0
  %none = torch.constant.none
  %0 = torch.aten.cumsum %x, %zero, %none : !torch.vtensor<[?],f32>, !torch.int, !torch.none -> !torch.vtensor<[?],f32>
  return %0 : !torch.vtensor<[?],f32>
}
