// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-verify

// What is found before the first pass, and stops the pipeline.

func.func @negative_flag(%x: tensor<3x4x8xf32>, %y: tensor<2x16x8xf32>, %z: tensor<2x16x8xf32>) {
  // expected-error @below {{'graph.nn_attention' op expects 'causal' to be true or false, but got 1 : i64}}
  %0 = "graph.nn_attention"(%x, %y, %z) {causal = 1 : i64, position = #graph.shape<[0]>, scale = 1.250000e-01 : f64} : (tensor<3x4x8xf32>, tensor<2x16x8xf32>, tensor<2x16x8xf32>) -> tensor<3x4x8xf32>
  return
}

// -----

func.func @negative_array_of_i32(%x: tensor<9x4xf32>) {
  // expected-error @below {{'graph.strided_slice' op expects 'strides' to be an array of i64, but got array<i32: 1>}}
  %0 = "graph.strided_slice"(%x) {axes = array<i64: 0>, begin = #graph.shape<[0]>, end = #graph.shape<[1]>, strides = array<i32: 1>} : (tensor<9x4xf32>) -> tensor<1x4xf32>
  return
}

// -----

func.func @call_dps_c2_kind(%x: tensor<4xf32>, %out: tensor<4xf32>) {
  // expected-error @below {{'graph.call_dps' op expects 'updates' to be an array of i64, but got array<i32: 0>}}
  "graph.call_dps"(%x, %out) {callee = @k, num_outs = 1 : i64, sym_args = #graph.shape<[]>, updates = array<i32: 0>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf32>, tensor<4xf32>) -> ()
  return
}

// -----

func.func @require_c1_malformed(%x: tensor<?xf32, #graph.shape<["n"]>>) {
  // expected-error @below {{'graph.require' op has a malformed 'any_of'}}
  "graph.require"() {any_of = ["n =< 4"], by = "graph.add"} : () -> ()
  return
}

// -----

func.func @require_c1_text() {
  // expected-error @below {{'graph.require' op has 'any_of' that is [4]; expects an array of strings}}
  "graph.require"() {any_of = [4], by = "graph.add"} : () -> ()
  return
}

// -----

func.func @no_segments(%q: tensor<3x64xi8>, %s: tensor<3x2xf32>, %o: tensor<3x2xf32>) {
  // expected-error @below {{'graph.dequantize_blocks' op has no 'operandSegmentSizes', but optional operands}}
  %0 = "graph.dequantize_blocks"(%q, %s, %o) : (tensor<3x64xi8>, tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x64xf32>
  return
}

// -----

func.func @short_segments(%q: tensor<3x64xi8>, %s: tensor<3x2xf32>, %o: tensor<3x2xf32>) {
  // expected-error @below {{'graph.dequantize_blocks' op has 'operandSegmentSizes' that is array<i32: 1, 1>, for 3 of 3}}
  %0 = "graph.dequantize_blocks"(%q, %s, %o) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<3x64xi8>, tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x64xf32>
  return
}

// -----

func.func @no_integer(%x: tensor<3xf32>) {
  // expected-error @below {{'graph.nn_softmax' op expects 'axis' to be an integer, but got true}}
  %0 = "graph.nn_softmax"(%x) {axis = true} : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

// expected-error @below {{'func.func' op has 'tir.num_outs' that is "1"; expects an integer}}
func.func private @num_outs() attributes {tir.num_outs = "1"}

// -----

// expected-error @below {{'func.func' op has 'tir.pattern' that is #tir.pattern<"fast">; expects #tir.pattern<...> of element_wise, }}
func.func private @pattern() attributes {tir.pattern = #tir.pattern<"fast">}

// -----

// expected-error @below {{'func.func' op has 'tir.attention' with 'scale' that is unit; expects a float}}
func.func private @attention() attributes {tir.attention = {causal = true}}

// -----

// expected-error @below {{'func.func' op has 'tir.sort' with 'unsigned' that is unit; expects true or false}}
func.func private @sort() attributes {tir.sort = {axis = 0 : i64, descending = true}}

// -----

// expected-error @below {{'func.func' op has 'tir.flops': 'n +': }}
func.func private @flops() attributes {tir.flops = "n +"}

// -----

// expected-error @below {{'func.func' op has argument 0 with 'tir.sym' that is 1 : i64; expects a string}}
func.func private @symbol(index {tir.sym = 1 : i64}) attributes {tir.prim_func}

// -----

// expected-error @below {{'func.func' op has 'sym_name' with "\FF", which is not UTF-8 text}}
func.func private @"\FF"()

// -----

// expected-error @below {{'func.func' op has an attribute whose name is not UTF-8 text}}
func.func private @name_of_attribute() attributes {"\FF" = 1 : i64}

// -----

// expected-error @below {{'func.func' op has 'a' with "@b::@\FF", which is not UTF-8 text}}
func.func private @reference() attributes {a = @b::@"\FF"}

// -----

// expected-error @below {{'func.func' op has 'graph.facts' with "n == \FF", which is not UTF-8 text}}
func.func private @fact() attributes {graph.facts = ["n == \FF"]}

// -----

// expected-error @below {{'func.func' op has the type '!graph.shape_value<["\FF"]>' with "\FF", which is not UTF-8 text}}
func.func private @dim(!graph.shape_value<["\FF"]>)

// -----

// expected-error @below {{"\FF" is not UTF-8 text}}
func.func private @"\FF"()
func.func private @"\FF"()

// -----

// expected-error @below {{'func.func' op has 'arg_attrs' with "{graph.\FF = 1 : i64}", which is not UTF-8 text}}
func.func private @name_of_argument_attribute(index {"graph.\FF" = 1 : i64})

// -----

// expected-error @below {{'func.func' op has an attribute that cannot be read: }}
func.func private @kind_of_array() attributes {a = array<f16: 1.0>}

// -----

// expected-error @below {{'func.func' op has 'graph.composite' that is 3 : i64; expects a string}}
func.func private @composite() attributes {graph.composite = 3 : i64}

// -----

// expected-error @below {{'func.func' op has 'graph.codegen' that is unit; expects a string}}
func.func private @codegen() attributes {graph.codegen}

// -----

// expected-error @below {{'func.func' op has 'graph.captured' that is "n"; expects an array}}
func.func private @captured() attributes {graph.captured = "n"}

// -----

func.func @unreadable_element(%x: tensor<4xf32>) {
  // expected-error @below {{'graph.exp' op has 'own' with an element that cannot be read: Can't cast unknown element type DenseArrayAttr}}
  %0 = "graph.exp"(%x) {own = [array<f16: 1.0>]} : (tensor<4xf32>) -> tensor<4xf32>
  return
}
