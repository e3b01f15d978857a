// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='relax-outline-launches'

func.func private @matrix(%x: memref<?x?xf32>) attributes {tir.scheduled} {
  %c1 = arith.constant 1 : index
  // expected-error @below {{'gpu.func' op takes a buffer of 'memref<?x?xf32>'; kernels of devices take buffers of one dim}}
  gpu.launch blocks(%a, %b, %c) in (%g = %c1, %h = %c1, %i = %c1)
      threads(%d, %e, %f) in (%s = %c1, %t = %c1, %u = %c1) {
    %0 = memref.load %x[%a, %d] : memref<?x?xf32>
    memref.store %0, %x[%d, %a] : memref<?x?xf32>
    gpu.terminator
  }
  return
}

// -----

func.func private @extent(%x: memref<?xindex>) attributes {tir.scheduled} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @below {{'gpu.func' op takes a buffer that it does not only load and store}}
  gpu.launch blocks(%a, %b, %c) in (%g = %c1, %h = %c1, %i = %c1)
      threads(%d, %e, %f) in (%s = %c1, %t = %c1, %u = %c1) {
    %0 = memref.dim %x, %c0 : memref<?xindex>
    memref.store %0, %x[%d] : memref<?xindex>
    gpu.terminator
  }
  return
}

// -----

func.func private @vector(%x: memref<?xf32>, %v: vector<4xf32>) attributes {tir.scheduled} {
  %c1 = arith.constant 1 : index
  // expected-error @below {{'gpu.func' op takes a value of 'vector<4xf32>'; expects buffers, scalars and tensor maps}}
  gpu.launch blocks(%a, %b, %c) in (%g = %c1, %h = %c1, %i = %c1)
      threads(%d, %e, %f) in (%s = %c1, %t = %c1, %u = %c1) {
    vector.store %v, %x[%d] : memref<?xf32>, vector<4xf32>
    gpu.terminator
  }
  return
}
