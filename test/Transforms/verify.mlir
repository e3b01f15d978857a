// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-verify

// Each error is reported at its op, more than one in one run.
func.func @negative_operators(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @below {{'graph.matmul' op contracts dim 8 of lhs with dim 4 of rhs}}
  %0 = "graph.matmul"(%x, %y) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // expected-error @below {{'graph.exp' op infers result type 'tensor<4x8xf32>', but has 'tensor<4x9xf32>'}}
  %1 = "graph.exp"(%0) : (tensor<4x8xf32>) -> tensor<4x9xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// A dim that nothing is known of is no error, nor are two symbols that may be equal.
func.func @symbolic_unknown(%x: tensor<?xf32, #graph.shape<["n"]>>, %y: tensor<?xf32>, %z: tensor<?xf32, #graph.shape<["m"]>>) -> (tensor<?xf32>, tensor<?xf32>) {
  %0 = "graph.add"(%x, %y) : (tensor<?xf32, #graph.shape<["n"]>>, tensor<?xf32>) -> tensor<?xf32>
  %1 = "graph.add"(%x, %z) : (tensor<?xf32, #graph.shape<["n"]>>, tensor<?xf32, #graph.shape<["m"]>>) -> tensor<?xf32>
  return %0, %1 : tensor<?xf32>, tensor<?xf32>
}

// -----

// A proof covers every value of the symbols: n + 1 is never n.
func.func @negative_symbolic(%x: tensor<?xf32, #graph.shape<["n"]>>) -> tensor<?xf32, #graph.shape<["n + 1"]>> {
  // expected-error @below {{'graph.exp' op infers result type}}
  %0 = "graph.exp"(%x) : (tensor<?xf32, #graph.shape<["n"]>>) -> tensor<?xf32, #graph.shape<["n + 1"]>>
  return %0 : tensor<?xf32, #graph.shape<["n + 1"]>>
}

// -----

#in1  = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2  = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!v = tensor<?xf32, #graph.shape<["n"]>>
!w = tensor<?xf32, #graph.shape<["n + 1"]>>
!q = tensor<?xf32, #graph.shape<["4*m"]>>

func.func private @k(%x: !v, %out: !v) -> !v attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  return %out : !v
}

// The symbols of a signature are its own.
func.func @call_tir_symbolic(%x: !q) -> !q {
  %0 = "graph.call_tir"(%x) {callee = @k, sym_args = #graph.shape<[]>, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!q) -> !q
  return %0 : !q
}

func.func @call_tir_c1(%x: !v) -> !v {
  // expected-error @below {{'graph.call_tir' op calls '@call_tir_c1', which is not a tensor program}}
  %0 = "graph.call_tir"(%x) {callee = @call_tir_c1, sym_args = #graph.shape<[]>, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!v) -> !v
  return %0 : !v
}

func.func @call_tir_c2_count(%x: !v) -> !v {
  // expected-error @below {{passes 2 inputs, 1 outputs and 1 symbols to '@k', which takes 1 inputs, 1 outputs and 0 symbols}}
  %0 = "graph.call_tir"(%x, %x) {callee = @k, sym_args = #graph.shape<["n"]>, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!v, !v) -> !v
  return %0 : !v
}

func.func @call_tir_c2_rank(%x: tensor<4x4xf32>) -> !v {
  // expected-error @below {{passes operand 0, which has rank 2 instead of 1, to '@k'}}
  %0 = "graph.call_tir"(%x) {callee = @k, sym_args = #graph.shape<[]>, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4x4xf32>) -> !v
  return %0 : !v
}

func.func @call_tir_c2_element(%x: tensor<4xf16>) -> tensor<4xf32> {
  // expected-error @below {{passes operand 0, which has elements of f16 instead of f32, to '@k'}}
  %0 = "graph.call_tir"(%x) {callee = @k, sym_args = #graph.shape<[]>, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf16>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

func.func @call_tir_c2_dim(%x: !v) -> !w {
  // expected-error @below {{passes result 0, whose dim 0 is n + 1 instead of n, to '@k'}}
  %0 = "graph.call_tir"(%x) {callee = @k, sym_args = #graph.shape<[]>, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!v) -> !w
  return %0 : !w
}

// -----

#in1  = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!v = tensor<?xf32, #graph.shape<["n"]>>

func.func private @k(%out: !v) -> !v attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  return %out : !v
}

func.func @call_tir_inplace_valid(%x: !v {graph.inout = 0 : i64}) -> !v {
  %0 = "graph.call_tir_inplace"(%x) {callee = @k, inplace_indices = array<i64: 0>, sym_args = #graph.shape<[]>, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!v) -> !v
  return %0 : !v
}

func.func @call_tir_inplace_c3(%x: !v) -> !v {
  // expected-error @below {{has 'inplace_indices' [1] for 1 operands and 1 results, but needs one distinct operand, or -1, per result}}
  %0 = "graph.call_tir_inplace"(%x) {callee = @k, inplace_indices = array<i64: 1>, sym_args = #graph.shape<[]>, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!v) -> !v
  return %0 : !v
}

func.func @call_tir_inplace_c4(%x: tensor<4xf32>) -> tensor<5xf32> {
  // expected-error @below {{computes 'tensor<5xf32>' into operand 0 of 'tensor<4xf32>'}}
  %0 = "graph.call_tir_inplace"(%x) {callee = @k, inplace_indices = array<i64: 0>, sym_args = #graph.shape<[]>, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// The operand keeps its value: where memory cannot be shared, it is copied.
func.func @read_afterwards(%x: !v) -> (!v, !v) {
  %0 = "graph.call_tir_inplace"(%x) {callee = @k, inplace_indices = array<i64: 0>, sym_args = #graph.shape<[]>, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!v) -> !v
  %1 = "graph.exp"(%x) : (!v) -> !v
  return %0, %1 : !v, !v
}

// -----

#in1  = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2  = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!v = tensor<?xf32, #graph.shape<["n"]>>
!m = tensor<?xf32, #graph.shape<["m"]>>
!w = tensor<?xf32, #graph.shape<["m + 1"]>>

func.func private @f(%x: !v, %y: !v) -> tensor<?xf32, #graph.shape<["n + 1"]>> {
  %0 = "graph.match_cast"(%x) : (!v) -> tensor<?xf32>
  %1 = "graph.match_cast"(%0) : (tensor<?xf32>) -> tensor<?xf32, #graph.shape<["n + 1"]>>
  return %1 : tensor<?xf32, #graph.shape<["n + 1"]>>
}

func.func @call_c1(%x: !v) -> !v {
  // expected-error @below {{'graph.call' op calls '@nowhere', which is not a graph function}}
  %0 = "graph.call"(%x) {callee = @nowhere, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!v) -> !v
  return %0 : !v
}

func.func @call_c2(%x: !m, %y: !w) -> tensor<?xf32> {
  // expected-error @below {{passes operand 1, whose dim 0 is m + 1 instead of m, to '@f'}}
  %0 = "graph.call"(%x, %y) {callee = @f, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (!m, !w) -> tensor<?xf32>
  // expected-error @below {{has 1 operands and 1 results, but '@f' takes 2 and returns 1}}
  %1 = "graph.call"(%x) {callee = @f, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!m) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

func.func @call_c3(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{has result 0 of 'tensor<4xf32>', but '@f' returns 'tensor<5xf32>'}}
  %0 = "graph.call"(%x, %x) {callee = @f, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

#in1  = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
// A product of two symbols binds neither.
// expected-error @below {{'func.func' op has the symbol 'm', which no argument binds}}
// expected-error @below {{'func.func' op has the symbol 'n', which no argument binds}}
func.func @negative_unbound_argument(%x: tensor<?xf32, #graph.shape<["m*n"]>>) {
  return
}

// An argument, a shape value or a cast binds a symbol.
func.func @symbolic_bound(%x: tensor<?xf32, #graph.shape<["2*n + 1"]>>, %s: !graph.shape_value<["m"]>, %y: tensor<?xf32>) attributes {graph.facts = ["n <= m", "k >= 1"]} {
  %0 = "graph.match_cast"(%y) : (tensor<?xf32>) -> tensor<?xf32, #graph.shape<["k"]>>
  return
}

func.func @negative_unbound(%x: tensor<f32>) {
  // expected-error @below {{'graph.full' op uses the symbol 'n', which nothing binds}}
  %0 = "graph.full"(%x) {shape = #graph.shape<["n"]>} : (tensor<f32>) -> tensor<?xf32, #graph.shape<["n"]>>
  return
}

// expected-error @below {{states 'k <= 4', but nothing binds the symbol 'k'}}
func.func @negative_fact_symbol(%x: tensor<?xf32, #graph.shape<["n"]>>) attributes {graph.facts = ["k <= 4"]} {
  return
}

// expected-error @below {{has argument 0 updated as result 1, of 1}}
func.func @negative_inout_range(%x: tensor<4xf32> {graph.inout = 1 : i64}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// expected-error @below {{has argument 0 of 'tensor<4xf32>' updated as result 0 of 'tensor<5xf32>'}}
func.func @negative_inout_type(%x: tensor<4xf32> {graph.inout = 0 : i64}, %y: tensor<5xf32>) -> tensor<5xf32> {
  return %y : tensor<5xf32>
}

func.func @negative_library(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{calls 'blas.nothing', which no lib.function declares}}
  %0 = "graph.call_dps_library"(%x) {callee = @blas.nothing, sym_args = #graph.shape<[]>, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error @below {{has a malformed 'graph.facts'}}
func.func @negative_facts(%x: tensor<?xf32, #graph.shape<["n"]>>) attributes {graph.facts = ["n =< 4"]} {
  return
}

// -----

// expected-error @below {{is a tensor program without 'tir.num_outs'}}
func.func private @negative_num_outs(%x: tensor<4xf32>) attributes {tir.prim_func} {
  return
}

// expected-error @below {{must take ranked tensors, then indices}}
func.func private @negative_order(%i: index, %out: tensor<4xf32>) -> tensor<4xf32> attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  return %out : tensor<4xf32>
}

// expected-error @below {{returns (tensor<4xf32>), but its outputs are (tensor<4xf32>, tensor<4xf32>)}}
func.func private @negative_results(%x: tensor<4xf32>, %out: tensor<4xf32>) -> tensor<4xf32> attributes {tir.prim_func, tir.num_outs = 2 : i64} {
  return %out : tensor<4xf32>
}

// expected-error @below {{has 1 tensors, but 'tir.num_outs' is 2}}
func.func private @negative_count(%out: tensor<4xf32>) -> tensor<4xf32> attributes {tir.prim_func, tir.num_outs = 2 : i64} {
  return %out : tensor<4xf32>
}

// -----

// A cast binds a symbol from there on, in its block and in what is nested in it.
!k = tensor<?xf32, #graph.shape<["k"]>>
func.func @symbolic_scopes(%x: tensor<?xf32>, %y: tensor<?xf32>, %c: i1) -> (tensor<?xf32>, !k) {
  %0 = scf.if %c -> tensor<?xf32> {
    %1 = "graph.match_cast"(%x) : (tensor<?xf32>) -> !k
    %2 = scf.if %c -> !k {
      scf.yield %1 : !k
    } else {
      %3 = "graph.exp"(%1) : (!k) -> !k
      scf.yield %3 : !k
    }
    %4 = "graph.match_cast"(%2) : (!k) -> tensor<?xf32>
    scf.yield %4 : tensor<?xf32>
  } else {
    %1 = "graph.match_cast"(%y) : (tensor<?xf32>) -> !k
    %2 = "graph.match_cast"(%1) : (!k) -> tensor<?xf32>
    scf.yield %2 : tensor<?xf32>
  }
  // A dataflow block runs once: what it binds is bound behind it too.
  %5 = scf.execute_region -> !k no_inline {
    %6 = "graph.match_cast"(%0) : (tensor<?xf32>) -> !k
    scf.yield %6 : !k
  } {graph.dataflow}
  %7 = "graph.exp"(%5) : (!k) -> !k
  return %0, %7 : tensor<?xf32>, !k
}

func.func @negative_before(%x: tensor<?xf32>, %s: tensor<f32>) -> !k {
  // expected-error @below {{'graph.full' op uses the symbol 'k' before the match_cast that binds it}}
  %0 = "graph.full"(%s) {shape = #graph.shape<["k"]>} : (tensor<f32>) -> !k
  %1 = "graph.match_cast"(%x) : (tensor<?xf32>) -> !k
  return %0 : !k
}

func.func @negative_outside(%x: tensor<?xf32>, %c: i1) -> !k {
  // expected-error @below {{'scf.if' op uses the symbol 'k' outside of the region that binds it}}
  %0 = scf.if %c -> !k {
    %1 = "graph.match_cast"(%x) : (tensor<?xf32>) -> !k
    scf.yield %1 : !k
  } else {
    %1 = "graph.match_cast"(%x) : (tensor<?xf32>) -> !k
    scf.yield %1 : !k
  }
  return %0 : !k
}

func.func @negative_other_branch(%x: tensor<?xf32>, %c: i1, %s: tensor<f32>) {
  scf.if %c {
    %0 = "graph.match_cast"(%x) : (tensor<?xf32>) -> !k
  } else {
    // expected-error @below {{'graph.full' op uses the symbol 'k' outside of the region that binds it}}
    %0 = "graph.full"(%s) {shape = #graph.shape<["k"]>} : (tensor<f32>) -> !k
  }
  return
}

func.func @negative_carried(%x: tensor<?xf32>, %y: !k, %c: i1, %lb: index, %s: tensor<f32>) {
  scf.for %i = %lb to %lb step %lb {
    %0 = "graph.match_cast"(%x) : (tensor<?xf32>) -> tensor<?xf32, #graph.shape<["m"]>>
  }
  // expected-error @below {{'graph.make_shape' op uses the symbol 'm' outside of the region that binds it}}
  %1 = "graph.make_shape"() {dims = #graph.shape<["m"]>} : () -> !graph.shape_value<["m"]>
  return
}

// What the function states is checked at its entry, or where its own block binds the symbol.
// expected-error @below {{states 'k <= 4', but nothing binds the symbol 'k'}}
func.func @negative_fact_of_branch(%x: tensor<?xf32>, %c: i1) attributes {graph.facts = ["k <= 4"]} {
  scf.if %c {
    %0 = "graph.match_cast"(%x) : (tensor<?xf32>) -> !k
  }
  return
}

func.func @negative_required(%x: tensor<?xf32>) {
  // expected-error @below {{'graph.require' op uses the symbol 'k' before the match_cast that binds it}}
  "graph.require"() {any_of = ["k <= 4"], by = "@f"} : () -> ()
  %0 = "graph.match_cast"(%x) : (tensor<?xf32>) -> !k
  return
}

// expected-error @below {{'func.func' op has a region of several blocks; control flow of graph functions is scf}}
func.func @negative_blocks(%x: !k) -> !k {
  cf.br ^next(%x : !k)
^next(%y: !k):
  return %y : !k
}

// -----

func.func private @negative_body(%x: tensor<4x4xf32>, %out: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  // expected-error @below {{'linalg.softmax' op cannot be in a tensor program; expects ops of affine, arith}}
  %0 = linalg.softmax dimension(1) ins(%x : tensor<4x4xf32>) outs(%out : tensor<4x4xf32>) -> tensor<4x4xf32>
  // expected-error @below {{'arith.constant' op has a result of 'i128'; expects numbers}}
  %wide = arith.constant 1 : i128
  return %0 : tensor<4x4xf32>
}

// -----

// expected-error @below {{'func.func' op is a tensor program of several blocks; expects one}}
func.func private @negative_blocks(%out: tensor<4xf32>) -> tensor<4xf32> attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  cf.br ^end
^end:
  return %out : tensor<4xf32>
}

// -----

// expected-error @below {{'func.func' op is a tensor program without a body}}
func.func private @negative_declared(index) attributes {tir.prim_func}

// -----

// The error is at the program alone, not at its call.
#in1  = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
func.func @calls_no_body(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "graph.call_tir"(%x) {callee = @no_body, sym_args = #graph.shape<[]>, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// expected-error @below {{'func.func' op is a tensor program without a body}}
func.func private @no_body(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> attributes {tir.prim_func, tir.num_outs = 1 : i64}

// -----

// expected-error @below {{'func.func' op has 1 indices, but 'tir.sym' names other ones}}
func.func private @negative_unnamed(%x: tensor<4xf32>, %i: index) -> tensor<4xf32> attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  return %x : tensor<4xf32>
}

// -----

func.func private @negative_axis(%x: tensor<?xf32>, %out: tensor<?xf32>, %i: index {tir.sym = "i"}) -> tensor<?xf32> attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  // expected-error @below {{'tensor.dim' op asks for an extent at an index that is not a constant within the rank}}
  %d = tensor.dim %x, %i : tensor<?xf32>
  return %out : tensor<?xf32>
}
