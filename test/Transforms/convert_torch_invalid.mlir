// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-convert-torch

// All that torch-mlir does not lower is named at once.
func.func @unsupported(%x: !torch.vtensor<[?,4],f32>) -> !torch.vtensor<[?,4],f32> {
  %int1 = torch.constant.int 1
  // expected-error @below {{'torch.aten.erfinv' op is not supported: torch-mlir does not lower it}}
  %0 = torch.aten.erfinv %x : !torch.vtensor<[?,4],f32> -> !torch.vtensor<[?,4],f32>
  %1 = torch.aten.add.Tensor %0, %0, %int1 : !torch.vtensor<[?,4],f32>, !torch.vtensor<[?,4],f32>, !torch.int -> !torch.vtensor<[?,4],f32>
  %none = torch.constant.none
  // expected-error @below {{'torch.aten.fft_fft' op is not supported: torch-mlir does not lower it}}
  %2 = torch.aten.fft_fft %1, %none, %int1, %none : !torch.vtensor<[?,4],f32>, !torch.none, !torch.int, !torch.none -> !torch.vtensor<[?,4],complex<f32>>
  // expected-error @below {{'torch.aten.erfinv' op is not supported: torch-mlir does not lower it}}
  %3 = torch.aten.erfinv %1 : !torch.vtensor<[?,4],f32> -> !torch.vtensor<[?,4],f32>
  return %3 : !torch.vtensor<[?,4],f32>
}

// -----

// A size of exported dims that an op uses is not only a comment.
func.func @sized(%x: !torch.vtensor<[?],f32>) -> !torch.vtensor<[?],f32> {
  %n = torch.symbolic_int "s0" {min_val = 0, max_val = 100} : !torch.int
  torch.bind_symbolic_shape %x, [%n], affine_map<()[s0] -> (s0)> : !torch.vtensor<[?],f32>
  // expected-error @below {{'torch.aten.add.Scalar' op is not supported: torch-mlir does not lower it}}
  %0 = torch.aten.add.Scalar %x, %n, %n : !torch.vtensor<[?],f32>, !torch.int, !torch.int -> !torch.vtensor<[?],f32>
  return %0 : !torch.vtensor<[?],f32>
}
