# RUN: %PYTHON %s | FileCheck %s
"""An approximated gelu, as JAX writes it out, is an operator."""

import relax_mlir
from relax_mlir.frontends.stablehlo import from_stablehlo

# CHECK:      kernels
# CHECK-NEXT:   1x gelu_tanh elementwise gelu_tanh
TEXT = """
!t = tensor<4x8xf32>
func.func @main(%x: !t) -> !t {
  %half = stablehlo.constant dense<5.0e-01> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : !t
  %angle = stablehlo.constant dense<0.797884583> : tensor<f32>
  %third = stablehlo.constant dense<4.471500e-02> : !t
  %halves = stablehlo.broadcast_in_dim %half, dims = [] : (tensor<f32>) -> !t
  %angles = stablehlo.broadcast_in_dim %angle, dims = [] : (tensor<f32>) -> !t
  %0 = stablehlo.multiply %x, %x : !t
  %1 = stablehlo.multiply %0, %x : !t
  %2 = stablehlo.multiply %third, %1 : !t
  %3 = stablehlo.add %x, %2 : !t
  %4 = stablehlo.multiply %angles, %3 : !t
  %5 = stablehlo.tanh %4 : !t
  %6 = stablehlo.add %one, %5 : !t
  %7 = stablehlo.multiply %halves, %6 : !t
  %8 = stablehlo.multiply %x, %7 : !t
  return %8 : !t
}"""
print(relax_mlir.explain(from_stablehlo(TEXT)))
