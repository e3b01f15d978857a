// RUN: relax-opt %s --pass-pipeline='relax-expand-math' | FileCheck %s

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
