// RUN: %PYTHON %ROOT/test/lib/decompose.py %s | relax-opt --relax-verify | FileCheck %s

// DECOMPOSE: @codes(x: f32[n, 4], s: f32[4], z: i8[4]) = quantize_linear(x, s, z, element=ir.IntegerType.get_signless(8))
// CHECK-LABEL: func.func @codes
// CHECK: %[[STEPS:.*]] = "graph.divide"(%arg0, %arg1)
// CHECK: %[[WHOLE:.*]] = "graph.round"(%[[STEPS]])
// CHECK: "graph.add"(%[[WHOLE]], %{{.*}})
// CHECK: "graph.astype"(%{{.*}}) {dtype = i8}

// Differences do not fit into 8 bits: bytes are multiplied, and what zero points change is taken off.
// DECOMPOSE: @product(a: i8[n, k], b: i8[k, 7], p: i8[], q: i8[7]) = matmul_integer(a, b, p, q)
// CHECK-LABEL: func.func @product
// CHECK: %[[A:.*]] = "graph.astype"(%arg0) {dtype = i32}
// CHECK: %[[B:.*]] = "graph.astype"(%arg1) {dtype = i32}
// CHECK: %[[BYTES:.*]] = "graph.matmul"(%[[A]], %[[B]]) : {{.*}} -> tensor<?x7xi32, #graph.shape<["n", 7]>>
// CHECK: %[[ROWS:.*]] = "graph.sum"(%{{.*}}) {axes = array<i64: 1>, keepdims = true}
// CHECK: %[[BY_ROW:.*]] = "graph.multiply"(%[[ROWS]], %{{.*}})
// CHECK: %[[LESS:.*]] = "graph.subtract"(%[[BYTES]], %[[BY_ROW]])
// CHECK: %[[COLUMNS:.*]] = "graph.sum"(%{{.*}}) {axes = array<i64: 0>, keepdims = true}
// CHECK: %[[BY_COLUMN:.*]] = "graph.multiply"(%{{.*}}, %[[COLUMNS]])
// CHECK: "graph.subtract"(%[[LESS]], %[[BY_COLUMN]])

// 27 products of up to 255 * 255 are exact in f32, 900 are not.
// DECOMPOSE: @few(x: i8[n, 3, 9, 9], w: i8[4, 3, 3, 3]) = conv_integer(x, w)
// CHECK-LABEL: func.func @few
// CHECK: "graph.nn_conv2d"(%{{.*}}, %{{.*}}) {{.*}} -> tensor<?x4x7x7xf32
// DECOMPOSE: @many(x: i8[n, 100, 9, 9], w: i8[4, 100, 3, 3]) = conv_integer(x, w)
// CHECK-LABEL: func.func @many
// CHECK: "graph.nn_conv2d"(%{{.*}}, %{{.*}}) {{.*}} -> tensor<?x4x7x7xf64
