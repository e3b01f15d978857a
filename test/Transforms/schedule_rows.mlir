// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-schedule{target=x86-64-v3}' | FileCheck %s
// RUN: relax-opt %s --pass-pipeline='relax-legalize-ops,relax-schedule{target=x86-64-v4}' | FileCheck %s --check-prefix=V4

!x = tensor<?x?xf32, #graph.shape<["m", "n"]>>

// The constants of an exponential leave one of 16 registers for sums; of 32, four. The next row is
// prefetched meanwhile, line by line: with every second vector of 32 bytes. Rows of up to two
// vectors have code of their own, with more registers those of up to eight.
// CHECK-LABEL: func.func private @softmax(
// CHECK:         arith.cmpi ult, %{{.*}}, %c16 : index
// CHECK:         } else {
// CHECK:           scf.for %{{.*}} step %c32 iter_args(
// CHECK-SAME:        vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
// CHECK-COUNT-4:     arith.cmpf ogt
// CHECK:           scf.for %{{.*}} step %c16 iter_args(%[[SUM:[^ ]*]] = %{{[^ ]*}})
// CHECK:             memref.prefetch
// CHECK:             math.exp {{.*}} fastmath<afn> {tir.not_positive} : vector<8xf32>
// CHECK-NEXT:        %[[FIRST:.*]] = arith.addf %{{.*}}, %[[SUM]]
// CHECK-NOT:         memref.prefetch
// CHECK:             math.exp {{.*}} fastmath<afn> {tir.not_positive} : vector<8xf32>
// CHECK-NEXT:        %[[SECOND:.*]] = arith.addf %{{.*}}, %[[FIRST]]
// CHECK-COUNT-2:     vector.store
// CHECK-NEXT:        scf.yield %[[SECOND]] : vector<8xf32>

// V4-LABEL: func.func private @softmax(
// V4:         arith.cmpi ult, %{{.*}}, %c128 : index
// V4:         step %c64 iter_args(
// V4-SAME:      vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// V4-COUNT-4:   math.exp {{.*}} fastmath<afn> {tir.not_positive} : vector<16xf32>
// V4-COUNT-4:   vector.store
func.func @rows(%x: !x) -> !x {
  %y = "graph.nn_softmax"(%x) {axis = -1 : i64} : (!x) -> !x
  return %y : !x
}

// 256 bytes of each row at a time, for any vector size.
// CHECK-LABEL: func.func private @softmax_1(
// CHECK:         math.exp {{.*}} : vector<64xf32>
// V4-LABEL:    func.func private @softmax_1(
// V4:            math.exp {{.*}} : vector<64xf32>
func.func @columns(%x: !x) -> !x {
  %y = "graph.nn_softmax"(%x) {axis = 0 : i64} : (!x) -> !x
  return %y : !x
}

// A square of eight is three times eight shuffles, none of which needs an index vector. Narrower
// blocks are stored by masks.
// CHECK-LABEL:   func.func private @permute_dims(
// CHECK-COUNT-8:   vector.load
// CHECK-COUNT-8:   vector.shuffle {{.*}} [{{0, 1, 2, 3, 8, 9, 10, 11|4, 5, 6, 7, 12, 13, 14, 15}}]
// CHECK-NEXT:      vector.shuffle {{.*}} [0, 8, 1, 9, 4, 12, 5, 13]
// CHECK-NEXT:      vector.shuffle {{.*}} [0, 8, 1, 9, 4, 12, 5, 13]
// CHECK-NEXT:      vector.shuffle {{.*}} [0, 1, 8, 9, 4, 5, 12, 13]
// CHECK-NEXT:      vector.shuffle {{.*}} [2, 3, 10, 11, 6, 7, 14, 15]
// CHECK-COUNT-12:  vector.shuffle
// CHECK-NOT:       vector.shuffle
// CHECK:           vector.store
// CHECK:         } else {
// CHECK:           vector.maskedstore
func.func @squares(%x: !x) -> tensor<?x?xf32, #graph.shape<["n", "m"]>> {
  %y = "graph.permute_dims"(%x) {axes = array<i64: 1, 0>} : (!x) -> tensor<?x?xf32, #graph.shape<["n", "m"]>>
  return %y : tensor<?x?xf32, #graph.shape<["n", "m"]>>
}

// 256 columns at once have at least 192 valid ones: the first vectors need no mask.
// V4-LABEL: func.func private @sum(
// V4:         scf.for {{.*}} step %c256
// V4:         %[[USED:.*]] = arith.cmpi ugt, %{{.*}}, %c191 : index
// V4:         scf.if %[[USED]] {
// V4:           vector.load {{.*}} vector<256xf32>
// V4:         } else {
// V4:           %[[SOME:.*]] = vector.create_mask %{{.*}} : vector<64xi1>
// V4:           %[[KEEP:.*]] = vector.insert_strided_slice %[[SOME]], %{{.*}} {offsets = [192], strides = [1]}
// V4:           vector.maskedload %{{.*}}[%{{.*}}], %[[KEEP]], {{.*}} vector<256xf32>
func.func @any_columns(%x: !x) -> tensor<?xf32, #graph.shape<["n"]>> {
  %y = "graph.sum"(%x) {axes = array<i64: 0>, keepdims = false} : (!x) -> tensor<?xf32, #graph.shape<["n"]>>
  return %y : tensor<?xf32, #graph.shape<["n"]>>
}

// Sums of columns process as many columns as registers hold sums; the last ones overlap.
// V4-LABEL: func.func private @sum_1(
// V4:         scf.for
// V4:           vector.load {{.*}} vector<128xf32>
// V4:         vector.store %{{.*}}[%c0] {{.*}} vector<128xf32>
// V4:         scf.for
// V4:           vector.load {{.*}} vector<16xf32>
// V4:         vector.store %{{.*}}[%c113] {{.*}} vector<16xf32>
// V4-NOT:     vector.store
func.func @sums(%x: tensor<577x129xf32>) -> tensor<129xf32> {
  %y = "graph.sum"(%x) {axes = array<i64: 0>, keepdims = false} : (tensor<577x129xf32>) -> tensor<129xf32>
  return %y : tensor<129xf32>
}

// A long sum is divided into blocks: before the next block its part is added to a total, and the
// rounding error to another one. A sum of one block has no total.
// V4-LABEL: func.func private @sum_2(
// V4:         %[[PARTS:.*]]:3 = scf.for %[[FIRST:[^ ]*]] = {{.*}} step %c2048 iter_args(
// V4:           scf.if
// V4:             %[[TOTAL:.*]] = arith.addf
// V4-NEXT:        %[[MOVED:.*]] = arith.subf %[[TOTAL]],
// V4-NEXT:        arith.subf %{{.*}}, %[[MOVED]]
// V4-NEXT:        arith.addf
// V4:           scf.for {{.*}} step %c64 iter_args(
// V4:         scf.if
// V4:           arith.cmpf ord
// V4:           arith.addf %[[PARTS]]#1,
// V4:         vector.create_mask
func.func @long_sum(%x: tensor<?xf32, #graph.shape<["n"]>>) -> tensor<f32> {
  %y = "graph.sum"(%x) {axes = array<i64: 0>, keepdims = false}
    : (tensor<?xf32, #graph.shape<["n"]>>) -> tensor<f32>
  return %y : tensor<f32>
}

// Up to the elements of one block need none.
// V4-LABEL: func.func private @sum_3(
// V4-NOT:     arith.cmpf ord
// V4:         return
func.func @negative_long_sum(%x: tensor<2048xf32>) -> tensor<f32> {
  %y = "graph.sum"(%x) {axes = array<i64: 0>, keepdims = false}
    : (tensor<2048xf32>) -> tensor<f32>
  return %y : tensor<f32>
}
