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

// Four neighbours of each point, by indices that broadcast: rows, columns, images.
// DECOMPOSE: @align(x: f32[n, c, h, w], r: f32[k, 5]) = roi_align(x, r, (7, 7))
// CHECK-LABEL: func.func @align
// CHECK-COUNT-4: "graph.index_tensor"({{.*}}) {axes = array<i64: 0, 1, 2>, {{.*}}} : {{.*}} -> tensor<?x14x14x?xf32, #graph.shape<["k", 14, 14, "c"]>>
// CHECK:       "graph.mean"({{.*}}) {axes = array<i64: 2, 4>, keepdims = false}

// What a part covers is a mask along each axis, so no image is copied for each part.
// DECOMPOSE: @pool(x: f32[n, c, h, w], r: f32[k, 5]) = roi_pool(x, r, (7, 7))
// CHECK-LABEL: func.func @pool
// CHECK:       "graph.max"({{.*}}) {axes = array<i64: 4>, keepdims = false} : {{.*}} -> tensor<?x?x?x7xf32, #graph.shape<["k", "c", "h", 7]>>
// CHECK:       "graph.max"({{.*}}) {axes = array<i64: 4>, keepdims = false} : {{.*}} -> tensor<?x?x7x7xf32, #graph.shape<["k", "c", 7, 7]>>

// A round selects one box of each image, until no image has one that is left.
// DECOMPOSE: @rounds(x: f32[b, n, 6], c: i32[b], i: i32[b, n]) = box_nms(x, c, i, max_output=3)
// CHECK-LABEL: func.func @rounds
// CHECK:       "graph.sort"({{.*}}) {axis = 1 : i64, descending = true
// CHECK:       scf.while {{.*}} : (tensor<?x?xf32, #graph.shape<["b", "n"]>>, {{.*}}) -> {{.*}} {
// CHECK:         scf.condition
// CHECK:         "graph.argmax"({{.*}}) {axis = 1 : i64, keepdims = true}
// CHECK:         scf.yield

// DECOMPOSE: @anchors(c: f16[b, 3, n], l: f16[b, 4*n], a: f16[1, n, 4]) = multibox_transform_loc(c, l, a)
// CHECK-LABEL: func.func @anchors
// CHECK:       "graph.nn_softmax"({{.*}}) {axis = 1 : i64} : {{.*}}xf32
// CHECK:       "graph.stack"({{.*}}) {axis = 2 : i64, {{.*}}} : {{.*}} -> tensor<?x?x4xf32, #graph.shape<["b", "n", 4]>>
