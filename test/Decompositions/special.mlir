// RUN: %PYTHON %ROOT/test/lib/decompose.py %s | relax-opt --relax-verify | FileCheck %s

// In f64, by Clenshaw's recurrence, and rounded once.
// DECOMPOSE: @scaled(x: f32[n]) = modified_bessel_k0(x, scaled=True)
// CHECK-LABEL: func.func @scaled
// CHECK: "graph.astype"(%arg0) {dtype = f64}
// CHECK-COUNT-20: "graph.subtract"
// CHECK: %[[ROUNDED:.*]] = "graph.astype"(%{{.*}}) {dtype = f32}
// CHECK: return %[[ROUNDED]]

// Two series differ in coefficients that are chosen, not in steps.
// DECOMPOSE: @waves(x: f64[n]) = bessel_j0(x)
// CHECK-LABEL: func.func @waves
// CHECK-NOT: graph.astype
// CHECK: %[[NEAR:.*]] = "graph.less"
// CHECK: "graph.where"(%[[NEAR]], %{{.*}}, %{{.*}}) : {{.*}}tensor<f64>, tensor<f64>
// CHECK: "graph.sin"
// CHECK: "graph.cos"
// CHECK: return

// A sum and a fraction, each until it is exact for all elements.
// DECOMPOSE: @incomplete(a: f32[n, m], x: f32[m]) = igamma(a, x)
// CHECK-LABEL: func.func @incomplete
// CHECK: scf.while
// CHECK: "graph.any"
// CHECK: scf.condition
// CHECK: scf.while
// CHECK: scf.condition
// CHECK: return %{{.*}} : tensor<?x?xf32, #graph.shape<["n", "m"]>>

// DECOMPOSE: @running(x: f32[n, m]) = logcumsumexp(x, axis=1)
// CHECK-LABEL: func.func @running
// CHECK: scf.for
// CHECK: "graph.logaddexp"
// CHECK: "graph.dynamic_update_slice"
