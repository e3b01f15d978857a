"""Library functions that take DLPack descriptors: any function, of C or of the host program."""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_mlir.bindings import ir
from relax_mlir.diagnostics import Diagnostic
from relax_mlir.dialects.graph import CallDpsOp, ShapeValueType

from .dtypes import dlpack_dtype
from .function import HostFunction
from .scalars import scalar_type, store_scalar
from .scope import Size
from .tables import KIND_TENSOR, Argument


def call_dlpack(host: HostFunction, op: CallDpsOp, function: ir.Value) -> None:
    """Hands the runtime the addresses and dims of all operands, results last."""
    out = host.out
    who = located(op, f"'{op.callee_name}'")
    info, words = describe(host, op, who, op.ins, len(op.destinations))
    (status,) = out.call_runtime("rx_call_library", [out.context, info, function, words])
    out.fail_unless_zero(status)


def located(op: ir.OpView, who: str) -> str:
    """The prefix of an error at run time."""
    where = Diagnostic.at(op.location, "error", "").where
    return f"{where}: {who}" if where else who


@dataclass(frozen=True)
class _Operand:
    """A tensor at `address`; or in `words`, which hold a scalar or a shape value."""

    element: ir.Type
    dims: Sequence[Size]
    address: ir.Value | None = None
    words: Sequence[ir.Value] = ()


def describe(
    host: HostFunction, op: ir.OpView, who: str, values: Sequence[ir.Value], num_results: int = 0
) -> tuple[ir.Value, ir.Value]:
    """The table of operands, and the words with their addresses, dims, and what is no tensor."""
    out, operands = host.out, [_operand(host, op, value) for value in values]
    rows = [
        Argument("", KIND_TENSOR, *dlpack_dtype(each.element), (None,) * len(each.dims))
        for each in operands
    ]
    info = host.function_table(op, who, rows, [], [], num_results=num_results)
    dims = [size for each in operands for size in host.integers(op, each.dims)]
    at = len(operands) + len(dims)
    words = out.stack(at + sum(len(each.words) for each in operands))
    out.store_integers(dims, out.field(words, [len(operands)], out.i64))
    for index, each in enumerate(operands):
        address = out.field(words, [at], out.i64) if each.address is None else each.address
        out.store(address, out.field(words, [index], out.i64))
        for word in each.words:
            store_scalar(out, word, out.field(words, [at], out.i64))
            at += 1
    return info, words


def _operand(host: HostFunction, op: ir.OpView, value: ir.Value) -> _Operand:
    if isinstance(value.type, ShapeValueType):
        dims = host.integers(op, host.sizes(value))
        return _Operand(host.out.i64, [host.out.integer(len(dims))], words=dims)
    if scalar_type(value.type) is not None:
        return _Operand(value.type, [], words=[host.scalar(op, value)])
    tensor = host.tensor(value)
    return _Operand(tensor.element, tensor.dims, tensor.pointer)
