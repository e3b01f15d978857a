// RUN: %PYTHON %ROOT/test/lib/decompose.py %s | relax-opt --relax-verify | FileCheck %s

// DECOMPOSE: @leaky(x: f32[n]) = leaky_relu(x, 0.25)
// CHECK-LABEL: func.func @leaky
// CHECK: %[[BELOW:.*]] = "graph.less"(%arg0, %{{.*}})
// CHECK: %[[SLOPE:.*]] = "graph.multiply"(%arg0, %{{.*}})
// CHECK: "graph.where"(%[[BELOW]], %[[SLOPE]], %arg0)

// Half precision is widened once, and rounded once.
// DECOMPOSE: @half(x: f16[n]) = elu(x)
// CHECK-LABEL: func.func @half
// CHECK-NEXT: "graph.astype"(%arg0) {dtype = f32}
// CHECK-NOT: graph.astype
// CHECK: graph.expm1
// CHECK: "graph.astype"(%{{.*}}) {dtype = f16}
// CHECK-NEXT: return

// DECOMPOSE: @halves(x: f32[n, 8]) = glu(x)
// CHECK-LABEL: func.func @halves
// CHECK: %[[PARTS:.*]]:2 = "graph.split"(%arg0)
// CHECK: %[[GATE:.*]] = "graph.sigmoid"(%[[PARTS]]#1)
// CHECK: "graph.multiply"(%[[PARTS]]#0, %[[GATE]])
