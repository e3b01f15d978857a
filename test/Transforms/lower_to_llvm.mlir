// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='relax-lower-to-llvm{target=x86-64-v4}' | FileCheck %s

// Memrefs are passed as scalars; scratch memory is the runtime's; buffers do not overlap.
// CHECK-LABEL: llvm.func @kernel
// CHECK-SAME:    (%{{[a-z0-9]*}}: !llvm.ptr, %[[DATA:[a-z0-9]*]]: !llvm.ptr {llvm.noalias}
// CHECK-SAME:    "prefer-vector-width", "512"
// CHECK:         llvm.call @_mlir_memref_to_llvm_alloc
// CHECK:         %[[AT:.*]] = llvm.getelementptr {{.*}}f32
// CHECK:         llvm.load %[[AT]] {alignment = 4 : i64} : !llvm.ptr -> vector<16xf32>
// CHECK:         llvm.call @_mlir_memref_to_llvm_free
// CHECK:         llvm.return
func.func private @kernel(%x: memref<?xf32>, %n: index) attributes {tir.scheduled} {
  %c0 = arith.constant 0 : index
  %scratch = memref.alloc(%n) : memref<?xf32>
  %0 = vector.load %x[%n] : memref<?xf32>, vector<16xf32>
  vector.store %0, %scratch[%c0] : memref<?xf32>, vector<16xf32>
  memref.dealloc %scratch : memref<?xf32>
  return
}

// -----

func.func @negative_tensor(%x: memref<f32>, %v: f32) {
  // expected-error @below {{'linalg.fill' op has no lowering to LLVM}}
  linalg.fill ins(%v : f32) outs(%x : memref<f32>)
  return
}
