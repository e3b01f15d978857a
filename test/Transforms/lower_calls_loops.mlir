// RUN: relax-opt %s --relax-lower-calls | FileCheck %s --enable-var-scope

#in1  = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>

!k = tensor<?xf32, #graph.shape<["k"]>>
!twice = tensor<?xf32, #graph.shape<["2*k"]>>
!n = tensor<?xf32, #graph.shape<["n"]>>

func.func private @twice(%x: !n, %out: tensor<?xf32, #graph.shape<["2*n"]>>) -> tensor<?xf32, #graph.shape<["2*n"]>> attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  return %out : tensor<?xf32, #graph.shape<["2*n"]>>
}

// What grows is kept apart from what a round makes.
// CHECK-LABEL: func.func @grows
// CHECK-SAME:    %[[X:[a-z0-9]*]]: tensor<?xf32>
func.func @grows(%x: tensor<?xf32>, %rounds: index) -> tensor<?xf32> {
  // CHECK-NOT: graph.alloc_tensor
  // CHECK:     scf.for {{.*}} iter_args(%[[A:.*]] = %[[X]]) -> (tensor<?xf32>)
  // CHECK:       %[[NEW:.*]] = "graph.alloc_tensor"()
  // CHECK:       "graph.call_dps"({{.*}}, %[[NEW]])
  // CHECK:       %[[OPEN:.*]] = "graph.match_cast"(%[[NEW]])
  // CHECK-NEXT:  %[[KEPT:.*]] = "graph.keep"(%[[OPEN]])
  // CHECK-NEXT:  scf.yield %[[KEPT]]
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %rounds step %c1 iter_args(%a = %x) -> tensor<?xf32> {
    %0 = "graph.match_cast"(%a) : (tensor<?xf32>) -> !k
    %1 = "graph.call_tir"(%0) {callee = @twice, sym_args = #graph.shape<[]>, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!k) -> !twice
    %2 = "graph.match_cast"(%1) : (!twice) -> tensor<?xf32>
    scf.yield %2 : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}

// The older of two tensors is saved before the memory that it lies in is given to the newer one.
// CHECK-LABEL: func.func @two_generations
func.func @two_generations(%x: tensor<?xf32>, %rounds: index) -> tensor<?xf32> {
  // CHECK:       scf.for {{.*}} iter_args(%[[A:.*]] = %{{.*}}, %{{.*}} = %{{.*}})
  // CHECK:       %[[K:.*]] = "graph.match_cast"(%[[A]])
  // CHECK:       "graph.call_dps"(%[[K]], %{{.*}})
  // CHECK:       %[[SAVED:.*]] = "graph.alloc_tensor"()
  // CHECK-NEXT:  "graph.copy"(%[[K]], %[[SAVED]])
  // CHECK:       "graph.keep"
  // CHECK-NEXT:  %[[OLD:.*]] = "graph.match_cast"(%[[SAVED]])
  // CHECK-NEXT:  "graph.keep"(%[[OLD]])
  // CHECK-NEXT:  scf.yield
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %i = %c0 to %rounds step %c1 iter_args(%a = %x, %b = %x) -> (tensor<?xf32>, tensor<?xf32>) {
    %0 = "graph.match_cast"(%a) : (tensor<?xf32>) -> !k
    %1 = "graph.call_tir"(%0) {callee = @twice, sym_args = #graph.shape<[]>, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!k) -> !twice
    %2 = "graph.match_cast"(%1) : (!twice) -> tensor<?xf32>
    %3 = "graph.match_cast"(%0) : (!k) -> tensor<?xf32>
    scf.yield %2, %3 : tensor<?xf32>, tensor<?xf32>
  }
  return %r#1 : tensor<?xf32>
}

// Scalars are stored; what is inserted into an argument goes to a copy of it, which all rounds use.
// CHECK-LABEL: func.func @elements
// CHECK-SAME:    %[[X:[a-z0-9]*]]: tensor<4xf32>
func.func @elements(%x: tensor<4xf32>, %e: f32) -> (tensor<4xf32>, tensor<2xf32>) {
  // CHECK:      %[[Y:.*]] = "graph.alloc_tensor"()
  // CHECK-NEXT: "graph.copy"(%[[X]], %[[Y]])
  // CHECK-NEXT: %[[R:.*]] = scf.for %[[I:.*]] = {{.*}} iter_args(%[[A:.*]] = %[[Y]])
  // CHECK-NOT:  graph.copy
  // CHECK:        "graph.store"(%{{.*}}, %[[A]], %[[I]])
  // CHECK-NEXT:   scf.yield %[[A]]
  // CHECK:      %[[NEW:.*]] = "graph.alloc_tensor"() {{.*}} -> tensor<2xf32>
  // CHECK:      "graph.store"(%{{.*}}, %[[NEW]], %{{.*}})
  // CHECK:      "graph.store"(%{{.*}}, %[[NEW]], %{{.*}})
  // CHECK-NEXT: return %[[R]], %[[NEW]]
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x) -> tensor<4xf32> {
    %0 = tensor.insert %e into %a[%i] : tensor<4xf32>
    scf.yield %0 : tensor<4xf32>
  }
  %both = tensor.from_elements %e, %e : tensor<2xf32>
  return %r, %both : tensor<4xf32>, tensor<2xf32>
}
