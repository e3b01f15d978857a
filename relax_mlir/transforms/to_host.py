"""Turns graph functions of explicit calls into native host code.

    func.func @main(%x: tensor<?xf32, #graph.shape<["n"]>>) -> tensor<?xf32, ...>
      ->
    func.func @rx_fn_main(ctx, args, num_args, results, num_results) -> i32

The code has the arguments checked against a table (rank, dtype, dims, facts), computes what
follows from their symbols, takes memory from the runtime's arena, calls the kernels, and hands out
results. Regions become blocks and branches. No interpreter runs between kernels.

Needs: scheduled kernels (`relax-schedule`), explicit calls (`relax-lower-calls`), planned memory
(`relax-plan-memory`). Leaves: only kernels, host functions and LLVM globals. Launches are
calls of the runtime, by the numbers of their `gpu.module`s; devices have the tensors, the host
scalars and shapes.
Source: paper §4.7; TVM `VMShapeLower`, whose shape heap are SSA values here.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from relax_mlir.analysis.devices import DEVICE, device_of_argument, placed
from relax_mlir.analysis.functions import argument_name, graph_functions, is_public
from relax_mlir.analysis.units import uses_tiles, vector_length
from relax_mlir.bindings import func, gpu, ir, llvm
from relax_mlir.dialects.graph import CallDpsOp, ShapeValueType
from relax_mlir.dialects.lib import FunctionOp
from relax_mlir.dialects.tir import NUM_OUTS, PrimFunc
from relax_mlir.host.adaptor import Adaptors
from relax_mlir.host.dtypes import dlpack_dtype
from relax_mlir.host.emit import EMITTERS
from relax_mlir.host.entry import emit_entry
from relax_mlir.host.function import HostModule
from relax_mlir.host.launches import lower_launches, write_constants
from relax_mlir.host.library import slot_name
from relax_mlir.host.metadata import metadata_text
from relax_mlir.host.private import emit_called
from relax_mlir.host.runtime import Runtime
from relax_mlir.host.scalars import scalar_type
from relax_mlir.host.site_counts import SiteCounts
from relax_mlir.host.tables import Globals
from relax_mlir.passes import Pass, PassFailure
from relax_mlir.rewriting import SymbolNames, safe_erase, walk_ops
from relax_mlir.target import WASM, Device, Target, native
from relax_mlir.target.device import DEVICE as OF_TARGET
from relax_mlir.target.device import HOST, device_names


@dataclass(frozen=True)
class ToHost(Pass):
    """Turns graph functions of explicit calls into native host code."""

    needs_verified: ClassVar[bool] = True
    keeps_verified: ClassVar[bool] = False  # host code has blocks that branch

    target: Target = field(default_factory=native)

    def run(self, op: ir.Operation) -> None:
        """Rewrites every public graph function, and those that they call."""
        block = op.regions[0].blocks[0]
        kernels = {
            inner.name.value: inner
            for inner in block.operations
            if isinstance(inner, func.FuncOp) and PrimFunc.is_prim_func(inner)
        }
        for kernel in kernels.values():
            _check_kernel(kernel)
        libraries = [inner for inner in block.operations if isinstance(inner, FunctionOp)]
        if libraries and self.target.host.arch == WASM:
            raise PassFailure(
                libraries[0], f"cannot be called: code for {self.target} has no libraries"
            )
        functions = graph_functions(op)
        for function in filter(is_public, functions):
            _check_entry(function)
        for function in functions:
            _check_elements(function)
            _check_devices(function, self.target)
        host = _host_module(kernels, libraries, functions, SymbolNames(block), self.target.devices)
        if self.target.devices:
            _check_locations(kernels, functions)
        for function in filter(is_public, functions):
            emit_entry(function, host)
        emit_called(host, EMITTERS)
        host.adaptors.write(host.block, host.runtime)
        if self.target.device is not None:
            lower_launches(op, host)
            write_constants(host)
        metadata = metadata_text(
            block, functions, list(kernels), libraries, self.target, host.sites.recursion
        )
        _write_metadata(host, metadata)
        for function in [*functions, *libraries]:
            safe_erase(function)
        for new in list(host.block.operations):
            new.operation.detach_from_parent()
            block.append(new)


def _check_entry(function: func.FuncOp) -> None:
    """Raises PassFailure if a function cannot be called from outside."""
    name = function.name.value
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise PassFailure(function, f"is exported, but '{name}' is no name in C")
    for index, type_ in enumerate(function.type.inputs):
        is_passed = isinstance(type_, ir.RankedTensorType | ShapeValueType)
        if not is_passed and scalar_type(type_) is None:
            argument = f"argument {index} '{argument_name(function, index)}'"
            raise PassFailure(
                function, f"has {argument} of '{type_}', not a ranked tensor, a shape or a scalar"
            )
    for index, type_ in enumerate(function.type.results):
        is_passed = isinstance(type_, ir.RankedTensorType | ShapeValueType)
        if not is_passed and scalar_type(type_) is None:
            text = f"has result {index} of '{type_}', not a ranked tensor, a shape or a scalar"
            raise PassFailure(function, text)


def _check_elements(function: func.FuncOp) -> None:
    """Raises PassFailure at the first value whose elements are not stored in whole bytes."""

    def check(place: ir.OpView, values: Iterable[ir.Value]) -> None:
        for value in values:
            type_ = value.type
            if isinstance(type_, ir.RankedTensorType):
                try:
                    dlpack_dtype(type_.element_type)
                except ValueError as error:
                    raise PassFailure(place, str(error)) from None

    check(function, function.arguments)
    for op in walk_ops(function):
        check(op, op.results)


def _check_devices(function: func.FuncOp, target: Target) -> None:
    """Raises PassFailure at what is on a device that the target does not have."""
    known = (HOST, OF_TARGET, *device_names(target.devices))
    arguments = (device_of_argument(function, index) for index in range(len(function.arguments)))
    marked = [(function, device) for device in (placed(function), *arguments)]
    marked += [(op, placed(op)) for op in walk_ops(function) if DEVICE in op.attributes]
    for op, device in marked:
        if device not in known:
            text = f"is on '{device}', which target '{target}' does not have"
            raise PassFailure(op, f"{text}; run relax-place-devices first")


def _check_kernel(kernel: func.FuncOp) -> None:
    """Raises PassFailure if a kernel cannot be called by host code."""
    if not PrimFunc(kernel).is_scheduled:
        raise PassFailure(kernel, "is not scheduled; run relax-schedule before relax-to-host")
    types = kernel.type.inputs
    tensors = [isinstance(type_, ir.MemRefType) for type_ in types]
    indices = [isinstance(type_, ir.IndexType) for type_ in types]
    if not all(a or b for a, b in zip(tensors, indices)) or indices != sorted(indices):
        raise PassFailure(kernel, "must take memrefs, then indices")
    num_outs = kernel.attributes[NUM_OUTS] if NUM_OUTS in kernel.attributes else None
    if not isinstance(num_outs, ir.IntegerAttr) or not 0 <= num_outs.value <= sum(tensors):
        raise PassFailure(
            kernel, f"has {sum(tensors)} tensors, so '{NUM_OUTS}' cannot be {num_outs}"
        )


def _check_locations(kernels: Mapping[str, func.FuncOp], functions: Sequence[func.FuncOp]) -> None:
    """Raises PassFailure at a kernel that runs elsewhere than where its tensors are."""
    for function in functions:
        device = placed(function)
        names = dict.fromkeys(call.callee_name for call in walk_ops(function, CallDpsOp))
        for kernel in (kernels[name] for name in names if name in kernels):
            for op in walk_ops(kernel):
                is_launch, own = isinstance(op, gpu.LaunchFuncOp), placed(kernel)
                if is_launch and own != device:
                    text = f"is of '{own}', but '@{function.name.value}' of '{device}'"
                    raise PassFailure(op, text)
                if device != HOST and op.operation.name.startswith(_ACCESSES):
                    text = f"accesses memory on the host, but its tensors are on '{device}'"
                    raise PassFailure(op, f"{text}; schedule '@{kernel.name.value}' for that")


_ACCESSES = ("memref.load", "memref.store", "memref.copy", "vector.load", "vector.store")


def _host_module(
    kernels: Mapping[str, func.FuncOp],
    libraries: Sequence[FunctionOp],
    functions: Sequence[func.FuncOp],
    names: SymbolNames,
    devices: Sequence[Device],
) -> HostModule:
    """An empty module for host code, but for the addresses of library functions."""
    module = ir.Module.create()
    by_name = {function.name.value: function for function in functions}
    host = HostModule(
        module,
        Globals(module.body, "rx_data", any(map(uses_tiles, kernels.values()))),
        Runtime(module.body),
        Adaptors(kernels, names),
        names,
        {library.sym_name.value: library for library in libraries},
        by_name,
        SiteCounts(by_name),
        devices,
        max(map(vector_length, kernels.values()), default=0),
    )
    for library in libraries:
        _write_slot(host.block, slot_name(library.sym_name.value))
    return host


def _write_slot(block: ir.Block, name: str) -> None:
    """A pointer that the loader sets."""
    pointer, external = llvm.PointerType.get(), ir.Attribute.parse("#llvm.linkage<external>")
    slot = llvm.GlobalOp(pointer, name, external, ip=ir.InsertionPoint(block))
    with ir.InsertionPoint(slot.operation.regions[0].blocks.append()):
        llvm.ReturnOp(arg=llvm.ZeroOp(pointer).res)


def _write_metadata(host: HostModule, text: str) -> None:
    """The function that returns the description of the module."""
    type_ = ir.FunctionType.get([], [llvm.PointerType.get()])
    function = func.FuncOp("rx_metadata", type_, ip=ir.InsertionPoint(host.block))
    with ir.InsertionPoint(function.add_entry_block()):
        address = llvm.AddressOfOp(llvm.PointerType.get(), host.table.string(text)).res
        func.ReturnOp([address])
