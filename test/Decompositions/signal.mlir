// RUN: %PYTHON %ROOT/test/lib/decompose.py %s | relax-opt --relax-verify | FileCheck %s

// 400 elements are two passes of 20.
// DECOMPOSE: @smooth(x: f32[n, 400, 2]) = fft(x)
// CHECK-LABEL: func.func @smooth
// CHECK: "graph.matmul"(%{{.*}}, %{{.*}}) : (tensor<40x40xf32>, tensor<?x40x20xf32, #graph.shape<["n", 40, 20]>>)
// CHECK: "graph.flip"
// CHECK: "graph.matmul"(%{{.*}}, %{{.*}}) : (tensor<?x40xf32, #graph.shape<["20*n", 40]>>, tensor<40x40xf32>)
// CHECK-NOT: graph.matmul
// CHECK: return %{{.*}} : tensor<?x400x2xf32, #graph.shape<["n", 400, 2]>>

// 131 is prime: a convolution by transforms of 512 elements, one there and one back.
// DECOMPOSE: @prime(x: f32[n, 131, 2]) = fft(x)
// CHECK-LABEL: func.func @prime
// CHECK: "graph.pad"(%{{.*}}, %{{.*}}) {high = #graph.shape<[0, 0, 381]>
// CHECK-COUNT-4: "graph.matmul"
// CHECK-NOT: graph.matmul
// CHECK: return

// Parts of real signals take one product with the half of the matrix that is needed.
// DECOMPOSE: @parts(x: f32[b, n, 1], w: f32[16]) = stft(x, 4, w)
// CHECK-LABEL: func.func @parts
// CHECK: "graph.require"() {any_of = ["16 <= n"], by = "@stft"}
// CHECK: "graph.take"(%arg0, %{{.*}}) {axis = 1 : i64}
// CHECK: "graph.matmul"(%{{.*}}, %{{.*}}) : ({{.*}}, tensor<16x18xf32>)

// DECOMPOSE: @any(x: f32[b, n, 2]) = fft(x)
// CHECK-LABEL: func.func @any
// CHECK: "graph.remainder"(%{{.*}}, %{{.*}}) : {{.*}} -> tensor<?x?xi64, #graph.shape<["n", "n"]>>
// CHECK-COUNT-2: "graph.matmul"
// CHECK: } else {
// CHECK: "graph.match_cast"({{.*}}) : {{.*}} -> !graph.shape_value<["extended_0"]>
// CHECK-COUNT-3: scf.for
