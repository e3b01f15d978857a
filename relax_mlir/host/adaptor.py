"""Functions that make memrefs for a kernel: of pointers, and of the dims that its types leave open.

    func.func private @k(%x: memref<?x4xf32>, %n: index)
      ->
    func.func private @call.k(%p0: !llvm.ptr, %d0_0: index, %s1: index) {
      %x = (the memref at %p0 of the sizes %d0_0, 4 and the strides 4, 1)
      func.call @k(%x, %s1)

A memref of two dims is seven numbers once lowered, and a model calls a few kernels from hundreds of
places: each kernel's memrefs are made in one place.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from relax_mlir.bindings import func, ir

from .function import POINTER, HostFunction, HostTensor

FEW_CALLS = 4
"""LLVM may inline what is called from as many places."""


class Adaptors:
    """The adaptors of a module's kernels; each comes into being at its first call."""

    def __init__(self, kernels: Mapping[str, func.FuncOp]) -> None:
        self._kernels = kernels
        self._names: dict[str, str] = {}
        self._calls: Counter[str] = Counter()

    @property
    def texts(self) -> list[str]:
        """The functions that have been called, as text."""
        return [
            _adaptor(name, kernel, self._kinds(kernel), self._calls[kernel] <= FEW_CALLS)
            for kernel, name in self._names.items()
        ]

    def call(
        self, out: HostFunction, kernel: str, tensors: Sequence[HostTensor], symbols: Sequence[str]
    ) -> None:
        """Writes a call of the kernel, of tensors and then symbols (SSA names of indices).

        Raises ValueError if there is no such kernel, or it takes another number of arguments.
        """
        if kernel not in self._kernels:
            raise ValueError(f"calls '{kernel}', which the module does not hold")
        kinds = self._kinds(kernel)
        if len(kinds) != len(tensors) + len(symbols):
            passed = len(tensors) + len(symbols)
            raise ValueError(f"passes {passed} arguments to '{kernel}', which takes {len(kinds)}")
        if kernel not in self._names:
            self._names[kernel] = self._unused(f"call.{kernel}")
        self._calls[kernel] += 1
        values, types = [], []
        for tensor, kind in zip(tensors, kinds, strict=False):
            dims = [tensor.dims[axis] for axis in _open_dims(kind)]
            values += [tensor.pointer, *dims]
            types += [POINTER, *("index" for _ in dims)]
        values += symbols
        types += map(str, kinds[len(tensors) :])
        call = f"func.call @{self._names[kernel]}({', '.join(values)})"
        out.line(f"{call} : ({', '.join(types)}) -> ()")

    def _kinds(self, kernel: str) -> list[ir.Type]:
        return list(self._kernels[kernel].type.inputs)

    def _unused(self, name: str) -> str:
        while name in self._kernels or name in self._names.values():
            name += "_"
        return name


def _adaptor(name: str, kernel: str, kinds: Sequence[ir.Type], inline: bool) -> str:
    """The text of the function of that name that calls a kernel of those argument types."""
    out = HostFunction(name)
    arguments, values = [], []
    for number, kind in enumerate(kinds):
        if not isinstance(kind, ir.MemRefType):
            arguments.append(f"%s{number}: {kind}")
            values.append(f"%s{number}")
            continue
        opened = {axis: f"%d{number}_{axis}" for axis in _open_dims(kind)}
        arguments += [f"%p{number}: {POINTER}", *(f"{dim}: index" for dim in opened.values())]
        dims = [
            opened[axis] if axis in opened else out.integer(extent)
            for axis, extent in enumerate(kind.shape)
        ]
        values.append(_memref(out, f"%p{number}", dims, kind))
    types = ", ".join(map(str, kinds))
    out.line(f"func.call @{kernel}({', '.join(values)}) : ({types}) -> ()")
    out.line("func.return")
    attributes = "" if inline else " attributes {llvm.no_inline}"
    head = f"func.func private @{name}({', '.join(arguments)}){attributes} {{"
    return "\n".join([head, *out.lines, "}"])


def _open_dims(kind: ir.Type) -> list[int]:
    """The dims of a memref that its type does not say."""
    memref = ir.MemRefType(kind)
    return [axis for axis in range(memref.rank) if memref.is_dynamic_dim(axis)]


def _memref(out: HostFunction, pointer: str, dims: Sequence[str], kind: ir.Type) -> str:
    """Wraps memory as a contiguous memref."""
    rank = len(dims)
    arrays = f", array<{rank} x i64>, array<{rank} x i64>" if rank else ""
    struct = f"!llvm.struct<(ptr, ptr, i64{arrays})>"
    fields = [(pointer, "0"), (pointer, "1"), (out.integer(0, "i64"), "2")]
    stride = out.integer(1)
    for axis in reversed(range(rank)):
        fields.append((out.as_i64(dims[axis]), f"3, {axis}"))
        fields.append((out.as_i64(stride), f"4, {axis}"))
        if axis:
            stride = out.value(f"arith.muli {stride}, {dims[axis]} : index")
    current = out.value(f"llvm.mlir.undef : {struct}")
    for value, where in fields:
        current = out.value(f"llvm.insertvalue {value}, {current}[{where}] : {struct}")
    return out.value(f"builtin.unrealized_conversion_cast {current} : {struct} to {kind}")
