// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-convert-linalg

// All that is not supported is named at once.
// expected-error @below {{'func.func' op has 'memref<4xf32>'; expects tensors}}
func.func @unsupported(%x: tensor<4xf32>, %m: memref<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'tosa.abs' op is not converted by this pass; run relax-convert-tosa}}
  %0 = tosa.abs %x : (tensor<4xf32>) -> tensor<4xf32>
  %e = tensor.empty() : tensor<4xf32>
  %1 = linalg.exp ins(%0 : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  // expected-error @below {{'tensor.empty' op has 'tensor<4xcomplex<f32>>', whose elements are not supported}}
  %2 = tensor.empty() : tensor<4xcomplex<f32>>
  // expected-error @below {{'memref.dealloc' op is not supported}}
  memref.dealloc %m : memref<4xf32>
  return %1 : tensor<4xf32>
}

// -----

func.func @body(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%x : tensor<4xf32>) {
  ^bb0(%a: f32):
    // expected-error @below {{'complex.create' op is not supported in a tensor program; expects ops of affine, arith}}
    %c = complex.create %a, %a : complex<f32>
    linalg.yield %a : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @dims(%x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %m = arith.addi %n, %c1 : index
  %e = tensor.empty(%m) : tensor<?xf32>
  // expected-error @below {{'linalg.exp' op has dim 0 of operand 1 of arg0_0 + 1, which has to be arg0_0}}
  %0 = linalg.exp ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

func.func @strides(%x: tensor<?xf32>, %i: index) -> tensor<3xf32> {
  // expected-error @below {{'tensor.extract_slice' op has strides ['size']; expects constants > 0}}
  %0 = tensor.extract_slice %x[0] [3] [%i] : tensor<?xf32> to tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @axis(%x: tensor<?xf32>, %i: index) -> (index, tensor<?xf32>) {
  // expected-error @below {{'tensor.dim' op expects a constant axis from 0 to 0}}
  %n = tensor.dim %x, %i : tensor<?xf32>
  %0 = math.exp %x : tensor<?xf32>
  return %n, %0 : index, tensor<?xf32>
}

// -----

func.func @padding(%x: tensor<2xindex>) -> tensor<4xindex> {
  // expected-error @below {{'tensor.pad' op pads with elements that depend on their position; expects one value}}
  %0 = tensor.pad %x low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %i : index
  } : tensor<2xindex> to tensor<4xindex>
  return %0 : tensor<4xindex>
}

// -----

func.func private @outside(tensor<?xf32>) -> tensor<?xf32>

func.func @declared(%x: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error @below {{'func.call' op calls '@outside', which is no function with a body}}
  %0 = func.call @outside(%x) : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

func.func @paths(%x: tensor<*xf32>) -> tensor<*xf32> {
  // expected-error @below {{'tensor.cast' op has an operand of 'tensor<*xf32>'; expects a known rank}}
  %0 = tensor.cast %x : tensor<*xf32> to tensor<?xf32>
  %1 = tensor.cast %0 : tensor<?xf32> to tensor<*xf32>
  return %1 : tensor<*xf32>
}
