// RUN: %PYTHON %ROOT/test/lib/decompose.py %s | relax-opt --relax-verify | FileCheck %s

// DECOMPOSE: @doubled(x: f32[1, 3, h, 4]) = resize(x, [2, 3], scales=[2.0, 2.0], coordinates="asymmetric", nearest="floor")
// CHECK-LABEL: func.func @doubled
// CHECK: "graph.take"(%arg0, %{{.*}}) {axis = 2 : i64} : ({{.*}}) -> tensor<1x3x?x4xf32, #graph.shape<[1, 3, "2*h", 4]>>
// CHECK: "graph.take"(%{{.*}}, %{{.*}}) {axis = 3 : i64} : ({{.*}}, tensor<8xi64>)
// CHECK: return %{{.*}} : tensor<1x3x?x8xf32, #graph.shape<[1, 3, "2*h", 8]>>

// Two elements for each one of the result, with their shares.
// DECOMPOSE: @between(x: f16[n, w]) = resize(x, [1], sizes=[7], mode="linear")
// CHECK-LABEL: func.func @between
// CHECK: %[[WIDE:.*]] = "graph.astype"(%arg0) {dtype = f32}
// CHECK: graph.floor
// CHECK-COUNT-2: "graph.take"(%[[WIDE]], %{{.*}}) {axis = 1 : i64}
// CHECK: "graph.astype"(%{{.*}}) {dtype = f16}
// CHECK-NEXT: return
