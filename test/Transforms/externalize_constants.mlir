// Large constants become data, by a name that follows from their bytes; small ones and those that
// repeat one number stay.
// RUN: relax-opt --relax-externalize-constants --elide-constants %s | FileCheck %s
// RUN: relax-opt --relax-externalize-constants %s | relax-opt --relax-externalize-constants | FileCheck %s --check-prefix=TEXT
// RUN: relax-opt --relax-externalize-constants --emit-bytecode %s | relax-opt | FileCheck %s --check-prefix=TEXT

// CHECK-LABEL: func.func @large
// CHECK: arith.constant dense_resource<data_[[NAME:[0-9a-f]+]]> : tensor<300xi8>
// CHECK: arith.constant dense_resource<mine> : tensor<2xf32>
// CHECK-LABEL: func.func @small
// CHECK: arith.constant dense<[1, 2, 3]> : tensor<3xi8>
// CHECK: arith.constant dense<7> : tensor<300xi8>
// CHECK-NOT: "0x

// TEXT: arith.constant dense_resource<data_[[NAME:[0-9a-f]+]]> : tensor<300xi8>
// TEXT-DAG: data_[[NAME]]: "0x01000000{{(2A)+(2B)+}}"
// TEXT-DAG: mine: "0x040000000000803F00000040"
func.func @large() -> (tensor<300xi8>, tensor<300xi8>, tensor<2xf32>) {
  %0 = arith.constant dense<"0x2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B"> : tensor<300xi8>
  %1 = arith.constant dense<"0x2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2A2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B2B"> : tensor<300xi8>
  %2 = arith.constant dense_resource<mine> : tensor<2xf32>
  return %0, %1, %2 : tensor<300xi8>, tensor<300xi8>, tensor<2xf32>
}

func.func @small() -> (tensor<3xi8>, tensor<300xi8>) {
  %0 = arith.constant dense<[1, 2, 3]> : tensor<3xi8>
  %1 = arith.constant dense<7> : tensor<300xi8>
  return %0, %1 : tensor<3xi8>, tensor<300xi8>
}

// A megabyte of one element is filled in where it is read; zeros take no bytes.
// CHECK-LABEL: func.func @splats
// CHECK:         %[[S:.*]] = arith.constant dense<2.500000e+00> : tensor<f32>
// CHECK-NEXT:    %[[F:.*]] = "graph.full"(%[[S]]) {shape = #graph.shape<[512, 512]>} : (tensor<f32>) -> tensor<512x512xf32>
// CHECK-NEXT:    %[[Z:.*]] = arith.constant dense<0.000000e+00> : tensor<512x512xf32>
// CHECK-NEXT:    %[[N:.*]] = arith.constant dense<1> : tensor<1048575xi8>
// CHECK-NEXT:    return %[[F]], %[[Z]], %[[N]]
func.func @splats() -> (tensor<512x512xf32>, tensor<512x512xf32>, tensor<1048575xi8>) {
  %0 = arith.constant dense<2.5> : tensor<512x512xf32>
  %1 = arith.constant dense<0.0> : tensor<512x512xf32>
  %2 = arith.constant dense<1> : tensor<1048575xi8>
  return %0, %1, %2 : tensor<512x512xf32>, tensor<512x512xf32>, tensor<1048575xi8>
}

{-# dialect_resources: { builtin: { mine: "0x040000000000803F00000040" } } #-}
