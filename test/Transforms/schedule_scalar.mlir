// RUN: relax-opt %s --relax-schedule=target=x86-64-v3 | FileCheck %s

// Programs without a vector form are bufferized by MLIR, as scalar loops.

// CHECK-LABEL: func.func private @running_sum(%arg0: memref<?xf32>, %arg1: memref<?xf32>)
// CHECK-SAME: tir.schedule = "scalar"
// CHECK-NOT: memref.alloc
// CHECK: %[[SUM:.*]] = scf.for {{.*}} iter_args(%[[S:.*]] = %{{.*}}) -> (f32)
// CHECK-NEXT: memref.load %arg0
// CHECK-NEXT: %[[T:.*]] = arith.addf %[[S]]
// CHECK-NEXT: memref.store %[[T]], %arg1
// CHECK-NEXT: scf.yield %[[T]]
func.func private @running_sum(%x: tensor<?xf32>, %out: tensor<?xf32>) -> tensor<?xf32> attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %s, %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero, %a = %out) -> (f32, tensor<?xf32>) {
    %e = tensor.extract %x[%i] : tensor<?xf32>
    %t = arith.addf %s, %e : f32
    %b = tensor.insert %t into %a[%i] : tensor<?xf32>
    scf.yield %t, %b : f32, tensor<?xf32>
  }
  return %r : tensor<?xf32>
}

// Narrow floats are computed in f32, predicates take a byte, constants have unique names, and
// carried tensors that loops permute are copied to scratch memory, which each iteration frees.

// CHECK-LABEL: memref.global "private" constant @exchange_constant_0 : memref<2xbf16>
// CHECK: func.func private @exchange(%arg0: memref<2xbf16>, %arg1: memref<2xbf16>, %arg2: memref<2xi8>)
// CHECK-NEXT: %[[MARK:.*]] = memref.alloc() : memref<1xi8>
// CHECK: scf.for
// CHECK: memref.alloc() : memref<1xi8>
// CHECK: arith.extf {{.*}} : bf16 to f32
// CHECK: memref.dealloc
// CHECK-NEXT: }
// CHECK: arith.extui {{.*}} : i1 to i8
// CHECK: memref.dealloc %[[MARK]]
// CHECK-NEXT: return
func.func private @exchange(%x: tensor<2xbf16>, %out: tensor<2xbf16>, %less: tensor<2xi1>)
    -> (tensor<2xbf16>, tensor<2xi1>) attributes {tir.prim_func, tir.num_outs = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %k = arith.constant dense<[1.0, 2.0]> : tensor<2xbf16>
  %r:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %k, %b = %x) -> (tensor<2xbf16>, tensor<2xbf16>) {
    %s = arith.addf %a, %b : tensor<2xbf16>
    scf.yield %b, %s : tensor<2xbf16>, tensor<2xbf16>
  }
  %l = arith.cmpf olt, %r#0, %r#1 : tensor<2xbf16>
  return %r#0, %l : tensor<2xbf16>, tensor<2xi1>
}

// Constant padding is loops like any other.

// CHECK-LABEL: func.func private @pad
// CHECK-SAME: tir.schedule = "elementwise"
// CHECK: vector.store
func.func private @pad(%x: tensor<4x64xf32>, %out: tensor<4x80xf32>) -> tensor<4x80xf32> attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %c = arith.constant 1.0 : f32
  %p = tensor.pad %x low[0, 0] high[0, 16] {
  ^bb0(%i: index, %j: index):
    tensor.yield %c : f32
  } : tensor<4x64xf32> to tensor<4x80xf32>
  return %p : tensor<4x80xf32>
}
