"""Lowers calls: kernels are called through adaptors, library functions through pointers."""

from relax_mlir.analysis.devices import placed
from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import CallDpsOp
from relax_mlir.dialects.lib import DLPACK, FunctionOp
from relax_mlir.passes import PassFailure

from . import dlpack
from .device_library import APIS, call_product, check_device
from .function import HostFunction
from .library import CONVENTIONS, slot_name
from .private import call_private, require_location


def call_dps(host: HostFunction, op: CallDpsOp) -> None:
    """Calls a graph function; or a kernel or library function, in a span for profiles."""
    graph = host.module.functions.get(op.callee_name)
    if graph is not None:
        call_private(host, op, graph)
        return
    library = host.module.libraries.get(op.callee_name)
    host.out.call_runtime("rx_span_begin", [host.next_site()])
    if library is None:
        _call_kernel(host, op)
    else:
        _call_library(host, op, library)
    host.out.call_runtime("rx_span_end", [])
    host.count_call()


def _call_kernel(host: HostFunction, op: CallDpsOp) -> None:
    for value in op.ins:
        require_location(host, op, value, placed(host.graph))
    adaptors, tensors = host.module.adaptors, [host.tensor(value) for value in op.ins]
    symbols = op.symbol_arguments
    try:
        open_dims = adaptors.open_dims(op.callee_name, len(tensors), len(symbols))
    except ValueError as error:
        raise PassFailure(op, str(error)) from None
    operands: list[ir.Value] = []
    for tensor, axes in zip(tensors, open_dims, strict=True):
        operands += [tensor.pointer, *host.integers(op, [tensor.dims[axis] for axis in axes])]
    operands += host.integers(op, symbols)
    host.out.call(adaptors.name(op.callee_name), operands, [])


def _call_library(host: HostFunction, op: CallDpsOp, library: FunctionOp) -> None:
    convention, out = library.convention.value, host.out
    check_device(host, op, library)
    function = out.load(out.address(slot_name(op.callee_name)), out.pointer)
    if convention == DLPACK:
        dlpack.call_dlpack(host, op, library, function)
        return
    if convention in APIS:
        call_product(host, op, library, function)
        return
    if convention not in CONVENTIONS:
        known = ", ".join([DLPACK, *CONVENTIONS, *APIS])
        raise PassFailure(library, f"has convention '{convention}'; known are {known}")
    tensors = [host.tensor(value) for value in op.ins]
    operands = [(tensor.pointer, host.integers(op, tensor.dims)) for tensor in tensors]
    CONVENTIONS[convention](out, function, operands, host.integers(op, op.symbol_arguments))
