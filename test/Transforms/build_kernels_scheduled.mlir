// RUN: relax-opt %s --relax-build-kernels=target=x86-64-v4 | FileCheck %s
// RUN: relax-opt %s --relax-schedule=target=x86-64-v4 | FileCheck %s

// Host code has to know of a kernel that was scheduled by hand that it uses tile registers, for
// which the system gives permission.
// CHECK:      func.func private @tiles
// CHECK-SAME:   tir.unit = "bf16"
// CHECK-SAME:   tir.uses_tiles
func.func private @tiles(%x: memref<?xf32>, %y: memref<?xf32>) attributes {tir.num_outs = 1 : i64, tir.prim_func, tir.scheduled} {
  %0 = memref.extract_aligned_pointer_as_index %x : memref<?xf32> -> index
  %1 = arith.index_cast %0 : index to i64
  %2 = llvm.inttoptr %1 : i64 to !llvm.ptr
  llvm.call_intrinsic "llvm.x86.ldtilecfg"(%2) : (!llvm.ptr) -> ()
  %t = arith.constant 0 : i8
  llvm.call_intrinsic "llvm.x86.tdpbf16ps"(%t, %t, %t) : (i8, i8, i8) -> ()
  return
}
