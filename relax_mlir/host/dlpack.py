"""Library functions that take DLPack descriptors: any function, of C or of the host program."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from relax_mlir.bindings import ir
from relax_mlir.diagnostics import Diagnostic
from relax_mlir.dialects.graph import CallDpsOp, ShapeValueType
from relax_mlir.dialects.lib import FunctionOp, handles_of, texts_of
from relax_mlir.passes import PassFailure
from relax_mlir.runtime.callees import OPAQUE

from .dtypes import dlpack_dtype
from .function import ON_HOST, HostFunction
from .scalars import scalar_type, store_scalar
from .scope import Size
from .tables import KIND_SCALAR, KIND_TENSOR, Argument


def call_dlpack(
    host: HostFunction, op: CallDpsOp, declared: FunctionOp, function: ir.Value
) -> None:
    """Hands the runtime the addresses and dims of all operands, texts, and results."""
    out = host.out
    who = located(op, f"'{op.callee_name}'")
    handles = handles_of(declared, len(op.sources))
    operands = [_operand(host, op, value) for value in op.ins]
    for index in handles:
        if index >= len(operands) or str(op.ins[index].type) != "tensor<i64>":
            raise PassFailure(op, f"hands no handle of an object as value {index}")
        operands[index] = replace(operands[index], is_handle=True)
    operands[len(op.sources) : len(op.sources)] = [_text(host, each) for each in texts_of(declared)]
    info, words = _describe(host, op, who, operands, len(op.destinations))
    (status,) = out.call_runtime("rx_call_library", [out.context, info, function, words])
    out.fail_unless_zero(status)


def located(op: ir.OpView, who: str) -> str:
    """The prefix of an error at run time."""
    where = Diagnostic.at(op.location, "error", "").where
    return f"{where}: {who}" if where else who


@dataclass(frozen=True)
class _Operand:
    """A tensor at `address`; or in `words`, which hold a scalar or a shape value; or a handle."""

    element: ir.Type
    dims: Sequence[Size]
    address: ir.Value | None = None
    words: Sequence[ir.Value] = ()
    is_handle: bool = False
    is_on_host: bool = False

    @property
    def kind(self) -> int:
        """Whether it is a tensor, or on the host in any case."""
        is_host = self.address is None or self.is_handle or self.is_on_host
        return KIND_SCALAR if is_host else KIND_TENSOR

    @property
    def dtype(self) -> tuple[int, int]:
        """The type code and the bits of an element."""
        code, bits = dlpack_dtype(self.element)
        return (OPAQUE, bits) if self.is_handle else (code, bits)


def describe(
    host: HostFunction, op: ir.OpView, who: str, values: Sequence[ir.Value]
) -> tuple[ir.Value, ir.Value]:
    """The table of operands, and the words with their addresses, dims, and what is no tensor."""
    return _describe(host, op, who, [_operand(host, op, value) for value in values], 0)


def _describe(
    host: HostFunction, op: ir.OpView, who: str, operands: Sequence[_Operand], num_results: int
) -> tuple[ir.Value, ir.Value]:
    out = host.out
    rows = [Argument("", each.kind, *each.dtype, (None,) * len(each.dims)) for each in operands]
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
    device = host.device_of(value)
    if device > 0:
        text = f"reads '{value.type}' on '{host.module.devices[device]}'"
        raise PassFailure(op, f"{text}; copy it to the host by graph.to_device")
    is_host = bool(host.module.devices) and device == ON_HOST
    return _Operand(tensor.element, tensor.dims, tensor.pointer, is_on_host=is_host)


def _text(host: HostFunction, text: str) -> _Operand:
    """The bytes of a text, without the zero that ends them."""
    out = host.out
    address = out.address(host.module.table.string(text))
    byte = ir.IntegerType.get_signless(8)
    return _Operand(byte, [out.integer(len(text.encode()))], address, is_handle=True)
