// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='relax-outline-parallel' | FileCheck %s

// Where there is work for several threads, the buffer and the bounds are passed in memory. The constant
// is copied.
// CHECK-LABEL: func.func private @scale(
// CHECK-SAME:    %[[X:.*]]: memref<?xf32>, %[[N:.*]]: index
// CHECK:         %[[DATA:.*]] = llvm.alloca
// CHECK:         %[[ITERATIONS:.*]] = arith.maxsi
// CHECK:         %[[FEW:.*]] = arith.cmpi sle, %[[ITERATIONS]], %c8{{.*}}
// CHECK:         scf.if %[[FEW]]
// CHECK:           func.call @scale_parallel0(%[[X]], {{.*}}, %[[ITERATIONS]])
// CHECK:         else
// CHECK:         builtin.unrealized_conversion_cast %[[X]] : memref<?xf32> to !llvm.struct
// CHECK:         %[[TASK:.*]] = llvm.mlir.addressof @scale_parallel0_task
// CHECK:         %[[COUNT:.*]] = arith.index_cast %[[ITERATIONS]]
// CHECK:         %[[GRAIN:.*]] = llvm.mlir.constant(8 : i64)
// CHECK:         llvm.call @rx_parallel_for(%[[TASK]], %[[DATA]], %[[COUNT]], %[[GRAIN]])
// CHECK-NOT:     scf.parallel
// CHECK:       func.func private @scale_parallel0(
// CHECK-SAME:    %[[BUFFER:.*]]: memref<?xf32>, %[[BEGIN:.*]]: index, %{{.*}}: index) attributes {tir.scheduled}
// CHECK:         arith.constant 2.0
// CHECK:         arith.muli %[[BEGIN]]
// CHECK:         scf.for %[[I:[a-z0-9]*]] =
// CHECK:           memref.load %[[BUFFER]][%[[I]]]
// CHECK:       llvm.func @scale_parallel0_task(%{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64)
// CHECK:         call @scale_parallel0(
// CHECK:       llvm.func @rx_parallel_for(!llvm.ptr, !llvm.ptr, i64, i64)
func.func private @scale(%x: memref<?xf32>, %n: index) attributes {tir.scheduled} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %two = arith.constant 2.0 : f32
  scf.parallel (%i) = (%c0) to (%n) step (%c4) {
    %0 = memref.load %x[%i] : memref<?xf32>
    %1 = arith.mulf %0, %two : f32
    memref.store %1, %x[%i] : memref<?xf32>
    scf.reduce
  } {tir.grain = 8 : i64}
  return
}

// -----

// Buffers whose sizes no iteration changes serve all iterations; the last of them is freed first.
// CHECK-LABEL: func.func private @buffers_parallel0(
// CHECK-SAME:    %[[M:[a-z0-9]*]]: index, %{{.*}}: index, %{{.*}}: index)
// CHECK:         %[[FIRST:.*]] = memref.alloc() : memref<32xf32>
// CHECK-NEXT:    %[[SECOND:.*]] = memref.alloc(%[[M]]) : memref<?xf32>
// CHECK-NEXT:    scf.for
// CHECK:           %[[OWN:.*]] = memref.alloc(%{{.*}}) : memref<?xf32>
// CHECK:           memref.dealloc %[[OWN]]
// CHECK-NEXT:    }
// CHECK-NEXT:    memref.dealloc %[[SECOND]]
// CHECK-NEXT:    memref.dealloc %[[FIRST]]
// CHECK-NEXT:    return
func.func private @buffers(%n: index, %m: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %first = memref.alloc() : memref<32xf32>
    %second = memref.alloc(%m) : memref<?xf32>
    %own = memref.alloc(%i) : memref<?xf32>
    %0 = memref.load %first[%c0] : memref<32xf32>
    memref.store %0, %second[%c0] : memref<?xf32>
    memref.store %0, %own[%c0] : memref<?xf32>
    memref.dealloc %own : memref<?xf32>
    memref.dealloc %second : memref<?xf32>
    memref.dealloc %first : memref<32xf32>
    scf.reduce
  }
  return
}

// -----

// CHECK-LABEL: func.func @negative_no_loop
// CHECK-NOT:     rx_parallel_for
func.func @negative_no_loop() {
  return
}

// -----

func.func @negative_two_dims(%n: index) {
  // expected-error @below {{'scf.parallel' op has 6 bounds, steps and initial values}}
  scf.parallel (%i, %j) = (%n, %n) to (%n, %n) step (%n, %n) {
    scf.reduce
  }
  return
}
