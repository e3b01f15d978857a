// RUN: %PYTHON %ROOT/test/lib/decompose.py %s | relax-opt --relax-verify | FileCheck %s

// A group is as many rows as it has: its bounds are symbols of its round, and checked.
// DECOMPOSE: @rows(x: f32[n, 4], w: f32[g, 4, 8], e: i32[g]) = grouped_mm(x, w, e)
// CHECK-LABEL: func.func @rows
// CHECK:       scf.for
// CHECK:         "graph.match_cast"({{.*}}) : {{.*}} -> !graph.shape_value<["group_begin_0", "group_end_0"]>
// CHECK-NEXT:    "graph.require"() {any_of = ["group_begin_0 <= group_end_0"], by = "grouped_mm"}
// CHECK-NEXT:    "graph.require"() {any_of = ["group_end_0 <= n"], by = "grouped_mm"}
// CHECK:         "graph.matmul"
// CHECK:         "graph.slice_scatter"({{.*}}begin = #graph.shape<["group_begin_0"]>, end = #graph.shape<["group_end_0"]>

// DECOMPOSE: @counts(x: f32[n]) = histc(x, 8, -1, 1)
// CHECK-LABEL: func.func @counts
// CHECK:       "graph.scatter_elements"({{.*}}) {axis = 0 : i64, reduction = "add"} : (tensor<8xi64>, {{.*}}) -> tensor<8xi64>

// DECOMPOSE: @masked(x: f32[n, 4], m: i1[n, 4], s: f32[k]) = masked_scatter(x, m, s)
// CHECK-LABEL: func.func @masked
// CHECK:       "graph.assert"({{.*}}) {format = "masked_scatter has too few elements for its mask"
// CHECK:       "graph.cumsum"

// What is cut off is padding below 0.
// DECOMPOSE: @center(x: f32[n, 9]) = center_crop_pad(x, [4, 5])
// CHECK-LABEL: func.func @center
// CHECK:       "graph.pad"({{.*}}) {high = #graph.shape<[{{.*}}, -2]>, interior = array<i64: 0, 0>, low = #graph.shape<[{{.*}}, -2]>

// One axis after the other.
// DECOMPOSE: @windows(x: f32[5, m + 3]) = reduce_window(x, "add", [2, 3])
// CHECK-LABEL: func.func @windows
// CHECK:       "graph.sum"({{.*}}) {axes = array<i64: 0>, keepdims = false} : {{.*}} -> tensor<4x?xf32
// CHECK:       "graph.sum"({{.*}}) {axes = array<i64: 1>, keepdims = false} : {{.*}} -> tensor<4x?xf32, #graph.shape<[4, "m + 1"]>>
