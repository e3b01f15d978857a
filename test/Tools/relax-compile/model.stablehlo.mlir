// Modules of StableHLO are imported; what is wrong in them is located.

// RUN: relax-compile %s --dim arg0_0=n -O0 --emit=mlir-legalize-ops -o - | FileCheck %s
// RUN: sed 's/%x init/%y init/' %s > %t.stablehlo.mlir
// RUN: exits 1 relax-compile %t.stablehlo.mlir 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: exits 1 relax-compile %s --dim no_such=3 2>&1 | FileCheck %s --check-prefix=DIM

// CHECK: func.func @main(%{{.*}}: tensor<?x4xf32, #graph.shape<["n", 4]>>
// WRONG: .stablehlo.mlir:{{[0-9]+}}:{{[0-9]+}}: error: use of undeclared SSA value name
// DIM: error: no dim is called 'no_such'; there are arg0_0
func.func @main(%x: tensor<?x4xf32>) -> tensor<?xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<?x4xf32>, tensor<f32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
