// RUN: relax-opt %s --pass-pipeline='relax-lower-to-llvm{target=x86-64-v3}' | FileCheck %s
// RUN: relax-opt %s --pass-pipeline='relax-lower-to-llvm{target=x86-64-v4}' | FileCheck %s --check-prefix=V4

// Where stores by mask are slow, the first lanes are stored by halves, quarters and so on, as the
// bits of their number say.
// CHECK-LABEL: llvm.func @first
// CHECK-NOT:     masked.store
// CHECK:         llvm.icmp "sge"
// CHECK:         llvm.store {{.*}} : vector<8xf32>, !llvm.ptr
// CHECK:         llvm.intr.smax
// CHECK:         llvm.store {{.*}} : vector<4xf32>, !llvm.ptr
// CHECK:         llvm.store {{.*}} : vector<2xf32>, !llvm.ptr
// CHECK:         llvm.store {{.*}} : vector<1xf32>, !llvm.ptr
// CHECK-NOT:     llvm.store
// CHECK:         llvm.return
// V4-LABEL: llvm.func @first
// V4:         llvm.intr.masked.store
func.func @first(%x: vector<8xf32>, %to: memref<?xf32>, %at: index, %n: index) {
  %keep = vector.create_mask %n : vector<8xi1>
  vector.maskedstore %to[%at], %keep, %x : memref<?xf32>, vector<8xi1>, vector<8xf32>
  return
}

// Any other mask stays one.
// CHECK-LABEL: llvm.func @any
// CHECK:         llvm.intr.masked.store
func.func @any(%x: vector<8xf32>, %to: memref<?xf32>, %at: index, %keep: vector<8xi1>) {
  vector.maskedstore %to[%at], %keep, %x : memref<?xf32>, vector<8xi1>, vector<8xf32>
  return
}
