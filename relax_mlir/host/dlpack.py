"""Library functions that take DLPack descriptors: any function, of C or of the host program."""

from relax_mlir.bindings import ir
from relax_mlir.diagnostics import Diagnostic
from relax_mlir.dialects.graph import CallDpsOp

from .dtypes import dlpack_dtype
from .function import HostFunction
from .tables import KIND_TENSOR, Argument

CONVENTION = "dlpack"


def call_dlpack(host: HostFunction, op: CallDpsOp, function: ir.Value) -> None:
    """Hands the runtime the addresses and dims of all operands, results last."""
    out, tensors = host.out, [host.tensor(value) for value in op.ins]
    rows = [
        Argument("", KIND_TENSOR, *dlpack_dtype(tensor.element), (None,) * len(tensor.dims))
        for tensor in tensors
    ]
    where = Diagnostic.at(op.location, "error", "").where
    who = f"{where}: '{op.callee_name}'" if where else f"'{op.callee_name}'"
    info = host.function_table(op, who, rows, [], [], num_results=len(op.destinations))
    dims = [size for tensor in tensors for size in host.integers(op, tensor.dims)]
    words = out.stack(len(tensors) + len(dims))
    for index, tensor in enumerate(tensors):
        out.store(tensor.pointer, out.field(words, [index], out.i64))
    out.store_integers(dims, out.field(words, [len(tensors)], out.i64))
    (status,) = out.call_runtime("rx_call_library", [out.context, info, function, words])
    out.fail_unless_zero(status)
