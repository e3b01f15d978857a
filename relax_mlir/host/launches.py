"""Lowers launches to calls of the runtime, which has a table of the kernels.

    gpu.launch_func @k::@k blocks in (%x, %y, %z) threads in (..) args(%a, %n)
      ->
    %words = (the address and bytes of %a, %n)
    func.call @rx_launch(%kernel, %x, %y, %z, %words)

A kernel's number is that of its `gpu.module` in the module. Tables of constants that kernels take
are copied to the device, as constants of graph functions are.
"""

import math
from collections.abc import Sequence

from relax_mlir.analysis.devices import placed
from relax_mlir.analysis.tensor_maps import is_tensor_map
from relax_mlir.bindings import arith, func, gpu, ir, llvm, memref, nvgpu
from relax_mlir.dialects.graph import element_bits
from relax_mlir.passes import PassFailure
from relax_mlir.rewriting import is_unused, walk_ops

from .dtypes import byte_width
from .function import HostModule
from .memory import stored
from .scratch import lower_scratch
from .tables import Field

CONSTANT = "struct<(ptr, i64, i64)>"
"""RxDeviceConstant."""
_VIEWS = ("memref.cast", "memref.collapse_shape", "memref.reinterpret_cast")


def lower_launches(module: ir.Operation, host: HostModule) -> None:
    """Lowers all launches of a module, in place.

    Raises PassFailure at a launch of a kernel that the module does not have, or of arguments that
    are neither buffers, scalars nor tensor maps.
    """
    kernels = [
        ir.StringAttr(own.operation.attributes["sym_name"]).value
        for own in walk_ops(module, gpu.GPUModuleOp)
    ]
    tables = {op.sym_name.value: op for op in walk_ops(module, memref.GlobalOp)}
    functions = [op for op in module.regions[0].blocks[0].operations if isinstance(op, func.FuncOp)]
    for function in functions:
        launches = walk_ops(function, gpu.LaunchFuncOp)
        for launch in launches:
            with launch.location:
                _Launch(launch, function, host, tables).lower(kernels)
        if launches:
            lower_scratch(function, host.runtime, host.index(placed(function)))
        lowered = memref.GetGlobalOp, nvgpu.TmaCreateDescriptorOp
        for op in walk_ops(function, *lowered) if launches else ():
            if is_unused(op):
                op.operation.erase()


def write_constants(host: HostModule) -> None:
    """Writes the table of constants that devices have copies of."""
    rows: list[Field] = [[name, size, device] for (name, device), size in host.constants.items()]
    host.table.public("device_constants", CONSTANT, rows)


class _Launch:
    """A launch, and where the ops go that replace it."""

    def __init__(
        self,
        op: gpu.LaunchFuncOp,
        function: func.FuncOp,
        host: HostModule,
        tables: dict[str, memref.GlobalOp],
    ) -> None:
        self._op, self._function, self._host, self._tables = op, function, host, tables
        self._at = ir.InsertionPoint(op)
        self._i32, self._i64 = map(ir.IntegerType.get_signless, (32, 64))

    def lower(self, kernels: Sequence[str]) -> None:
        """Replaces the launch."""
        name, _ = ir.SymbolRefAttr(self._op.operation.attributes["kernel"]).value
        if name not in kernels:
            raise PassFailure(self._op, f"launches '@{name}', which the module does not have")
        with self._at:
            arguments = list(self._op.kernelOperands)
            words = [word for x in arguments for word in self._words(x)]
            grid = [
                arith.index_cast(self._i64, x)
                for x in (self._op.gridSizeX, self._op.gridSizeY, self._op.gridSizeZ)
            ]
            kernel = arith.constant(self._i32, kernels.index(name))
            self._host.runtime.results("rx_launch")
            func.CallOp([], "rx_launch", [kernel, *grid, self._array(words)])
        self._op.operation.erase()

    def _array(self, words: Sequence[ir.Value]) -> ir.Value:
        """The words, one after another in memory."""
        pointer = llvm.PointerType.get()
        with ir.InsertionPoint.at_block_begin(self._function.entry_block):
            count = arith.constant(self._i64, max(len(words), 1))
            array = llvm.AllocaOp(pointer, count, self._i64).res
        for index, word in enumerate(words):
            field = llvm.GEPOp(pointer, array, [], [index], self._i64, None).res
            llvm.StoreOp(word, field)
        return array

    def _words(self, x: ir.Value) -> list[ir.Value]:
        if isinstance(x.type, ir.MemRefType):
            return self._buffer(x, ir.MemRefType(x.type))
        if is_tensor_map(x.type):
            return self._map(x)
        if isinstance(x.type, ir.IndexType):
            return [arith.index_cast(self._i64, x)]
        if isinstance(x.type, ir.FloatType):
            bits = ir.IntegerType.get_signless(x.type.width)
            x = arith.bitcast(bits, x)
            return [x if bits == self._i64 else arith.extui(self._i64, x)]
        if not isinstance(x.type, ir.IntegerType):
            text = f"takes a value of '{x.type}'; expects buffers, scalars and tensor maps"
            raise PassFailure(self._op, text)
        if x.type == self._i64:
            return [x]
        extend = arith.extui if x.type.width == 1 else arith.extsi
        return [extend(self._i64, x)]

    def _buffer(self, x: ir.Value, type_: ir.MemRefType) -> list[ir.Value]:
        """The address and the bytes."""
        width = element_bits(type_.element_type) // 8
        count = memref.dim(x, arith.constant(ir.IndexType.get(), 0))
        size = arith.muli(arith.index_cast(self._i64, count), arith.constant(self._i64, width))
        table = _root(x).owner
        if not isinstance(table, ir.Block) and table.operation.name == "memref.get_global":
            name = ir.FlatSymbolRefAttr(table.operation.attributes["name"]).value
            return [self._constant(self._tables[name]), size]
        address = memref.extract_aligned_pointer_as_index(x)
        return [arith.index_cast(self._i64, address), size]

    def _map(self, x: ir.Value) -> list[ir.Value]:
        """The address, then sizes, strides in bytes but the last, and the box, innermost first."""
        create = x.owner.opview
        if not isinstance(create, nvgpu.TmaCreateDescriptorOp):
            raise PassFailure(self._op, "takes a tensor map that it does not make")
        tensor = create.tensor.owner.operation.operands[0]
        kind = ir.MemRefType(tensor.type)
        size = arith.constant(ir.IndexType.get(), element_bits(kind.element_type) // 8)
        described = memref.ExtractStridedMetadataOp(tensor)
        address = memref.extract_aligned_pointer_as_index(described.base_buffer)
        first = arith.addi(address, arith.muli(described.offset, size))
        strides = [arith.muli(stride, size) for stride in list(described.strides)[:-1]]
        words = [*reversed(list(described.sizes)), *reversed(strides)]
        words += list(reversed(list(create.boxDimensions)))
        return [arith.index_cast(self._i64, word) for word in (first, *words)]

    def _constant(self, table: memref.GlobalOp) -> ir.Value:
        """The address of a table's copy on the device."""
        kind = ir.MemRefType(ir.TypeAttr(table.operation.attributes["type"]).value)
        tensor = ir.RankedTensorType.get(kind.shape, kind.element_type)
        value = table.operation.attributes["initial_value"]
        name = self._host.table.constant(*stored(table, tensor, value))
        size = math.prod(kind.shape) * byte_width(kind.element_type)
        device = self._host.index(placed(self._function))
        index = arith.constant(self._i32, self._host.constant(name, size, device))
        types = self._host.runtime.results("rx_device_constant")
        pointer = func.CallOp(types, "rx_device_constant", [index]).results[0]
        return llvm.PtrToIntOp(self._i64, pointer).res


def _root(buffer: ir.Value) -> ir.Value:
    """The memory that a buffer is a view of."""
    while not isinstance(buffer.owner, ir.Block) and buffer.owner.operation.name in _VIEWS:
        buffer = buffer.owner.operation.operands[0]
    return buffer
