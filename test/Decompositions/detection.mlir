// RUN: %PYTHON %ROOT/test/lib/decompose.py %s | relax-opt --relax-verify | FileCheck %s

// Absent bounds are those that no box is beyond.
// DECOMPOSE: @boxes(b: f32[1, n, 4], s: f32[1, c, n]) = non_max_suppression(b, s, 5, 0.5)
// CHECK-LABEL: func.func @boxes
// CHECK-DAG:   arith.constant dense<5> : tensor<i64>
// CHECK-DAG:   arith.constant dense<0xFF800000> : tensor<f32>
// CHECK:       %[[SELECTED:.*]] = "graph.vision_nms"
// CHECK:       "graph.nonzero"({{.*}}) : {{.*}} -> tensor<3x?xi64>
// CHECK:       "graph.gather_nd"(%[[SELECTED]], %{{.*}}) {batch_dims = 0 : i64} : {{.*}} -> tensor<?xi64>
// CHECK:       "graph.concat"({{.*}}) {axis = 1 : i64, {{.*}}} : {{.*}} -> tensor<?x3xi64>
