// RUN: %PYTHON %ROOT/test/lib/decompose.py %s | relax-opt --relax-verify | FileCheck %s

// The input is multiplied once, in front of the loop; rows of y are written in place.
// DECOMPOSE: @forward(x: f32[t, n, 3], w: f32[1, 20, 3], r: f32[1, 20, 5]) = lstm(x, w, r)
// CHECK-LABEL: func.func @forward
// CHECK: %[[X:.*]] = "graph.matmul"(%arg0, %{{.*}}) : {{.*}} -> tensor<?x?x20xf32, #graph.shape<["t", "n", 20]>>
// CHECK: %[[R:.*]] = "graph.permute_dims"(%{{.*}}) {axes = array<i64: 1, 0>} : (tensor<20x5xf32>) -> tensor<5x20xf32>
// CHECK: %[[COUNT:.*]] = tensor.dim %[[X]]
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %[[COUNT]] step %{{.*}} iter_args(%[[Y:.*]] = %{{.*}}, %[[H:.*]] = %{{.*}}, %[[C:.*]] = %{{.*}})
// CHECK: %[[NOW:.*]] = "graph.take"(%[[X]], %{{.*}}) {axis = 0 : i64}
// CHECK: %[[PRODUCT:.*]] = "graph.matmul"(%[[H]], %[[R]])
// CHECK: "graph.add"(%[[NOW]], %[[PRODUCT]])
// CHECK: %[[NEW:.*]] = "graph.dynamic_update_slice"(%[[Y]], %{{.*}}, %{{.*}})
// CHECK: scf.yield %[[NEW]], %{{.*}}, %{{.*}}

// Beyond the end of a sequence rows are 0, and the state stays.
// DECOMPOSE: @lengths(x: f32[t, n, 3], w: f32[1, 5, 3], r: f32[1, 5, 5], s: i32[n]) = rnn(x, w, r, sequence_lens=s)
// CHECK-LABEL: func.func @lengths
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[H:.*]] = %{{.*}})
// CHECK: %[[NEW:.*]] = "graph.tanh"
// CHECK: %[[COUNTS:.*]] = "graph.less"
// CHECK: "graph.where"(%[[COUNTS]], %[[NEW]], %{{.*}})
// CHECK: "graph.where"(%[[COUNTS]], %[[NEW]], %[[H]])
