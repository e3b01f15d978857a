// RUN: not relax-opt %s 2>&1 | FileCheck %s

// A dialect that an importer reads is named with it.
// CHECK: negative_stablehlo.mlir:8:8: error: Dialect `stablehlo' not found
// CHECK: note: StableHLO is read by relax_mlir.frontends.stablehlo.from_stablehlo and relax-compile FILE.stablehlo.mlir

func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = stablehlo.add %x, %x : tensor<?xf32>
  return %0 : tensor<?xf32>
}
