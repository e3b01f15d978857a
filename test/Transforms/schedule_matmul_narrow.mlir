// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,symbol-dce,relax-schedule{target=x86-64-v3}' | FileCheck %s

!x = tensor<?x100xf32, #graph.shape<["m", 100]>>
!y = tensor<?x24xf32, #graph.shape<["m", 24]>>

// The second panel of sixteen columns has eight valid ones: its tiles have eight rows of one
// vector. Those of the first panel have six rows of two vectors.
// CHECK-LABEL: func.func private @matmul(
// CHECK-SAME:    tir.schedule = "matmul"
// CHECK:         %[[IS_LAST:.*]] = arith.cmpi ugt, %{{.*}}, %c24 : index
// CHECK-NEXT:    scf.if %[[IS_LAST]] {
// CHECK:           %{{.*}}:8 = scf.for %{{.*}} = %c0 to %c100 step %c1 iter_args
// CHECK-COUNT-8:     vector.fma
// CHECK-NEXT:        scf.yield
// CHECK:         } else {
// CHECK:           %{{.*}}:12 = scf.for %{{.*}} = %c0 to %c100 step %c1 iter_args
// CHECK-COUNT-12:    vector.fma
// CHECK-NEXT:        scf.yield
func.func @main(%x: !x, %w: tensor<100x24xf32>) -> !y {
  %0 = "graph.matmul"(%x, %w) : (!x, tensor<100x24xf32>) -> !y
  return %0 : !y
}
