// What depends on constants alone is evaluated, and constants that nothing reads any more are gone.
// RUN: relax-opt --relax-fold-constants %s | FileCheck %s
// RUN: relax-opt --pass-pipeline='relax-fold-constants{max-bytes=8}' %s | FileCheck %s --check-prefix=SMALL

!n = tensor<?x4xf32, #graph.shape<["n", 4]>>
!m = tensor<?xf32, #graph.shape<["m"]>>
!v = tensor<4xf32>

// CHECK-LABEL: func.func @chain(
// CHECK-NEXT:    %[[C:.*]] = arith.constant dense<[2.000000e+00, 6.000000e+00, 1.200000e+01, 2.000000e+01]>
// CHECK-NEXT:    %[[Y:.*]] = "graph.add"(%{{.*}}, %[[C]])
// CHECK-NEXT:    return %[[Y]]
// SMALL-LABEL: func.func @chain(
// SMALL-NEXT:    arith.constant dense<[2.000000e+00, 6.000000e+00, 1.200000e+01, 2.000000e+01]>
func.func @chain(%x: !n) -> !n {
  %c = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : !v
  %0 = "graph.multiply"(%c, %c) : (!v, !v) -> !v
  %1 = "graph.add"(%0, %c) : (!v, !v) -> !v
  %2 = "graph.add"(%x, %1) : (!n, !v) -> !n
  return %2 : !n
}

// A permutation, a broadcast or a range costs nothing where it is read: what is before it is kept.
// CHECK-LABEL: func.func @movement(
// CHECK-NEXT:    %[[C:.*]] = arith.constant dense<{{\[\[}}2.000000e+00, 4.000000e+00]]>
// CHECK-NEXT:    %[[P:.*]] = "graph.permute_dims"(%[[C]])
// CHECK-NEXT:    %[[B:.*]] = "graph.broadcast_to"(%[[P]])
// CHECK-NEXT:    %[[R:.*]] = "graph.arange"()
// CHECK-NEXT:    return %[[B]], %[[R]]
func.func @movement() -> (tensor<2x900xf32>, tensor<4xi64>) {
  %c = arith.constant dense<[[1.0, 2.0]]> : tensor<1x2xf32>
  %0 = "graph.add"(%c, %c) : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x2xf32>
  %1 = "graph.permute_dims"(%0) {axes = array<i64: 1, 0>} : (tensor<1x2xf32>) -> tensor<2x1xf32>
  %2 = "graph.broadcast_to"(%1) {shape = #graph.shape<[2, 900]>} : (tensor<2x1xf32>) -> tensor<2x900xf32>
  %3 = "graph.arange"() {bounds = #graph.shape<[0, 4, 1]>, dtype = i64} : () -> tensor<4xi64>
  return %2, %3 : tensor<2x900xf32>, tensor<4xi64>
}

// Bounded: an outer sum of 40 elements is 400, a repeated element stays repeated.
// CHECK-LABEL: func.func @bounds(
// CHECK-NOT:     graph.add
// CHECK:         arith.constant dense<3.000000e+00> : tensor<3xf32>
// CHECK:         "graph.exp"
// SMALL-LABEL: func.func @bounds(
// SMALL:         %[[O:.*]] = "graph.add"
// SMALL:         "graph.add"
// SMALL:         "graph.exp"
func.func @bounds() -> (tensor<4x4xi32>, tensor<3xf32>, tensor<300x300xf32>) {
  %a = arith.constant dense<[[1, 2, 3, 4]]> : tensor<1x4xi32>
  %b = arith.constant dense<[[5], [6], [7], [8]]> : tensor<4x1xi32>
  %0 = "graph.add"(%a, %b) : (tensor<1x4xi32>, tensor<4x1xi32>) -> tensor<4x4xi32>
  %s = arith.constant dense<1.5> : tensor<3xf32>
  %1 = "graph.add"(%s, %s) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %t = arith.constant dense<2.0> : tensor<300x300xf32>
  %2 = "graph.exp"(%t) : (tensor<300x300xf32>) -> tensor<300x300xf32>
  return %0, %1, %2 : tensor<4x4xi32>, tensor<3xf32>, tensor<300x300xf32>
}

// What depends on an input or a symbol stays, and so does decoding. Regions are looked into.
// CHECK-LABEL: func.func @negative(
// CHECK:         "graph.broadcast_to"
// CHECK:         "graph.dequantize"
// CHECK:         scf.if
// CHECK-NEXT:      arith.constant dense<[2, 4]>
// CHECK-NEXT:      scf.yield
func.func @negative(%x: !m, %p: i1) -> (!m, tensor<16x32xf32>, tensor<2xi32>) {
  %c = arith.constant dense<[3.0]> : tensor<1xf32>
  %0 = "graph.broadcast_to"(%c) {shape = #graph.shape<["m"]>} : (tensor<1xf32>) -> !m
  %1 = "graph.add"(%x, %0) : (!m, !m) -> !m
  %q = arith.constant dense<3> : tensor<1x1x2x4x16x4xi8>
  %s = arith.constant dense<0.5> : tensor<1x1x16xf16>
  %w = "graph.dequantize"(%q, %s) {scheme = "q8_0", operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0>} : (tensor<1x1x2x4x16x4xi8>, tensor<1x1x16xf16>) -> tensor<16x32xf32>
  %i = arith.constant dense<[1, 2]> : tensor<2xi32>
  %2 = scf.if %p -> tensor<2xi32> {
    %3 = "graph.add"(%i, %i) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
    scf.yield %3 : tensor<2xi32>
  } else {
    scf.yield %i : tensor<2xi32>
  }
  return %1, %w, %2 : !m, tensor<16x32xf32>, tensor<2xi32>
}
