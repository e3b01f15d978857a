// Functions of linalg, by name; linalg_cases.py has what they compute.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#rest = affine_map<(d0)[s0] -> (-d0 + s0, 4)>

func.func @convolution(%x: tensor<?x?x?x3xf32>, %w: tensor<?x?x3x?xf32>) -> tensor<?x?x?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %z = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x?x?x3xf32>
  %h = tensor.dim %x, %c1 : tensor<?x?x?x3xf32>
  %wd = tensor.dim %x, %c2 : tensor<?x?x?x3xf32>
  %kh = tensor.dim %w, %c0 : tensor<?x?x3x?xf32>
  %kw = tensor.dim %w, %c1 : tensor<?x?x3x?xf32>
  %f = tensor.dim %w, %c3 : tensor<?x?x3x?xf32>
  %a = arith.subi %h, %kh : index
  %b = arith.floordivsi %a, %c2 : index
  %oh = arith.addi %b, %c1 : index
  %c = arith.subi %wd, %kw : index
  %ow = arith.addi %c, %c1 : index
  %e = tensor.empty(%n, %oh, %ow, %f) : tensor<?x?x?x?xf32>
  %fi = linalg.fill ins(%z : f32) outs(%e : tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf32>
  %0 = linalg.conv_2d_nhwc_hwcf {strides = dense<[2, 1]> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>} ins(%x, %w : tensor<?x?x?x3xf32>, tensor<?x?x3x?xf32>) outs(%fi : tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf32>
  return %0 : tensor<?x?x?x?xf32>
}

func.func @structured(%x: tensor<?x?xf32>, %s: f32, %i: index) -> (tensor<?xf32>, tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  %m = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %f = linalg.fill ins(%s : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %0 = linalg.reduce { arith.addf } ins(%x : tensor<?x?xf32>) outs(%f : tensor<?xf32>) dimensions = [1]
  %et = tensor.empty(%m, %n) : tensor<?x?xf32>
  %t = linalg.transpose ins(%x : tensor<?x?xf32>) outs(%et : tensor<?x?xf32>) permutation = [1, 0]
  %ee = tensor.empty(%n, %m) : tensor<?x?xf32>
  %b = linalg.broadcast ins(%0 : tensor<?xf32>) outs(%ee : tensor<?x?xf32>) dimensions = [1]
  %mm = linalg.map { arith.mulf } ins(%x, %b : tensor<?x?xf32>, tensor<?x?xf32>) outs(%ee : tensor<?x?xf32>)
  %g = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x?xf32>) outs(%ee : tensor<?x?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %q = linalg.index 1 : index
    %q2 = arith.addi %q, %i : index
    %q3 = arith.muli %q2, %n : index
    %q4 = arith.index_cast %q3 : index to i32
    %q5 = arith.sitofp %q4 : i32 to f32
    %q6 = arith.mulf %q5, %a : f32
    %q7 = arith.addf %q6, %s : f32
    linalg.yield %q7 : f32
  } -> tensor<?x?xf32>
  return %0, %t, %mm, %g : tensor<?xf32>, tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>
}

func.func @gather(%t: tensor<?x?xf32>, %i: tensor<?xi64>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %i, %c0 : tensor<?xi64>
  %m = tensor.dim %t, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%n, %m) : tensor<?x?xf32>
  %g = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]} ins(%i : tensor<?xi64>) outs(%e : tensor<?x?xf32>) {
  ^bb0(%a: i64, %o: f32):
    %q = arith.index_cast %a : i64 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %t[%q, %j] : tensor<?x?xf32>
    linalg.yield %v : f32
  } -> tensor<?x?xf32>
  return %g : tensor<?x?xf32>
}

func.func @divisions(%a: tensor<?xi32>, %b: tensor<?xi32>) -> (tensor<?xi32>,tensor<?xi32>,tensor<?xi32>) {
  %0 = arith.divsi %a, %b : tensor<?xi32>
  %1 = arith.remsi %a, %b : tensor<?xi32>
  %2 = arith.shrsi %a, %b : tensor<?xi32>
  return %0, %1, %2 : tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
}

func.func @slices(%x: tensor<?x?xf32>, %y: tensor<?xf32>) -> (tensor<?x3xf32>, tensor<?x?xf32>, tensor<?xf32>, tensor<?x2x?xf32>, tensor<?xf32>, tensor<?x?xf32>,tensor<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %z = arith.constant 1.5 : f32
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  %m = tensor.dim %x, %c1 : tensor<?x?xf32>
  %h = arith.divui %n, %c2 : index
  %a = tensor.extract_slice %x[0, 1] [%h, 3] [2, 1] : tensor<?x?xf32> to tensor<?x3xf32>
  %b = tensor.insert_slice %y into %x[1, 0] [1, %m] [1, 1] : tensor<?xf32> into tensor<?x?xf32>
  %c = tensor.extract_slice %x[1, 0] [1, %m] [1, 1] : tensor<?x?xf32> to tensor<?xf32>
  %d = tensor.expand_shape %x [[0, 1], [2]] output_shape [%h, 2, %m] : tensor<?x?xf32> into tensor<?x2x?xf32>
  %e = tensor.collapse_shape %x [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>
  %p = tensor.pad %x low[1, %h] high[0, 2] { ^bb0(%i: index, %j: index): tensor.yield %z : f32 } : tensor<?x?xf32> to tensor<?x?xf32>
  %q = tensor.concat dim(0) %x, %b : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  return %a, %b, %c, %d, %e, %p, %q : tensor<?x3xf32>, tensor<?x?xf32>, tensor<?xf32>, tensor<?x2x?xf32>, tensor<?xf32>, tensor<?x?xf32>, tensor<?x?xf32>
}

func.func @accumulated(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>, %c: tensor<?x?xf32>) -> (tensor<?x?xf32>,tensor<?x?xf32>) {
  %0 = linalg.matmul ins(%x, %y : tensor<?x?xf32>, tensor<?x?xf32>) outs(%c : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %0, %c : tensor<?x?xf32>, tensor<?x?xf32>
}

func.func @tiled(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %z = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  %k = tensor.dim %x, %c1 : tensor<?x?xf32>
  %m = tensor.dim %y, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%n, %m) : tensor<?x?xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %r = scf.for %i = %c0 to %n step %c4 iter_args(%acc = %f) -> (tensor<?x?xf32>) {
    %sz = affine.min #rest(%i)[%n]
    %xs = tensor.extract_slice %x[%i, 0] [%sz, %k] [1, 1] : tensor<?x?xf32> to tensor<?x?xf32>
    %as = tensor.extract_slice %acc[%i, 0] [%sz, %m] [1, 1] : tensor<?x?xf32> to tensor<?x?xf32>
    %mm = linalg.matmul ins(%xs, %y : tensor<?x?xf32>, tensor<?x?xf32>) outs(%as : tensor<?x?xf32>) -> tensor<?x?xf32>
    %new = tensor.insert_slice %mm into %acc[%i, 0] [%sz, %m] [1, 1] : tensor<?x?xf32> into tensor<?x?xf32>
    scf.yield %new : tensor<?x?xf32>
  }
  return %r : tensor<?x?xf32>
}

func.func private @half(%x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %h = arith.ceildivui %n, %c2 : index
  %s = tensor.extract_slice %x[0] [%h] [1] : tensor<?xf32> to tensor<?xf32>
  %a = math.absf %s : tensor<?xf32>
  return %a : tensor<?xf32>
}
func.func @control(%x: tensor<?xf32>, %b: i1) -> (tensor<?xf32>, tensor<?xf32>, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = scf.if %b -> tensor<?xf32> {
    %h = func.call @half(%x) : (tensor<?xf32>) -> tensor<?xf32>
    scf.yield %h : tensor<?xf32>
  } else {
    %h = math.exp %x : tensor<?xf32>
    scf.yield %h : tensor<?xf32>
  }
  %1:2 = scf.while (%t = %0, %i = %c0) : (tensor<?xf32>, index) -> (tensor<?xf32>, index) {
    %n = tensor.dim %t, %c0 : tensor<?xf32>
    %c = arith.cmpi sgt, %n, %c1 : index
    scf.condition(%c) %t, %i : tensor<?xf32>, index
  } do {
  ^bb0(%t: tensor<?xf32>, %i: index):
    %h = func.call @half(%t) : (tensor<?xf32>) -> tensor<?xf32>
    %j = arith.addi %i, %c1 : index
    scf.yield %h, %j : tensor<?xf32>, index
  }
  %2 = arith.addf %0, %0 : tensor<?xf32>
  return %2, %1#0, %1#1 : tensor<?xf32>, tensor<?xf32>, index
}

func.func @generated(%x: tensor<?xf32>, %sh: tensor<2xi64>, %k: index) -> (tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %ok = arith.cmpi sge, %n, %c1 : index
  cf.assert %ok, "n >= 1"
  %r = tensor.reshape %x(%sh) : (tensor<?xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  %g = tensor.generate %n { ^bb0(%i: index):
    %q = arith.index_cast %i : index to i64
    %f = arith.sitofp %q : i64 to f32
    %v = tensor.extract %x[%i] : tensor<?xf32>
    %w = arith.mulf %f, %v : f32
    tensor.yield %w : f32 } : tensor<?xf32>
  %s = tensor.extract_slice %x[%k] [2] [1] : tensor<?xf32> to tensor<2xf32>
  %sc = tensor.cast %s : tensor<2xf32> to tensor<?xf32>
  return %r, %g, %sc : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>
}

func.func @softmax(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  %m = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%n, %m) : tensor<?x?xf32>
  %r = linalg.softmax dimension(1) ins(%x : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

func.func @pooling(%x: tensor<1x?x?x?xf32>, %oh: index, %ow: index) -> tensor<1x?x?x?xf32> {
  %c3 = arith.constant 3 : index
  %c = tensor.dim %x, %c3 : tensor<1x?x?x?xf32>
  %z = arith.constant 0xFF800000 : f32
  %w = tensor.empty() : tensor<2x3xf32>
  %e = tensor.empty(%oh, %ow, %c) : tensor<1x?x?x?xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<1x?x?x?xf32>) -> tensor<1x?x?x?xf32>
  %r = linalg.pooling_nhwc_max {strides = dense<1> : tensor<2xi64>, dilations = dense<[2,1]> : tensor<2xi64>} ins(%x, %w : tensor<1x?x?x?xf32>, tensor<2x3xf32>) outs(%f : tensor<1x?x?x?xf32>) -> tensor<1x?x?x?xf32>
  return %r : tensor<1x?x?x?xf32>
}

func.func @partly_written(%x: tensor<?x?xf32>, %y: tensor<?xf32>, %z: tensor<?xf32>) -> (tensor<?x?xf32>, tensor<?x?xf32>, tensor<?xf32>) {
  %c = arith.constant 9.0 : f32
  %diagonal = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i, i)>], iterator_types = ["parallel"]}
      ins(%y : tensor<?xf32>) outs(%x : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<?x?xf32>
  %column = linalg.generic {indexing_maps = [affine_map<(i) -> (i, 0)>], iterator_types = ["parallel"]} outs(%x : tensor<?x?xf32>) {
  ^bb0(%b: f32):
    linalg.yield %c : f32
  } -> tensor<?x?xf32>
  %last = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%z : tensor<?xf32>) outs(%y : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<?xf32>
  return %diagonal, %column, %last : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?xf32>
}

func.func @wrapped(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : i64
  %big = arith.constant 4611686018427387904 : i64
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %size = arith.index_cast %n : index to i64
  %0 = arith.muli %size, %big : i64
  %1 = arith.muli %0, %c4 : i64
  %2 = arith.addi %1, %size : i64
  %all = arith.index_cast %2 : i64 to index
  %3 = arith.muli %big, %c4 : i64
  %none = arith.index_cast %3 : i64 to index
  %4 = tensor.extract_slice %x[0] [%all] [1] : tensor<?xf32> to tensor<?xf32>
  %5 = tensor.extract_slice %x[0] [%none] [1] : tensor<?xf32> to tensor<?xf32>
  return %4, %5 : tensor<?xf32>, tensor<?xf32>
}

func.func @inserted_at_the_end(%x: tensor<?xf32>, %y: tensor<2xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %start = arith.subi %n, %c2 : index
  %0 = tensor.insert_slice %y into %x[%start] [2] [1] : tensor<2xf32> into tensor<?xf32>
  return %0 : tensor<?xf32>
}
