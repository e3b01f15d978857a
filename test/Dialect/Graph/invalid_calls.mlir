// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-verify
// The labels of calls that are not here are in test/Transforms/verify.mlir.

#in1  = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>

func.func private @fill(%out: tensor<4xf32>) -> tensor<4xf32> attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  return %out : tensor<4xf32>
}

func.func @call_tir_inplace_c1(%x: tensor<4xf32>) {
  // expected-error @below {{'graph.call_tir_inplace' op calls '@nowhere', which is not a tensor program}}
  %0 = "graph.call_tir_inplace"(%x) {callee = @nowhere, inplace_indices = array<i64: 0>, sym_args = #graph.shape<[]>, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

func.func @call_tir_inplace_c2(%x: tensor<5xf32>) {
  // expected-error @below {{'graph.call_tir_inplace' op passes result 0, whose dim 0 is 5 instead of 4, to '@fill'}}
  %0 = "graph.call_tir_inplace"(%x) {callee = @fill, inplace_indices = array<i64: 0>, sym_args = #graph.shape<[]>, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<5xf32>) -> tensor<5xf32>
  return
}

// -----

#in1  = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#in2  = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>

"lib.function"() {sym_name = "sgemm", c_symbol = "cblas_sgemm", convention = "cblas_sgemm_nt", libraries = ["openblas"]} : () -> ()

func.func @call_dps_library(%x: tensor<?x4xf32, #graph.shape<["n", 4]>>, %w: tensor<3x4xf32>) {
  %0 = "graph.call_dps_library"(%x, %w) {callee = @sgemm, sym_args = #graph.shape<[]>, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (tensor<?x4xf32, #graph.shape<["n", 4]>>, tensor<3x4xf32>) -> tensor<?x3xf32, #graph.shape<["n", 3]>>
  return
}

func.func @call_library_inplace_c1_nowhere(%x: tensor<4xf32>) {
  // expected-error @below {{'graph.call_library_inplace' op calls 'nowhere', which no lib.function declares}}
  %0 = "graph.call_library_inplace"(%x) {callee = @nowhere, inplace_indices = array<i64: 0>, sym_args = #graph.shape<[]>, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

func.func @call_library_inplace_c1(%x: tensor<2x4xf32>, %y: tensor<3x4xf32>) {
  // expected-error @below {{'graph.call_library_inplace' op calls 'sgemm', whose convention 'cblas_sgemm_nt' updates no operands}}
  %0 = "graph.call_library_inplace"(%x, %y) {callee = @sgemm, inplace_indices = array<i64: -1>, sym_args = #graph.shape<[]>, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (tensor<2x4xf32>, tensor<3x4xf32>) -> tensor<2x3xf32>
  return
}

"lib.function"() {sym_name = "any", c_symbol = "any", convention = "dlpack", libraries = ["python"]} : () -> ()

func.func @call_library_inplace_c2(%x: tensor<4xf32>) {
  // expected-error @below {{'graph.call_library_inplace' op has 'inplace_indices' [1] for 1 operands and 1 results, but needs one distinct operand, or -1, per result}}
  %0 = "graph.call_library_inplace"(%x) {callee = @any, inplace_indices = array<i64: 1>, sym_args = #graph.shape<[]>, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

func.func @call_library_inplace_c3(%x: tensor<4xf32>) {
  // expected-error @below {{'graph.call_library_inplace' op computes 'tensor<5xf32>' into operand 0 of 'tensor<4xf32>'}}
  %0 = "graph.call_library_inplace"(%x) {callee = @any, inplace_indices = array<i64: 0>, sym_args = #graph.shape<[]>, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<5xf32>
  return
}

func.func @call_library_inplace_c3_scalar(%x: f32) {
  // expected-error @below {{'graph.call_library_inplace' op updates operand 0, 'f32', which is not a tensor}}
  %0 = "graph.call_library_inplace"(%x) {callee = @any, inplace_indices = array<i64: 0>, sym_args = #graph.shape<[]>, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (f32) -> f32
  return
}

func.func @call_library_c1(%x: tensor<2x4xf32>, %y: tensor<3x4xf32>) {
  // expected-error @below {{'graph.call_library' op calls 'nowhere', which no lib.function declares}}
  %0 = "graph.call_library"(%x, %y) {callee = @nowhere, sym_args = #graph.shape<[]>, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (tensor<2x4xf32>, tensor<3x4xf32>) -> tensor<2x3xf32>
  return
}

func.func @call_library_c2(%x: tensor<2x4xf32>) {
  // expected-error @below {{'graph.call_library' op expects 2 operands, but got 1}}
  %0 = "graph.call_library"(%x) {callee = @sgemm, sym_args = #graph.shape<[]>, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<2x4xf32>) -> tensor<2x3xf32>
  return
}

func.func @call_dps_library_c1(%x: tensor<2x4xf32>, %y: tensor<3x4xf32>) {
  // expected-error @below {{'graph.call_dps_library' op calls 'nowhere', which no lib.function declares}}
  %0 = "graph.call_dps_library"(%x, %y) {callee = @nowhere, sym_args = #graph.shape<[]>, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (tensor<2x4xf32>, tensor<3x4xf32>) -> tensor<2x3xf32>
  return
}

func.func @call_dps_library_c2(%x: tensor<2x4xf32>) {
  // expected-error @below {{'graph.call_dps_library' op expects 2 operands, but got 1}}
  %0 = "graph.call_dps_library"(%x) {callee = @sgemm, sym_args = #graph.shape<[]>, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<2x4xf32>) -> tensor<2x3xf32>
  return
}

func.func @call_dps_library_c2_element(%x: tensor<2x4xf64>, %y: tensor<3x4xf32>) {
  // expected-error @below {{'graph.call_dps_library' op expects elements of f32, but got f64}}
  %0 = "graph.call_dps_library"(%x, %y) {callee = @sgemm, sym_args = #graph.shape<[]>, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (tensor<2x4xf64>, tensor<3x4xf32>) -> tensor<2x3xf32>
  return
}

func.func @call_dps_library_c2_rank(%x: tensor<2x4xf32>, %y: tensor<4xf32>) {
  // expected-error @below {{'graph.call_dps_library' op expects ranks of at least 1 and of 2, but got 'tensor<2 x 4 x f32>' and 'tensor<4 x f32>'}}
  %0 = "graph.call_dps_library"(%x, %y) {callee = @sgemm, sym_args = #graph.shape<[]>, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x3xf32>
  return
}

func.func @call_dps_library_c2_dim(%x: tensor<2x4xf32>, %y: tensor<4x3xf32>) {
  // expected-error @below {{'graph.call_dps_library' op contracts dim 4 of lhs with dim 3 of rhs}}
  %0 = "graph.call_dps_library"(%x, %y) {callee = @sgemm, sym_args = #graph.shape<[]>, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  return
}

func.func @call_dps_library_c2_result(%x: tensor<2x4xf32>, %y: tensor<3x4xf32>) {
  // expected-error @below {{'graph.call_dps_library' op has results (tensor<2x4xf32>), but 'sgemm' returns 'tensor<2x3xf32>'}}
  %0 = "graph.call_dps_library"(%x, %y) {callee = @sgemm, sym_args = #graph.shape<[]>, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (tensor<2x4xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return
}

func.func @call_dps_library_c3(%x: tensor<2x4xf32>, %y: tensor<3x4xf32>) {
  // expected-error @below {{'graph.call_dps_library' op has workspaces (tensor<8 x ui8>), but functions of the convention 'cblas_sgemm_nt' take ()}}
  %0 = "graph.call_dps_library"(%x, %y) {callee = @sgemm, graph.workspace = #graph.shape<[8]>, sym_args = #graph.shape<[]>, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (tensor<2x4xf32>, tensor<3x4xf32>) -> tensor<2x3xf32>
  return
}

func.func @call_library_c3(%x: tensor<4xf32>) {
  // expected-error @below {{'graph.call_library' op expects 'graph.workspace' to be a shape of known bytes, but got 8 : i64}}
  %0 = "graph.call_library"(%x) {callee = @any, graph.workspace = 8 : i64, sym_args = #graph.shape<[]>, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

func.func @call_library_inplace_c4(%x: tensor<4xf32>) {
  // expected-error @below {{'graph.call_library_inplace' op expects 'graph.workspace' to be a shape of known bytes, but got #graph.shape<[64, "?"]>}}
  %0 = "graph.call_library_inplace"(%x) {callee = @any, inplace_indices = array<i64: 0>, graph.workspace = #graph.shape<[64, "?"]>, sym_args = #graph.shape<[]>, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

func.func @call_dps_library_c3_lifted(%x: tensor<4xf32>) {
  // expected-error @below {{'graph.call_dps_library' op expects 'graph.num_workspaces' to be up to 1, but got 2 : i64}}
  %0 = "graph.call_dps_library"(%x) {callee = @any, graph.num_workspaces = 2 : i64, sym_args = #graph.shape<[]>, operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

"lib.function"() {sym_name = "conv", c_symbol = "cblas_sgemm", convention = "im2col_sgemm", libraries = ["openblas"]} : () -> ()
#unit = #graph.shape<[1, 1, 0, 0, 0, 0, 1, 1]>

// What the function writes to is as large as it needs, and no smaller.
func.func @call_dps_library_c3_size(%x: tensor<1x3x5x5xf32>, %y: tensor<4x3x3x3xf32>) {
  // expected-error @below {{'graph.call_dps_library' op has workspaces (tensor<971 x ui8>), but functions of the convention 'im2col_sgemm' take (tensor<972 x ui8>)}}
  %0 = "graph.call_dps_library"(%x, %y) {callee = @conv, graph.workspace = #graph.shape<[971]>, sym_args = #unit, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (tensor<1x3x5x5xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x3x3xf32>
  return
}

func.func @call_dps_library_c2_integers(%x: tensor<1x3x5x5xf32>, %y: tensor<4x3x3x3xf32>) {
  // expected-error @below {{'graph.call_dps_library' op expects 8 constants, of strides, padding and dilation, but got (1, 1)}}
  %0 = "graph.call_dps_library"(%x, %y) {callee = @conv, graph.workspace = #graph.shape<[972]>, sym_args = #graph.shape<[1, 1]>, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (tensor<1x3x5x5xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x3x3xf32>
  return
}
