// Programs that fuse in every way; test_fuse_tir.py runs them.

!x = tensor<?x24xf32, #graph.shape<["n", 24]>>
!g = tensor<?x66xf32, #graph.shape<["n", 66]>>
!h = tensor<?x33xf32, #graph.shape<["n", 33]>>
func.func @gated(%x: !x, %up: tensor<66x24xf32>, %down: tensor<24x33xf32>) -> !x {
  %t = "graph.permute_dims"(%up) {axes = array<i64: 1, 0>} : (tensor<66x24xf32>) -> tensor<24x66xf32>
  %0 = "graph.matmul"(%x, %t) : (!x, tensor<24x66xf32>) -> !g
  %a = "graph.strided_slice"(%0) {axes = array<i64: 1>, begin = #graph.shape<[0]>, end = #graph.shape<[33]>, strides = array<i64: 1>} : (!g) -> !h
  %b = "graph.strided_slice"(%0) {axes = array<i64: 1>, begin = #graph.shape<[33]>, end = #graph.shape<[66]>, strides = array<i64: 1>} : (!g) -> !h
  %1 = "graph.nn_silu"(%a) : (!h) -> !h
  %2 = "graph.multiply"(%1, %b) : (!h, !h) -> !h
  %d = "graph.permute_dims"(%down) {axes = array<i64: 1, 0>} : (tensor<24x33xf32>) -> tensor<33x24xf32>
  %3 = "graph.matmul"(%2, %d) : (!h, tensor<33x24xf32>) -> !x
  %4 = "graph.add"(%x, %3) : (!x, !x) -> !x
  return %4 : !x
}

!r = tensor<?x3x8xf32, #graph.shape<["n", 3, 8]>>
!a = tensor<?x4xf32, #graph.shape<["n", 4]>>
!c = tensor<3x?x8xf32, #graph.shape<[3, "c", 8]>>
!q = tensor<?x48xf32, #graph.shape<["n", 48]>>
func.func @append(%q: !q, %cos: !a, %sin: !a, %kc: !c {graph.inout = 0 : i64}, %vc: !c {graph.inout = 1 : i64}, %m: !graph.shape_value<["m"]>) -> (!c, !c) {
  %0 = "graph.strided_slice"(%q) {axes = array<i64: 1>, begin = #graph.shape<[0]>, end = #graph.shape<[24]>, strides = array<i64: 1>} : (!q) -> !x
  %1 = "graph.strided_slice"(%q) {axes = array<i64: 1>, begin = #graph.shape<[24]>, end = #graph.shape<[48]>, strides = array<i64: 1>} : (!q) -> !x
  %2 = "graph.reshape"(%0) {shape = #graph.shape<["n", 3, 8]>} : (!x) -> !r
  %3 = "graph.reshape"(%1) {shape = #graph.shape<["n", 3, 8]>} : (!x) -> !r
  %4 = "graph.nn_rotary"(%2, %cos, %sin) : (!r, !a, !a) -> !r
  %5:2 = "graph.nn_kv_append"(%kc, %vc, %4, %3) {position = #graph.shape<["m"]>} : (!c, !c, !r, !r) -> (!c, !c)
  return %5#0, %5#1 : !c, !c
}

!v = tensor<?xf32, #graph.shape<["n"]>>
!w = tensor<?x1xf32, #graph.shape<["n", 1]>>
func.func @normalised(%x: !x, %b: tensor<24xf32>, %s: !w) -> (!x, !v) {
  %0 = "graph.add"(%x, %b) : (!x, tensor<24xf32>) -> !x
  %1 = "graph.tanh"(%0) : (!x) -> !x
  %2 = "graph.multiply"(%1, %s) : (!x, !w) -> !x
  %3 = "graph.nn_softmax"(%2) {axis = -1 : i64} : (!x) -> !x
  %4 = "graph.square"(%x) : (!x) -> !x
  %5 = "graph.sum"(%4) {axes = array<i64: 1>, keepdims = false} : (!x) -> !v
  return %3, %5 : !x, !v
}

!k = tensor<?x5xf32, #graph.shape<["k + 1", 5]>>
!f = tensor<?xf32, #graph.shape<["5*k + 5"]>>
func.func @positions(%s: !graph.shape_value<["k", "m"]>, %y: tensor<5xf32>) -> !f {
  %0 = "graph.arange"() {bounds = #graph.shape<["m", "m + k + 1", 1]>, dtype = f32} : () -> tensor<?xf32, #graph.shape<["k + 1"]>>
  %1 = "graph.expand_dims"(%0) {axes = array<i64: 1>} : (tensor<?xf32, #graph.shape<["k + 1"]>>) -> tensor<?x1xf32, #graph.shape<["k + 1", 1]>>
  %2 = "graph.multiply"(%1, %y) : (tensor<?x1xf32, #graph.shape<["k + 1", 1]>>, tensor<5xf32>) -> !k
  %3 = "graph.reshape"(%2) {shape = #graph.shape<["5*k + 5"]>} : (!k) -> !f
  %4 = "graph.cos"(%3) : (!f) -> !f
  return %4 : !f
}

!t = tensor<24x?xf32, #graph.shape<[24, "n"]>>
func.func @moved(%x: !x) -> (!t, tensor<?x24xf32, #graph.shape<["n", 24]>>) {
  %c = arith.constant dense<0.5> : tensor<f32>
  %0 = "graph.permute_dims"(%x) {axes = array<i64: 1, 0>} : (!x) -> !t
  %1 = "graph.multiply"(%0, %c) : (!t, tensor<f32>) -> !t
  %2 = "graph.exp"(%1) : (!t) -> !t
  %3 = "graph.permute_dims"(%2) {axes = array<i64: 1, 0>} : (!t) -> !x
  %4 = "graph.negative"(%3) : (!x) -> !x
  return %2, %4 : !t, !x
}

!i = tensor<?x40xf16, #graph.shape<["n", 40]>>
!o = tensor<?x19xf16, #graph.shape<["n", 19]>>
func.func @half(%x: !i, %w: tensor<19x40xf16>, %b: tensor<19xf16>, %y: !o) -> !o {
  %t = "graph.permute_dims"(%w) {axes = array<i64: 1, 0>} : (tensor<19x40xf16>) -> tensor<40x19xf16>
  %0 = "graph.matmul"(%x, %t) : (!i, tensor<40x19xf16>) -> !o
  %1 = "graph.add"(%0, %b) : (!o, tensor<19xf16>) -> !o
  %2 = "graph.nn_relu"(%1) : (!o) -> !o
  %3 = "graph.add"(%2, %y) : (!o, !o) -> !o
  return %3 : !o
}
