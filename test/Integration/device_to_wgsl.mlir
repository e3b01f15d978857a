// RUN: relax-compile %s --target=webgpu --emit=kernels | FileCheck %s

// Buffers are bindings, scalars words of a uniform buffer; indices are i32.

// CHECK-LABEL: // kernel softmax_kernel
// CHECK:       fn f32_fma(
// CHECK:       struct Params {
// CHECK-NEXT:    zero: u32,
// CHECK:       @group(0) @binding(0) var<storage, read_write> b0: array<f32>;
// CHECK:       @group(0) @binding(1) var<storage, read_write> b1: array<f32>;
// CHECK:       var<workgroup> shared0: array<f32, 128>;
// CHECK:       @compute @workgroup_size(128, 1, 1)
// CHECK-NEXT:  fn main(@builtin(workgroup_id) workgroup_id: vec3<u32>
// CHECK:         [[THREAD:v[0-9]+]] = bitcast<i32>(local_invocation_id.x);
// CHECK:         for (var [[AT:at[0-9]+]] = [[THREAD]]; [[AT]] < {{v[0-9]+}}; [[AT]] += i32(128)) {
// CHECK:         shared0[[[THREAD]]] =
// CHECK:           storageBarrier();
// CHECK-NEXT:      workgroupBarrier();
// CHECK:           f32_fma(
// CHECK:           b1[{{.*}}] =

// CHECK-LABEL: // kernel add_kernel
// CHECK-NOT:   fn f32_fma(
// CHECK:         let [[A:v[0-9]+]] = b0[
// CHECK:         let [[B:v[0-9]+]] = b1[
// CHECK:         let [[SUM:v[0-9]+]] = [[A]] + [[B]];
// CHECK:         b2[{{.*}}] = [[SUM]];

// Elements of less than a word: parts of words, stored by atomic operations.
// CHECK-LABEL: // kernel astype_kernel
// CHECK:       var<storage, read_write> b0: array<u32>;
// CHECK:       var<storage, read_write> b1: array<atomic<u32>>;
// CHECK:       atomicAnd(&b1[at / 2u]
// CHECK-NEXT:  atomicOr(&b1[at / 2u]
// CHECK:         [[INTEGER:v[0-9]+]] = i32_extend(bitcast<i32>(load_b0_2(
// CHECK-NEXT:    [[FLOAT:v[0-9]+]] = f32([[INTEGER]]);
// CHECK-NEXT:    [[HALF:v[0-9]+]] = f16_from_f32([[FLOAT]]);
// CHECK-NEXT:    store_b1_3({{.*}}, [[HALF]]);
!m = tensor<?x?xf32, #graph.shape<["m", "n"]>>
func.func @rows(%x: !m) -> !m {
  %0 = "graph.nn_softmax"(%x) {axis = -1 : i64} : (!m) -> !m
  return %0 : !m
}
!x = tensor<?x3xf32, #graph.shape<["n", 3]>>
func.func @sum(%x: !x, %y: tensor<3xf32>) -> !x {
  %0 = "graph.add"(%x, %y) : (!x, tensor<3xf32>) -> !x
  return %0 : !x
}
!i = tensor<?xi8, #graph.shape<["n"]>>
!h = tensor<?xf16, #graph.shape<["n"]>>
func.func @half(%x: !i) -> !h {
  %0 = "graph.astype"(%x) {dtype = f16} : (!i) -> !h
  return %0 : !h
}
