// RUN: %PYTHON %ROOT/test/lib/decompose.py %s | relax-opt --relax-verify | FileCheck %s

// DECOMPOSE: @line(x: f32[n, 4, w], k: f32[6, 4, 3]) = conv(x, k, strides=[2], padding=[1, 0])
// CHECK-LABEL: func.func @line
// CHECK: "graph.nn_conv2d"(%{{.*}}, %{{.*}}) {dilation = array<i64: 1, 1>, groups = 1 : i64, padding = array<i64: 0, 1, 0, 0>, strides = array<i64: 1, 2>}

// Taps along the first dim become channels.
// DECOMPOSE: @volume(x: f32[n, 4, 5, 6, 7], k: f32[6, 4, 2, 3, 3]) = conv(x, k)
// CHECK-LABEL: func.func @volume
// CHECK: "graph.take"(%arg0, %{{.*}}) {axis = 2 : i64} : ({{.*}}, tensor<2x4xi64>)
// CHECK: "graph.nn_conv2d"(%{{.*}}, %{{.*}}) {{.*}} : (tensor<?x8x6x7xf32, #graph.shape<["4*n", 8, 6, 7]>>, tensor<6x8x3x3xf32>)

// A depth that may be smaller than a window is checked, as the rule of nn_conv2d has it for others.
// DECOMPOSE: @deep(x: f32[n, 4, d, 6, 7], k: f32[6, 4, 3, 3, 3]) = conv(x, k)
// CHECK-LABEL: func.func @deep
// CHECK: "graph.require"() {any_of = ["3 <= d + 1"], by = "graph.nn_conv2d"}

// Four taps are two for each of two phases: one convolution of twice as many filters.
// DECOMPOSE: @even(x: f32[n, 4, w], k: f32[4, 6, 4]) = conv_transpose(x, k, strides=[2])
// CHECK-LABEL: func.func @even
// CHECK: "graph.nn_conv2d"(%{{.*}}, %{{.*}}) {{.*}} : ({{.*}}, tensor<12x4x1x2xf32>)
// CHECK-NOT: graph.nn_conv2d
// CHECK: return %{{.*}} : tensor<?x6x?xf32, #graph.shape<["n", 6, "2*w + 2"]>>

// Of three taps one phase has two, the other one.
// DECOMPOSE: @odd(x: f32[n, 4, w], k: f32[4, 6, 3]) = conv_transpose(x, k, strides=[2])
// CHECK-LABEL: func.func @odd
// CHECK: "graph.nn_conv2d"(%{{.*}}, %{{.*}}) {{.*}} : ({{.*}}, tensor<6x4x1x2xf32>)
// CHECK: "graph.nn_conv2d"(%{{.*}}, %{{.*}}) {{.*}} : ({{.*}}, tensor<6x4x1x1xf32>)
// CHECK: "graph.concat"
// CHECK: "graph.pad"
// CHECK: return %{{.*}} : tensor<?x6x?xf32, #graph.shape<["n", 6, "2*w + 1"]>>

// Windows of filters whose extents are not known are columns of a product.
// DECOMPOSE: @any(x: f32[n, 4, h, w], k: f32[6, 4, i, j]) = conv(x, k, strides=[2, 1])
// CHECK-LABEL: func.func @any
// CHECK-DAG: "graph.require"() {any_of = ["i <= h + 2"], by = "conv"}
// CHECK-DAG: "graph.require"() {any_of = ["j <= w + 1"], by = "conv"}
// CHECK: "graph.matmul"({{.*}}) : (tensor<1x6x?xf32, #graph.shape<[1, 6, "4*i*j"]>>, {{.*}})

// Of transposed ones, products are added up where they belong.
// DECOMPOSE: @spread(x: f32[n, 4, w], k: f32[4, 6, i]) = conv_transpose(x, k, strides=[2])
// CHECK-LABEL: func.func @spread
// CHECK: "graph.scatter_elements"({{.*}}) {axis = 2 : i64, reduction = "add"}
// CHECK: return %{{.*}} : tensor<?x6x?xf32, #graph.shape<["n", 6, "i + 2*w - 2"]>>
