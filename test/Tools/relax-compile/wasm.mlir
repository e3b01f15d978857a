// RUN: rm -rf %t && mkdir %t && cd %t && cp %s model.mlir
// RUN: relax-compile model.mlir --target=wasm32
// RUN: relax-run %t/model.wasm --list | FileCheck %s
// RUN: relax-run %t/model.wasm --input 3,4
// RUN: not relax-compile model.mlir --target=wasm32 --external-data 2>&1 | FileCheck %s --check-prefix=DATA
// RUN: not relax-compile model.mlir --target=wasm64 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: head -c 900 model.wasm > short.wasm
// RUN: not relax-run short.wasm --list 2>&1 | FileCheck %s --check-prefix=SHORT
// RUN: relax-compile model.mlir --target=wasm32-relaxed --emit=llvm | FileCheck %s --check-prefix=RELAXED

// CHECK: main(x: i64[2]) -> (i64[2])
func.func @main(%x: tensor<2xi64> {graph.name = "x"}) -> tensor<2xi64> {
  %0 = "graph.add"(%x, %x) : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  return %0 : tensor<2xi64>
}

// DATA: relax-compile: --external-data is about shared objects, not modules for wasm32
// NAME: unknown target 'wasm64'
// SHORT: relax-run: cannot load 'short.wasm': the engine refuses it
// RELAXED: define i32 @rx_fn_main
