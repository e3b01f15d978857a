// RUN: relax-opt %s --pass-pipeline='relax-expand-math' | FileCheck %s
// RUN: relax-opt %s --pass-pipeline='relax-expand-math{target=x86-64-v4}' | FileCheck %s --check-prefix=AVX512
// RUN: relax-opt %s --pass-pipeline='relax-expand-math{target=x86-64-v3}' | FileCheck %s --check-prefix=AVX2

// CHECK-LABEL: func.func @exp
// CHECK-NOT:     math.exp
// CHECK:         math.fma {{.*}} : vector<16xf32>
// CHECK-NOT:     math.exp
// CHECK:         return
func.func @exp(%x: vector<16xf32>) -> vector<16xf32> {
  %0 = math.exp %x : vector<16xf32>
  return %0 : vector<16xf32>
}

// There are instructions for square roots.
// CHECK-LABEL: func.func @negative_sqrt
// CHECK-NEXT:    math.sqrt
// CHECK-NEXT:    return
func.func @negative_sqrt(%x: f32) -> f32 {
  %0 = math.sqrt %x : f32
  return %0 : f32
}

// An exponential that may be approximate is two polynomial coefficients shorter; AVX-512 has
// instructions for what is around them.
// CHECK-LABEL: func.func @approximate
// AVX512-LABEL: func.func @approximate
// AVX512-NEXT:   arith.constant
// AVX512-NEXT:   %[[T:.*]] = arith.mulf
// AVX512:        %[[F:.*]] = llvm.call_intrinsic "llvm.x86.avx512.mask.reduce.ps.512"(%[[T]],
// AVX512-COUNT-5: math.fma
// AVX512-NOT:    math.fma
// AVX512:        llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"
// AVX2-LABEL:  func.func @approximate
// AVX2-NOT:      call_intrinsic
// AVX2:          return
func.func @approximate(%x: vector<16xf32>) -> vector<16xf32> {
  %0 = math.exp %x fastmath<afn> : vector<16xf32>
  return %0 : vector<16xf32>
}

// Of what is never positive, the nearest power of two is taken, without additions for rounding down
// and an upper bound; AVX-512 has no use for that.
// AVX512-LABEL: func.func @approximate_of_negative
// AVX512:        llvm.call_intrinsic "llvm.x86.avx512.mask.reduce.ps.512"
// AVX2-LABEL:  func.func @approximate_of_negative
// AVX2:          arith.select
// AVX2-NOT:      arith.select
// AVX2:          %[[SHIFTED:.*]] = math.fma
// AVX2:          %[[N:.*]] = arith.subf %[[SHIFTED]],
// AVX2-NOT:      arith.addf
// AVX2-COUNT-6:  math.fma
// AVX2-NEXT:     arith.mulf
// AVX2-NEXT:     return
func.func @approximate_of_negative(%x: vector<16xf32>) -> vector<16xf32> {
  %0 = math.exp %x fastmath<afn> {tir.not_positive} : vector<16xf32>
  return %0 : vector<16xf32>
}

// Powers of two are that without the multiplication.
// AVX512-LABEL: func.func @approximate_power_of_two
// AVX512-SAME:   (%[[T:.*]]: vector<16xf32>)
// AVX512-NOT:    arith.mulf
// AVX512:        llvm.call_intrinsic "llvm.x86.avx512.mask.reduce.ps.512"(%[[T]],
// AVX512-COUNT-5: math.fma
// AVX512-NOT:    math.fma
// AVX512:        llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"
func.func @approximate_power_of_two(%x: vector<16xf32>) -> vector<16xf32> {
  %0 = math.exp2 %x fastmath<afn> : vector<16xf32>
  return %0 : vector<16xf32>
}
