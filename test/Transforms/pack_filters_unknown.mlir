// RUN: relax-opt %s --relax-pack-filters='target=x86-64-v4' | FileCheck %s

// Of any number of filters, the number of panels is not known either.
// CHECK:       func.func @main
// CHECK:         "graph.call_tir"({{.*}}) {callee = @pack_filters,
// CHECK-SAME:      -> tensor<?x3x3x3x32xf32>
// CHECK:         {callee = @conv_packed,
func.func private @conv(%x: tensor<1x3x8x8xf32>, %w: tensor<?x3x3x3xf32>, %o: tensor<1x?x6x6xf32>) -> tensor<1x?x6x6xf32> attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %c = arith.constant 0.0 : f32
  %z = linalg.fill ins(%c : f32) outs(%o : tensor<1x?x6x6xf32>) -> tensor<1x?x6x6xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(n,f,y,x,c,u,v) -> (n,c,y+u,x+v)>, affine_map<(n,f,y,x,c,u,v) -> (f,c,u,v)>, affine_map<(n,f,y,x,c,u,v) -> (n,f,y,x)>], iterator_types = ["parallel","parallel","parallel","parallel","reduction","reduction","reduction"]} ins(%x, %w : tensor<1x3x8x8xf32>, tensor<?x3x3x3xf32>) outs(%z : tensor<1x?x6x6xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  } -> tensor<1x?x6x6xf32>
  return %r : tensor<1x?x6x6xf32>
}
func.func @main(%x: tensor<1x3x8x8xf32>, %w: tensor<?x3x3x3xf32>) -> tensor<1x?x6x6xf32> attributes {graph.num_inputs = 1 : i64} {
  %0 = "graph.call_tir"(%x, %w) {callee = @conv, sym_args = #graph.shape<[]>, operandSegmentSizes = array<i32: 1,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0>, resultSegmentSizes = array<i32: 1,0,0,0,0,0,0,0>} : (tensor<1x3x8x8xf32>, tensor<?x3x3x3xf32>) -> tensor<1x?x6x6xf32>
  return %0 : tensor<1x?x6x6xf32>
}
