// RUN: relax-opt %s --pass-pipeline='relax-lower-calls,relax-plan-memory' --pretty | FileCheck %s --check-prefix=BEFORE
// RUN: relax-opt %s --pass-pipeline='relax-lift-workspace' --check-equivalent-after-each --pretty | FileCheck %s --check-prefix=LIFTED
// RUN: relax-opt %s --pass-pipeline='relax-lift-workspace,relax-lower-calls,relax-plan-memory' --pretty | FileCheck %s

// Workspace lifting (paper Figure 11): a product that is divided along k has partial sums, which
// the tensor program allocates by itself. Lifted to the graph function, they are planned with its
// tensors: they have the memory that the gate has later, and need none of their own.

!x = tensor<?x8xf32, #graph.shape<["n", 8]>>
!w = tensor<8x4xf32>
!y = tensor<?x4xf32, #graph.shape<["n", 4]>>
!g = tensor<?x8xf32, #graph.shape<["n", 8]>>

// BEFORE-LABEL: func @main(
// BEFORE:         graph.alloc_storage() {{.*}}64*((n + 1) floordiv 2)
// BEFORE-NOT:     graph.alloc_storage
// BEFORE:         graph.call_dps @split_k(%arg0, %arg1, %{{[0-9]+}})

// LIFTED-LABEL: func @main(
// LIFTED-NEXT:    %0, %1 = graph.call_tir @split_k(%arg0, %arg1) : tensor<n x 4 x f32>, tensor<8*n x f32>
// LIFTED-NEXT:    %2 = graph.call_tir @repeat(%0)
// LIFTED:       func private @split_k(%arg0: memref<?x8xf32>, %arg1: memref<8x4xf32>, %arg2: memref<?x4xf32>, %arg3: memref<?xf32>)
// LIFTED-NOT:     memref.alloc

// CHECK-LABEL: func @main(
// CHECK:         %[[S:.*]] = graph.alloc_storage() {{.*}}64*((n + 1) floordiv 2)
// CHECK-NOT:     graph.alloc_storage
// CHECK:         %[[T:.*]] = graph.alloc_tensor(%[[S]]) {{.*}} : tensor<8*n x f32>
// CHECK-NEXT:    graph.call_dps @split_k(%arg0, %arg1, %{{[0-9]+}}, %[[T]])
// CHECK-NEXT:    %[[G:.*]] = graph.alloc_tensor(%[[S]]) {{.*}} : tensor<n x 8 x f32>
func.func @main(%x: !x, %w: !w) -> (!y, !g) {
  %0 = "graph.call_tir"(%x, %w) {callee = @split_k, sym_args = #graph.shape<[]>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (!x, !w) -> !y
  %1 = "graph.call_tir"(%0) {callee = @repeat, sym_args = #graph.shape<[]>, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (!y) -> !g
  %2 = "graph.call_tir"(%1) {callee = @negate, sym_args = #graph.shape<[]>, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (!g) -> !g
  return %0, %2 : !y, !g
}

// Task s sums the products of the 4 columns from 4*s on.
func.func private @split_k(%x: memref<?x8xf32>, %w: memref<8x4xf32>, %y: memref<?x4xf32>)
    attributes {tir.prim_func, tir.num_outs = 1 : i64, tir.scheduled} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %x, %c0 : memref<?x8xf32>
  %size = arith.muli %n, %c8 : index
  %sums = memref.alloc(%size) : memref<?xf32>
  scf.parallel (%s) = (%c0) to (%c2) step (%c1) {
    %begin = arith.muli %s, %c4 : index
    scf.for %i = %c0 to %n step %c1 {
      scf.for %j = %c0 to %c4 step %c1 {
        %sum = scf.for %k = %c0 to %c4 step %c1 iter_args(%acc = %zero) -> (f32) {
          %p = arith.addi %begin, %k : index
          %a = memref.load %x[%i, %p] : memref<?x8xf32>
          %b = memref.load %w[%p, %j] : memref<8x4xf32>
          %ab = arith.mulf %a, %b : f32
          %next = arith.addf %acc, %ab : f32
          scf.yield %next : f32
        }
        %si = arith.muli %s, %n : index
        %row = arith.addi %si, %i : index
        %first = arith.muli %row, %c4 : index
        %at = arith.addi %first, %j : index
        memref.store %sum, %sums[%at] : memref<?xf32>
      }
    }
    scf.reduce
  }
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    scf.for %j = %c0 to %c4 step %c1 {
      %sum = scf.for %s = %c0 to %c2 step %c1 iter_args(%acc = %zero) -> (f32) {
        %si = arith.muli %s, %n : index
        %row = arith.addi %si, %i : index
        %first = arith.muli %row, %c4 : index
        %at = arith.addi %first, %j : index
        %part = memref.load %sums[%at] : memref<?xf32>
        %next = arith.addf %acc, %part : f32
        scf.yield %next : f32
      }
      memref.store %sum, %y[%i, %j] : memref<?x4xf32>
    }
    scf.reduce
  }
  memref.dealloc %sums : memref<?xf32>
  return
}

func.func private @repeat(%y: !y, %g: !g) -> !g attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %in = tensor.cast %y : !y to tensor<?x4xf32>
  %out = tensor.cast %g : !g to tensor<?x8xf32>
  %0 = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j floordiv 2)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%in : tensor<?x4xf32>) outs(%out : tensor<?x8xf32>) {
  ^bb0(%element: f32, %old: f32):
    linalg.yield %element : f32
  } -> tensor<?x8xf32>
  %result = tensor.cast %0 : tensor<?x8xf32> to !g
  return %result : !g
}

func.func private @negate(%x: !g, %y: !g) -> !g attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %in = tensor.cast %x : !g to tensor<?x8xf32>
  %out = tensor.cast %y : !g to tensor<?x8xf32>
  %0 = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%in : tensor<?x8xf32>) outs(%out : tensor<?x8xf32>) {
  ^bb0(%element: f32, %old: f32):
    %1 = arith.negf %element : f32
    linalg.yield %1 : f32
  } -> tensor<?x8xf32>
  %result = tensor.cast %0 : tensor<?x8xf32> to !g
  return %result : !g
}
