// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(relax-map-nodes{target=x86-64})'
// RUN: not relax-opt %s --pass-pipeline='builtin.module(relax-map-nodes{policy=fast})' 2>&1 | FileCheck %s --check-prefix=POLICY
// RUN: not relax-opt %s --pass-pipeline='builtin.module(relax-map-nodes{policy=profiled times=a@gpu=1})' 2>&1 | FileCheck %s --check-prefix=TIMES
// RUN: not relax-opt %s --pass-pipeline='builtin.module(relax-map-nodes{times=a@cpu=1})' 2>&1 | FileCheck %s --check-prefix=UNUSED

// POLICY: pass 'relax-map-nodes': unknown policy 'fast'; accepted are static, profiled, greedy
// TIMES: pass 'relax-map-nodes': 'a@gpu=1' is no time; expects blur@cpu=0.5 or @device
// UNUSED: pass 'relax-map-nodes': times are for the policy 'profiled'
#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!n = tensor<?xf32, #graph.shape<["n"]>>
func.func private @a(%x: f32) -> f32
    attributes {tir.leaf, tir.targets = ["vulkan"], tir.versions = [@b]} {
  return %x : f32
}
func.func private @b(%x: f32) -> f32 attributes {tir.leaf, tir.targets = ["cuda", "webgpu"]} {
  return %x : f32
}
func.func @no_version(%x: !n) -> !n {
  // expected-error @below {{'graph.node' op has no version for cpu: '@a' is for vulkan, '@b' is for cuda or webgpu}}
  %0 = "graph.node"(%x) {callee = @a, grid = #graph.shape<["n"]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  return %0 : !n
}

// -----

#in1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!n = tensor<?xf32, #graph.shape<["n"]>>
func.func private @a(%x: f32) -> f32 attributes {tir.leaf, tir.targets = ["cpu"]} {
  return %x : f32
}
func.func @no_device(%x: !n) -> !n {
  // expected-error @below {{'graph.node' op is placed on 'vulkan', but the target has no device; accepted are 'cpu' and 'device'}}
  %0 = "graph.node"(%x) {callee = @a, grid = #graph.shape<["n"]>, edges = ["one_to_one"],
      graph.device = "vulkan", operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> !n
  return %0 : !n
}

// -----

// expected-error @below {{'func.func' op has the version '@c', which is no other leaf}}
// expected-error @below {{'func.func' op has the version '@a', which is no other leaf}}
func.func private @a(%x: f32) -> f32 attributes {tir.leaf, tir.versions = [@c, @a]} {
  return %x : f32
}

// -----

// expected-error @below {{'func.func' op has the version '@b', which has versions itself}}
func.func private @a(%x: f32) -> f32 attributes {tir.leaf, tir.versions = [@b]} {
  return %x : f32
}
// expected-error @below {{'func.func' op has the version '@c' of '(f64) -> f64'; expects the leaf's own}}
func.func private @b(%x: f32) -> f32 attributes {tir.leaf, tir.versions = [@c]} {
  return %x : f32
}
func.func private @c(%x: f64) -> f64 attributes {tir.leaf} {
  return %x : f64
}

// -----

// expected-error @below {{'func.func' op has 'tir.versions' [@b, @b]; expects a leaf with names of other leaves}}
func.func private @a(%x: f32) -> f32 attributes {tir.leaf, tir.versions = [@b, @b]} {
  return %x : f32
}
func.func private @b(%x: f32) -> f32 attributes {tir.leaf} {
  return %x : f32
}
// expected-error @below {{'func.func' op has 'tir.targets' ["tpu"]; expects a leaf with some of cpu, gpu, cuda, vulkan, webgpu, device}}
func.func private @c(%x: f32) -> f32 attributes {tir.leaf, tir.targets = ["tpu"]} {
  return %x : f32
}
