// RUN: relax-opt %s --relax-legalize-ops | FileCheck %s
// RUN: relax-opt %s --relax-legalize-ops --relax-verify --relax-annotate-pattern --relax-fuse-ops --relax-fuse-tir | FileCheck %s --check-prefix=FUSED
// RUN: relax-opt %s --relax-legalize-ops --relax-lower-calls | FileCheck %s --check-prefix=MEMORY

!u = tensor<?xui8, #graph.shape<["n"]>>
!s = tensor<?xi8, #graph.shape<["n"]>>
!b = tensor<?xi1, #graph.shape<["n"]>>
!f = tensor<?xf32, #graph.shape<["n"]>>

// Calls pass unsigned tensors to programs that say in their ops what is unsigned.
// CHECK-LABEL: func.func @order(
// CHECK:         "graph.call_tir"(%{{.*}}, %{{.*}}) {callee = @maximum, {{.*}} : (tensor<?xui8, #graph.shape<["n"]>>, tensor<?xui8, #graph.shape<["n"]>>) -> tensor<?xui8
// CHECK:         callee = @less,
func.func @order(%x: !u, %y: !u) -> !b {
  %0 = "graph.maximum"(%x, %y) : (!u, !u) -> !u
  %1 = "graph.less"(%0, %y) : (!u, !u) -> !b
  return %1 : !b
}

// FUSED-LABEL: func.func private @fused_maximum_less(
// FUSED-SAME:    tensor<?xi8, #graph.shape<["n"]>>, %{{.*}}: tensor<?xi8, #graph.shape<["n"]>>, %{{.*}}: tensor<?xi1
// FUSED:         arith.maxui
// FUSED-NEXT:    arith.cmpi ult

// Signed and unsigned integers have programs of their own.
// CHECK-LABEL: func.func @signed(
// CHECK:         callee = @maximum_1,
func.func @signed(%x: !s, %y: !s) -> !s {
  %0 = "graph.maximum"(%x, %y) : (!s, !s) -> !s
  return %0 : !s
}

// CHECK-LABEL: func.func @conversions(
// CHECK:         callee = @astype,
// CHECK:         callee = @astype_1,
func.func @conversions(%x: !u) -> (!f, !u) {
  %0 = "graph.astype"(%x) {dtype = f32} : (!u) -> !f
  %1 = "graph.astype"(%0) {dtype = ui8} : (!f) -> !u
  return %0, %1 : !f, !u
}

// Where only the sign changes, nothing is done, and constants are written as signless.
// MEMORY-LABEL: func.func @same_memory(
// MEMORY-NEXT:    %[[V:.*]] = "graph.view"(%{{.*}}) : (tensor<?xi8, #graph.shape<["n"]>>) -> tensor<?xui8, #graph.shape<["n"]>>
// MEMORY-NEXT:    %[[C:.*]] = arith.constant dense<-1> : tensor<4xi8>
// MEMORY-NEXT:    %[[U:.*]] = "graph.view"(%[[C]]) : (tensor<4xi8>) -> tensor<4xui8>
// MEMORY-NEXT:    return %[[V]], %[[U]]
func.func @same_memory(%x: !s) -> (!u, tensor<4xui8>) {
  %0 = "graph.astype"(%x) {dtype = ui8} : (!s) -> !u
  %c = arith.constant dense<-1> : tensor<4xi8>
  %1 = "graph.bitcast"(%c) {dtype = ui8} : (tensor<4xi8>) -> tensor<4xui8>
  return %0, %1 : !u, tensor<4xui8>
}

// CHECK: func.func private @maximum(%{{.*}}: tensor<?xi8, #graph.shape<["n"]>>
// CHECK:   arith.maxui %{{.*}} : i8
// CHECK: func.func private @less(
// CHECK:   arith.cmpi ult, %{{.*}} : i8
// CHECK: func.func private @maximum_1(
// CHECK:   arith.maxsi %{{.*}} : i8
// CHECK: func.func private @astype(
// CHECK:   arith.uitofp %{{.*}} : i8 to f32
// CHECK: func.func private @astype_1(
// CHECK:   arith.constant 2.560000e+02 : f32
// CHECK:   arith.fptoui %{{.*}} : f32 to i8
