// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-lower-dataflow,relax-schedule{target=x86-64-v3})' | FileCheck %s

// What an instance has for itself, threads take once for all instances that they run.
// CHECK-LABEL: func.func private @own_node
// CHECK:         scf.parallel
// CHECK-NEXT:      %[[MARK:.*]] = memref.alloc() : memref<1xi8>
// CHECK-DAG:       %[[OWN:.*]] = memref.alloc() {{.*}} : memref<8xf32>
// CHECK:           scf.for
// CHECK-NOT:         memref.alloc
// CHECK:             memref.store %{{.*}}, %[[OWN]]
// CHECK-NOT:         memref.alloc
// CHECK:           memref.dealloc %[[MARK]]
// CHECK-NEXT:      scf.reduce
func.func private @own(%row: tensor<8xf32>) -> f32 attributes {tir.leaf} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 8 : index
  %z = arith.constant 0.0 : f32
  %e = tensor.splat %z : tensor<8xf32>
  %0 = scf.for %i = %zero to %n step %one iter_args(%t = %e) -> tensor<8xf32> {
    %x = tensor.extract %row[%i] : tensor<8xf32>
    %c = arith.fptosi %x : f32 to i64
    %j = arith.index_cast %c : i64 to index
    %1 = tensor.extract %t[%j] : tensor<8xf32>
    %2 = arith.addf %1, %x : f32
    %3 = tensor.insert %2 into %t[%j] : tensor<8xf32>
    scf.yield %3 : tensor<8xf32>
  }
  %r = tensor.extract %0[%zero] : tensor<8xf32>
  return %r : f32
}
#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
func.func @main(%x: tensor<?x8xf32, #graph.shape<["n", 8]>>) -> tensor<?xf32, #graph.shape<["n"]>> {
  %0 = "graph.node"(%x) {callee = @own, grid = #graph.shape<["n"]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<?x8xf32, #graph.shape<["n", 8]>>) -> tensor<?xf32, #graph.shape<["n"]>>
  return %0 : tensor<?xf32, #graph.shape<["n"]>>
}
