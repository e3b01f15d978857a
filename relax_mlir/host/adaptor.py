"""Adaptors: functions that build a kernel's memrefs from pointers and dynamic dims.

    func.func private @k(%x: memref<?x4xf32>, %n: index)
      ->
    func.func private @call.k(%pointer: !llvm.ptr, %dim: i64, %symbol: i64) {
      %x = (the memref at %pointer of the sizes %dim, 4 and the strides 4, 1)
      func.call @k(%x, %symbol)

A memref of two dims is lowered to seven scalars, and a model calls a few kernels from hundreds of
sites: an adaptor builds the memrefs of a kernel once.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import reduce

from relax_mlir.bindings import arith, builtin, func, ir, llvm
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.rewriting import SymbolNames

from .builder import Builder
from .runtime import Runtime

FEW_CALLS = 4
"""LLVM may inline adaptors with at most this count of call sites."""


class Adaptors:
    """The adaptors of a module's kernels, under new names; `write` adds those that are called."""

    def __init__(self, kernels: Mapping[str, func.FuncOp], names: SymbolNames) -> None:
        self._kernels, self._new_names = kernels, names
        self._types: dict[str, list[ir.Type]] = {}
        self._names: dict[str, str] = {}
        self._calls: Counter[str] = Counter()

    def open_dims(self, kernel: str, num_tensors: int, num_symbols: int) -> list[list[int]]:
        """The dynamic dims of each tensor argument of a kernel.

        Raises ValueError if the kernel does not exist, or takes another count of arguments.
        """
        if kernel not in self._kernels:
            raise ValueError(f"calls '{kernel}', which the module does not have")
        if kernel not in self._types:
            self._types[kernel] = list(self._kernels[kernel].type.inputs)
        types, passed = self._types[kernel], num_tensors + num_symbols
        if len(types) != passed:
            raise ValueError(f"passes {passed} arguments to '{kernel}', which takes {len(types)}")
        return [_open_dims(ir.MemRefType(type_)) for type_ in types[:num_tensors]]

    def name(self, kernel: str) -> str:
        """The name of the adaptor, for another call."""
        if kernel not in self._names:
            self._names[kernel] = self._new_names.fresh(f"call.{kernel}")
        self._calls[kernel] += 1
        return self._names[kernel]

    def write(self, block: ir.Block, runtime: Runtime) -> None:
        """Writes the adaptors that are called."""
        for kernel, name in self._names.items():
            adaptor = _adaptor(block, runtime, name, self._kernels[kernel])
            if self._calls[kernel] > FEW_CALLS:
                adaptor.attributes["llvm.no_inline"] = ir.UnitAttr.get()


def _adaptor(block: ir.Block, runtime: Runtime, name: str, kernel: func.FuncOp) -> func.FuncOp:
    """The adaptor of a kernel; it does not call the kernel if all outputs are empty.

    Kernels with an empty dim could still have huge loops around it.
    """
    pointer, i64 = llvm.PointerType.get(), ir.IntegerType.get_signless(64)
    types = list(kernel.type.inputs)
    open_dims = [_open_dims(type_) if isinstance(type_, ir.MemRefType) else [] for type_ in types]
    passed = [
        [pointer if isinstance(type_, ir.MemRefType) else i64, *(i64 for _ in axes)]
        for type_, axes in zip(types, open_dims, strict=True)
    ]
    signature = ir.FunctionType.get([t for group in passed for t in group], [])
    function = func.FuncOp(name, signature, visibility="private", ip=ir.InsertionPoint(block))
    out = Builder(function, runtime)
    arguments = iter(out.arguments)
    groups = [[next(arguments) for _ in group] for group in passed]
    tensors = [group for group, t in zip(groups, types) if isinstance(t, ir.MemRefType)]
    num_outs = PrimFunc(kernel).num_outs
    _leave_if_empty(out, [dims for _, *dims in tensors[len(tensors) - num_outs :]])
    values = []
    for type_, (first, *dims) in zip(types, groups, strict=True):
        if isinstance(type_, ir.MemRefType):
            values.append(_memref(out, first, dims, type_))
        else:
            values.append(arith.index_cast(type_, first, ip=out.at))
    out.call(kernel.name.value, values, [])
    out.finish()
    return function


def _leave_if_empty(out: Builder, outputs: Sequence[Sequence[ir.Value]]) -> None:
    """Returns if each output has a dynamic dim of 0."""
    if not outputs or not all(outputs):
        return
    zero = out.integer(0)
    flags = [[out.compare("eq", dim, zero) for dim in dims] for dims in outputs]
    empty = [reduce(lambda a, b: arith.ori(a, b, ip=out.at), each) for each in flags]
    out.leave_if(reduce(lambda a, b: arith.andi(a, b, ip=out.at), empty))


def _open_dims(type_: ir.MemRefType) -> list[int]:
    """The dynamic dims of a memref type."""
    return [axis for axis in range(type_.rank) if type_.is_dynamic_dim(axis)]


def _memref(
    out: Builder, pointer: ir.Value, open_dims: Sequence[ir.Value], type_: ir.MemRefType
) -> ir.Value:
    """Wraps memory as a contiguous memref, given the dynamic dims of its type."""
    rank, zero, opened = type_.rank, out.integer(0), iter(open_dims)
    dims = [
        next(opened) if type_.is_dynamic_dim(axis) else out.integer(extent)
        for axis, extent in enumerate(type_.shape)
    ]
    arrays = f", array<{rank} x i64>, array<{rank} x i64>" if rank else ""
    descriptor = ir.Type.parse(f"!llvm.struct<(ptr, ptr, i64{arrays})>")
    fields: list[tuple[ir.Value, list[int]]] = [(pointer, [0]), (pointer, [1]), (zero, [2])]
    stride = out.integer(1)
    for axis in reversed(range(rank)):
        fields += [(dims[axis], [3, axis]), (stride, [4, axis])]
        stride = out.product([stride, dims[axis]]) if axis < rank - 1 else dims[axis]
    current = llvm.UndefOp(descriptor, ip=out.at).res
    for value, path in fields:
        current = llvm.InsertValueOp(current, value, path, ip=out.at).res
    return builtin.UnrealizedConversionCastOp([type_], [current], ip=out.at).results[0]
