// RUN: not relax-opt %s --relax-gradient=wrt=z 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not relax-opt %s --relax-gradient=wrt=x,arg1 2>&1 | FileCheck %s --check-prefix=INTEGER

// UNKNOWN: error: 'func.func' op has no argument 'z'; there is x, arg1
// INTEGER: error: 'func.func' op has an argument 'arg1' that is not of floats: it has no gradient
func.func @main(%x: tensor<f32> {graph.name = "x"}, %k: tensor<i64>) -> tensor<f32> {
  return %x : tensor<f32>
}
