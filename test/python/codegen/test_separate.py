"""Kernels get modules of their own, with all that they need, and mean what they meant."""

import ctypes

import numpy as np
from small_kernels import build, call

from relax_mlir.bindings import ir
from relax_mlir.codegen import BuildStats
from relax_mlir.codegen.names import protect_names
from relax_mlir.codegen.separate import separate_kernels
from relax_mlir.rewriting import walk_ops

TEXT = """
memref.global "private" constant @table : memref<2xi64> = dense<[3, 4]>
llvm.mlir.global external @slot(7 : i64) : i64

func.func @f(%m: memref<4xi64>) {
  func.call @alone(%m) : (memref<4xi64>) -> ()
  func.call @first(%m) : (memref<4xi64>) -> ()
  func.call @second(%m) : (memref<4xi64>) -> ()
  func.call @reader(%m) : (memref<4xi64>) -> ()
  return
}
func.func private @put(%m: memref<4xi64>, %i: index) {
  %c1 = arith.constant 1 : index
  %t = memref.get_global @table : memref<2xi64>
  %v = memref.load %t[%c1] : memref<2xi64>
  memref.store %v, %m[%i] : memref<4xi64>
  return
}
func.func private @alone(%m: memref<4xi64>) attributes {tir.scheduled} {
  %c0 = arith.constant 0 : index
  %t = memref.get_global @table : memref<2xi64>
  %v = memref.load %t[%c0] : memref<2xi64>
  memref.store %v, %m[%c0] : memref<4xi64>
  return
}
func.func private @first(%m: memref<4xi64>) attributes {tir.scheduled} {
  %i = arith.constant 1 : index
  func.call @put(%m, %i) : (memref<4xi64>, index) -> ()
  return
}
func.func private @second(%m: memref<4xi64>) attributes {tir.scheduled} {
  %i = arith.constant 2 : index
  func.call @put(%m, %i) : (memref<4xi64>, index) -> ()
  %one = arith.constant 1 : i64
  %again = arith.addi %one, %one : i64
  return
}
func.func private @reader(%m: memref<4xi64>) attributes {tir.scheduled} {
  %i = arith.constant 3 : index
  %p = llvm.mlir.addressof @slot : !llvm.ptr
  %v = llvm.load %p : !llvm.ptr -> i64
  memref.store %v, %m[%i] : memref<4xi64>
  return
}
"""


def _defined(module: ir.Module) -> set[str]:
    """The symbols of a module but for declarations of functions."""
    return {
        ir.StringAttr(op.attributes["sym_name"]).value
        for op in module.body.operations
        if op.operation.name != "func.func" or op.regions[0].blocks
    }


def test_what_goes_where() -> None:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(TEXT)
        parts = separate_kernels(module, ["f"], protect_names(module, ["f"]))
        found = [(_defined(part), names) for part, names in parts]
        # The two that share a function stay together, and the largest part comes first.
        assert found == [
            (
                {"relax.first", "relax.second", "relax.put", "table"},
                {"relax.first", "relax.second"},
            ),
            ({"relax.alone", "table"}, {"relax.alone"}),
        ]
        # There is one variable that is known outside, so who reads it stays with it.
        assert _defined(module) == {"f", "relax.reader", "slot", "table"}
        for part in [module, *(part for part, _ in parts)]:
            assert part.operation.verify()
            assert walk_ops(part)


def test_an_exported_kernel_stays() -> None:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(TEXT)
        exports = ["f", "second"]
        parts = separate_kernels(module, exports, protect_names(module, exports))
        assert [_defined(part) for part, _ in parts] == [{"relax.alone", "table"}]
        assert {"second", "relax.first", "relax.put"} <= _defined(module)


def test_separate_kernels_compute_the_same() -> None:
    stats = BuildStats()
    library = build(TEXT, "f", "slot", stats=stats)
    assert stats.objects == 4  # the runtime, two parts, and the rest
    out = np.zeros(4, np.int64)
    call(library.f, out)
    assert out.tolist() == [3, 4, 4, 7]
    ctypes.c_int64.in_dll(library, "slot").value = 5
    call(library.f, out)
    assert out.tolist() == [3, 4, 4, 5]
