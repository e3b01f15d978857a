// RUN: %PYTHON %ROOT/test/lib/decompose.py %s | relax-opt --relax-verify | FileCheck %s

// DECOMPOSE: @rows(x: f32[n, 4], c: i1[n]) = compress(x, c, axis=0)
// CHECK-LABEL: func.func @rows
// CHECK-NOT:   graph.require
// CHECK:       %[[AT:.*]] = "graph.nonzero"(%arg1) : {{.*}} -> tensor<1x?xi64>
// CHECK-NEXT:  %[[ROW:.*]] = "graph.squeeze"(%[[AT]])
// CHECK-NEXT:  "graph.take"(%arg0, %[[ROW]]) {axis = 0 : i64} : {{.*}} -> tensor<?x4xf32>

// A condition of another length must not be longer.
// DECOMPOSE: @shorter(x: f32[n, 4], c: i1[k]) = compress(x, c, axis=0)
// CHECK-LABEL: func.func @shorter
// CHECK:       "graph.require"() {any_of = ["k <= n"], by = "compress"}

// DECOMPOSE: @masked(x: f32[n, 4], c: i1[4]) = masked_select(x, c)
// CHECK-LABEL: func.func @masked
// CHECK:       "graph.broadcast_to"(%arg1) {shape = #graph.shape<["n", 4]>}
// CHECK:       "graph.nonzero"
// CHECK:       "graph.take"({{.*}}) {axis = 0 : i64} : {{.*}} -> tensor<?xf32>
