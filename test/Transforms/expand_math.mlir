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
// AVX2:          arith.subf %{{.*}}, %[[SHIFTED]]
// AVX2-NOT:      arith.addf
// AVX2-COUNT-6:  math.fma
// AVX2-NOT:      math.fma
// AVX2:          arith.mulf
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

// The last step of an exponential scales by a power of two and rounds once: AVX-512 has an instruction
// for that, elsewhere there are two factors, so that subnormal results come out.
// AVX512-LABEL: func.func @scaled_once
// AVX512:        llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.pd.512"
// AVX512-NEXT:   return
// AVX2-LABEL:  func.func @scaled_once
// AVX2:          %[[FIRST:.*]] = arith.mulf
// AVX2:          %[[SECOND:.*]] = arith.mulf %[[FIRST]],
// AVX2-NEXT:     return %[[SECOND]]
func.func @scaled_once(%x: vector<8xf64>) -> vector<8xf64> {
  %0 = math.exp %x : vector<8xf64>
  return %0 : vector<8xf64>
}

// The reciprocal of 1 + e^-x is expanded as a whole: its denominator may lie beyond the range.
// CHECK-LABEL: func.func @sigmoid
// CHECK-NOT:     math.exp
// CHECK:         %[[SCALED:.*]] = arith.divf %{{.*}}, %{{.*}} : f32
// CHECK-NEXT:    return %[[SCALED]]
func.func @sigmoid(%x: f32) -> f32 {
  %one = arith.constant 1.0 : f32
  %0 = arith.negf %x : f32
  %1 = math.exp %0 : f32
  %2 = arith.addf %1, %one : f32
  %3 = arith.divf %one, %2 : f32
  return %3 : f32
}

// Other quotients are computed as they are written.
// CHECK-LABEL: func.func @negative_logistic
// CHECK-SAME:    %[[X:.*]]: f32, %[[Y:.*]]: f32
// CHECK:         %[[D:.*]] = arith.addf
// CHECK-NEXT:    arith.divf %[[Y]], %[[D]] : f32
func.func @negative_logistic(%x: f32, %y: f32) -> f32 {
  %one = arith.constant 1.0 : f32
  %0 = arith.negf %x : f32
  %1 = math.exp %0 : f32
  %2 = arith.addf %one, %1 : f32
  %3 = arith.divf %y, %2 : f32
  return %3 : f32
}

// What the attribute names is computed of the first operand, and not what leads to it.
// CHECK-LABEL: func.func @gelu
// CHECK-NOT:     math.erfc
// CHECK:         return
// AVX2-LABEL:  func.func @gelu
// AVX2-NOT:      tir.function
// AVX2:          return
func.func @gelu(%x: f32, %share: f32) -> f32 {
  %0 = arith.mulf %x, %share {tir.function = "gelu"} : f32
  return %0 : f32
}

// Of two operands it is what the first one is the maximum of.
// CHECK-LABEL: func.func @logaddexp
// CHECK-SAME:    %[[A:.*]]: f64, %[[B:.*]]: f64, %
// CHECK:         %[[TOP:.*]] = arith.maximumf %[[A]], %[[B]] : f64
// CHECK:         %[[SUM:.*]] = arith.select %{{.*}}, %{{.*}}, %[[TOP]] : f64
// CHECK-NEXT:    return %[[SUM]]
func.func @logaddexp(%a: f64, %b: f64, %tail: f64) -> f64 {
  %0 = arith.maximumf %a, %b : f64
  %1 = arith.addf %0, %tail {tir.function = "logaddexp"} : f64
  return %1 : f64
}

// Doubles become half precision by way of singles whose last bit says that something was lost.
// CHECK-LABEL: func.func @narrowed_once
// CHECK:         arith.truncf %{{.*}} : f64 to f32
// CHECK:         arith.ori
// CHECK:         arith.truncf %{{.*}} : f32 to bf16
// CHECK-NEXT:    return
func.func @narrowed_once(%x: f64) -> bf16 {
  %0 = arith.truncf %x : f64 to bf16
  return %0 : bf16
}

// Long integers lose bits twice on the way; short ones none.
// CHECK-LABEL: func.func @narrowed_integers
// CHECK:         arith.shli
// CHECK:         arith.sitofp %{{.*}} : i64 to f64
// CHECK:         arith.truncf %{{.*}} : f32 to f16
// CHECK:         arith.sitofp %{{.*}} : i16 to f32
// CHECK-NEXT:    arith.truncf %{{.*}} : f32 to f16
func.func @narrowed_integers(%x: i64, %y: i16) -> (f16, f16) {
  %0 = arith.sitofp %x : i64 to f16
  %1 = arith.sitofp %y : i16 to f16
  return %0, %1 : f16, f16
}
