// RUN: %PYTHON %ROOT/test/lib/decompose.py %s | relax-opt --relax-verify | FileCheck %s

// The last digit that stays is rounded by what is added to the bits, in the type itself.
// DECOMPOSE: @codes(x: f32[n]) = encode_float(x, "f8E4M3FN")
// CHECK-LABEL: func.func @codes
// CHECK: %[[SIZE:.*]] = "graph.abs"(%arg0)
// CHECK: %[[BITS:.*]] = "graph.bitcast"(%[[SIZE]]) {dtype = i32}
// CHECK: "graph.logical_right_shift"(%[[BITS]], %{{.*}})
// CHECK: "graph.round"
// CHECK: return %{{.*}} : tensor<?xi8, #graph.shape<["n"]>>

// DECOMPOSE: @values(x: i8[n]) = decode_float(x, "f8E5M2", ir.F16Type.get())
// CHECK-LABEL: func.func @values
// CHECK: "graph.bitwise_and"
// CHECK: %[[SIZE:.*]] = "graph.bitwise_and"
// CHECK: "graph.left_shift"(%[[SIZE]]
// CHECK: "graph.bitcast"(%{{.*}}) {dtype = f32}
// CHECK: "graph.less"(%[[SIZE]]
// CHECK: return %{{.*}} : tensor<?xf16, #graph.shape<["n"]>>
