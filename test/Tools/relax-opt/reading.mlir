// RUN: relax-opt %s --relax-legalize-ops | FileCheck %s

// Dims are read as people write them, and written in canonical form: equal ones are equal types.
// CHECK-LABEL: func.func @written(%arg0: tensor<?xf32, #graph.shape<["k + 1"]>>, %arg1: !graph.shape_value<["j"]>)
// CHECK-SAME:    -> tensor<?xf32, #graph.shape<["k + 1"]>>
// CHECK-NEXT:    %0 = "graph.call_tir"(%arg0) {{.*}} : (tensor<?xf32, #graph.shape<["k + 1"]>>) -> tensor<?xf32, #graph.shape<["k + 1"]>>
// CHECK-NEXT:    "graph.make_shape"() {dims = #graph.shape<["j"]>}
// CHECK-NEXT:    return %0 : tensor<?xf32, #graph.shape<["k + 1"]>>
!a = tensor<?xf32, #graph.shape<["1+k"]>>
!b = tensor<?xf32, #graph.shape<["k+ 1"]>>
func.func @written(%x: !a, %s: !graph.shape_value<["2*j - j"]>) -> !b {
  %0 = "graph.exp"(%x) : (!a) -> !b
  %1 = "graph.make_shape"() {dims = #graph.shape<["2*j - j"]>} : () -> !graph.shape_value<["j"]>
  return %0 : !b
}
