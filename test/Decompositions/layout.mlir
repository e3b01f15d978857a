// RUN: %PYTHON %ROOT/test/lib/decompose.py %s | relax-opt --relax-verify | FileCheck %s

// DECOMPOSE: @shuffled(x: f32[n, 12, h, 5]) = depth_to_space(x, 2, "CRD")
// CHECK-LABEL: func.func @shuffled
// CHECK-NEXT: %[[S:.*]] = "graph.reshape"(%arg0) {shape = #graph.shape<["n", 3, 2, 2, "h", 5]>}
// CHECK-NEXT: %[[P:.*]] = "graph.permute_dims"(%[[S]]) {axes = array<i64: 0, 1, 4, 2, 5, 3>}
// CHECK-NEXT: "graph.reshape"(%[[P]]) {shape = #graph.shape<["n", 3, "2*h", 10]>}

// DECOMPOSE: @back(x: f32[n, 3, 2*h, 10]) = space_to_depth(x, 2)
// CHECK-LABEL: func.func @back
// CHECK: "graph.permute_dims"(%{{.*}}) {axes = array<i64: 0, 3, 5, 1, 2, 4>}
// CHECK: "graph.reshape"(%{{.*}}) {shape = #graph.shape<["n", 12, "h", 5]>}

// DECOMPOSE: @grid(x: f32[n], y: f32[3]) = meshgrid(x, y, indexing="xy")
// CHECK-LABEL: func.func @grid
// CHECK: "graph.broadcast_to"(%{{.*}}) {shape = #graph.shape<[3, "n"]>}
// CHECK: "graph.broadcast_to"(%{{.*}}) {shape = #graph.shape<[3, "n"]>}

// DECOMPOSE: @blocked(x: f32[n, 8, h, 3]) = layout_transform(x, "NCHW", "NCHW4c")
// CHECK-LABEL: func.func @blocked
// CHECK: %[[X:.*]] = "graph.reshape"(%arg0) {shape = #graph.shape<["n", 2, 4, "h", 3]>}
// CHECK: "graph.permute_dims"(%[[X]]) {axes = array<i64: 0, 1, 3, 4, 2>}
