// RUN: relax-opt %s --split-input-file --pass-pipeline='relax-lower-to-llvm{target=neoverse-v1}' | FileCheck %s
// RUN: relax-opt %s --split-input-file --pass-pipeline='relax-lower-to-llvm{target=riscv64-v+vector-bytes=32}' | FileCheck %s --check-prefix=RVV

// In vectors longer than those of NEON, products are of SVE's, whose length LLVM may rely on.
// CHECK-LABEL: llvm.func @product(
// CHECK-SAME:    vscale_range(2, 2)
// CHECK:         %[[SUMS:.*]] = llvm.intr.vector.insert %{{.*}}, %{{.*}}[0] : vector<8xi32> into vector<[4]xi32>
// CHECK:         llvm.intr.vector.insert %{{.*}}, %{{.*}}[0] : vector<32xi8> into vector<[16]xi8>
// CHECK:         %[[NEW:.*]] = llvm.call_intrinsic "llvm.aarch64.sve.usdot"(%[[SUMS]], {{.*}}) : (vector<[4]xi32>, vector<[16]xi8>, vector<[16]xi8>) -> vector<[4]xi32>
// CHECK:         llvm.intr.vector.extract %[[NEW]][0] : vector<8xi32> from vector<[4]xi32>
func.func @product(%x: memref<?xi8>, %y: memref<?xi32>) attributes {tir.scheduled} {
  %c0 = arith.constant 0 : index
  %a = vector.load %x[%c0] : memref<?xi8>, vector<32xi8>
  %s = vector.load %y[%c0] : memref<?xi32>, vector<8xi32>
  %r = llvm.call_intrinsic "llvm.aarch64.neon.usdot"(%s, %a, %a) : (vector<8xi32>, vector<32xi8>, vector<32xi8>) -> vector<8xi32>
  vector.store %r, %y[%c0] : memref<?xi32>, vector<8xi32>
  return
}

// -----

// RVV's vectors may be longer; those who ask for the length are not answered by an assumption.
// RVV-LABEL: llvm.func @sum(
// RVV-SAME:    vscale_range(4, 0)
// RVV:       llvm.func @scale(
// RVV-NOT:     vscale_range
// RVV:       llvm.func @short(
func.func @sum(%x: memref<?xf32>) attributes {tir.scheduled} {
  %c0 = arith.constant 0 : index
  %a = vector.load %x[%c0] : memref<?xf32>, vector<8xf32>
  %r = arith.addf %a, %a : vector<8xf32>
  vector.store %r, %x[%c0] : memref<?xf32>, vector<8xf32>
  return
}
func.func @scale() -> i64 {
  %r = "llvm.intr.vscale"() : () -> i64
  return %r : i64
}

// -----

// Without long vectors nothing is assumed.
// CHECK-LABEL: llvm.func @short(
// CHECK-NOT:     vscale_range
func.func @short(%x: memref<?xf32>) attributes {tir.scheduled} {
  %c0 = arith.constant 0 : index
  %a = vector.load %x[%c0] : memref<?xf32>, vector<4xf32>
  vector.store %a, %x[%c0] : memref<?xf32>, vector<4xf32>
  return
}

// -----

// Elements of bf16 are integers until they are in scalable vectors. Modules with such products round by an instruction.
// CHECK-LABEL: llvm.func @pairs(
// CHECK:         %[[BITS:.*]] = llvm.bitcast %{{.*}} : vector<16xbf16> to vector<16xi16>
// CHECK:         %[[ALL:.*]] = llvm.intr.vector.insert %[[BITS]], %{{.*}}[0] : vector<16xi16> into vector<[8]xi16>
// CHECK:         %[[PAIRS:.*]] = llvm.bitcast %[[ALL]] : vector<[8]xi16> to vector<[8]xbf16>
// CHECK:         llvm.call_intrinsic "llvm.aarch64.sve.bfdot"({{.*}}, %[[PAIRS]], {{.*}}) : (vector<[4]xf32>, vector<[8]xbf16>, vector<[8]xbf16>) -> vector<[4]xf32>
// CHECK:         llvm.call_intrinsic "llvm.aarch64.sve.fcvt.bf16f32.v2"
// CHECK:         llvm.trunc %{{.*}} : vector<8xi32> to vector<8xi16>
// CHECK-NOT:     llvm.fptrunc
func.func @pairs(%x: memref<?xbf16>, %y: memref<?xf32>, %n: index) attributes {tir.scheduled} {
  %c0 = arith.constant 0 : index
  %zeros = arith.constant dense<0.0> : vector<16xbf16>
  %m = vector.create_mask %n : vector<16xi1>
  %a = vector.maskedload %x[%c0], %m, %zeros : memref<?xbf16>, vector<16xi1>, vector<16xbf16> into vector<16xbf16>
  %s = vector.load %y[%c0] : memref<?xf32>, vector<8xf32>
  %r = llvm.call_intrinsic "llvm.aarch64.neon.bfdot"(%s, %a, %a) : (vector<8xf32>, vector<16xbf16>, vector<16xbf16>) -> vector<8xf32>
  %h = arith.truncf %r : vector<8xf32> to vector<8xbf16>
  vector.store %h, %x[%c0] : memref<?xbf16>, vector<8xbf16>
  return
}
