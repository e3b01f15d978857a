"""Lowers allocations, views and constants to pointers."""

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from relax_mlir.analysis.devices import device_of, host_results, placed
from relax_mlir.analysis.functions import argument_name, inout_arguments
from relax_mlir.bindings import arith, func, ir
from relax_mlir.data import LARGE, is_data
from relax_mlir.dialects.graph import (
    AllocStorageOp,
    AllocTensorOp,
    CopyOp,
    KeepOp,
    ShapeValueType,
    ViewOp,
    is_small_float,
    signless,
)
from relax_mlir.passes import PassFailure
from relax_mlir.rewriting import walk_ops
from relax_mlir.target.device import DEVICE as OF_TARGET

from .dtypes import byte_width, memory_type
from .function import ON_HOST, HostFunction
from .scalars import scalar_type, store_scalar
from .scope import HostTensor
from .tables import BYTES


def alloc_storage(host: HostFunction, op: AllocStorageOp) -> None:
    """Allocates from the context's arena, or from that of another device."""
    size = host.integer(op, op.bytes, BYTES)
    name, operands = _arena(host, _device(host, op))
    (pointer,) = host.out.call_runtime(name, [*operands, size])
    host.out.fail_if_null(pointer)
    host.scope.scalars[op.result] = pointer


def alloc_tensor(host: HostFunction, op: AllocTensorOp) -> None:
    """The address in a storage, or the memory of the result that the tensor is."""
    dims, element = host.dims(op, op.result), host.annotation(op.result).element
    host.require_natural(op, dims)
    if op.operands:
        offset = host.integer(op, op.byte_offset, BYTES)
        storage = host.scalar(op, op.operands[0])
        pointer = storage if op.byte_offset == 0 else host.out.at_offset(storage, offset)
    elif op.result in host.returned:
        index = host.returned[op.result]
        result = host.result(index)  # which may be a view as another element type
        shape = host.integers(op, host.dims(op, result))
        element_, is_tensor = host.annotation(result).element, not _returns_on_host(host, index)
        pointer = host.border.result(index, element_, shape, is_tensor)
    else:
        raise PassFailure(op, "is not planned; run relax-plan-memory before relax-to-host")
    host.define(op.result, HostTensor(pointer, dims, element))


def view(host: HostFunction, op: ViewOp) -> None:
    """The same pointer."""
    dims, element = host.dims(op, op.result), host.annotation(op.result).element
    host.define(op.result, HostTensor(host.tensor(op.input).pointer, dims, element))


def keep(host: HostFunction, op: KeepOp) -> None:
    """Makes the runtime copy bytes to a buffer that it keeps for the op."""
    if host.module.devices and host.device_of(op.result) != 0:
        text = f"cannot be on '{device_of(op.result)}': only '{OF_TARGET}' has memory that grows"
        raise PassFailure(op, text)
    out, source = host.out, host.tensor(op.input)
    size = host.size_in_bytes(op, source)
    site = out.integer(next(host.module.keeps), out.i32)
    (pointer,) = out.call_runtime("rx_keep", [out.context, site, source.pointer, size])
    out.fail_if_null(pointer)
    host.define(op.result, HostTensor(pointer, source.dims, source.element))


def copy(host: HostFunction, op: CopyOp) -> None:
    """Copies bytes."""
    source, target = host.tensor(op.input), host.tensor(op.destination)
    devices = (host.device_of(op.input), host.device_of(op.destination))
    host.copy(op, source, target.pointer, devices)


def return_results(host: HostFunction, op: func.ReturnOp) -> None:
    """Returns results that are not in their memory yet."""
    inout, in_place = inout_arguments(host.graph), host.returned.values()
    for index, value in enumerate(op.operands):
        if index in inout:
            argument = host.graph.arguments[inout[index]]
            if host.memory.roots(value) != {argument}:
                name = argument_name(host.graph, inout[index])
                other = f"something else than the updated argument '{name}'"
                raise PassFailure(op, f"returns as result {index} {other}")
            host.border.return_argument(index, inout[index])
        elif scalar_type(value.type) is not None:
            pointer = host.border.result(index, value.type, [], is_tensor=False)
            with _returning(host, pointer, byte_width(value.type)) as at:
                store_scalar(host.out, host.scalar(op, value), at)
        elif isinstance(value.type, ShapeValueType):
            dims = host.integers(op, host.sizes(value))
            count, element = host.out.integer(len(dims)), ir.IntegerType.get_signless(64)
            pointer = host.border.result(index, element, [count], is_tensor=False)
            with _returning(host, pointer, 8 * len(dims)) as at:
                host.out.store_integers(dims, at)
        elif index not in in_place:
            tensor = host.tensor(value)
            dims, is_tensor = host.integers(op, tensor.dims), not _returns_on_host(host, index)
            target = host.border.result(index, tensor.element, dims, is_tensor)
            device = host.own_device if is_tensor else ON_HOST
            host.copy(op, tensor, target, (host.device_of(value), device))


def _returns_on_host(host: HostFunction, index: int) -> bool:
    """Whether a tensor is returned on the host although the module has a device."""
    return bool(host.module.devices) and index in host_results(host.graph)


@contextmanager
def _returning(host: HostFunction, pointer: ir.Value, size: int) -> Iterator[ir.Value]:
    """Where the bytes of a scalar or shape that is returned are written, in the `with` block."""
    device = ON_HOST if host.border.is_host_result else host.own_device
    with host.writing(pointer, size, device) as at:
        yield at


def mark_arena(host: HostFunction, op: ir.OpView) -> dict[int, ir.Value]:
    """Marks the positions of the arenas that an op allocates from, by their devices."""
    marks: dict[int, ir.Value] = {}
    for device in dict.fromkeys(_device(host, storage) for storage in walk_ops(op, AllocStorageOp)):
        name, operands = _arena(host, device)
        (marks[device],) = host.out.call_runtime(f"{name}_mark", operands)
    return marks


def release_arena(host: HostFunction, marks: Mapping[int, ir.Value]) -> None:
    """Releases what was allocated from the arenas since the marks."""
    for device, mark in marks.items():
        name, operands = _arena(host, device)
        host.out.call_runtime(f"{name}_release", [*operands, mark])


def _device(host: HostFunction, storage: AllocStorageOp) -> int:
    return host.module.index(placed(storage))


def _arena(host: HostFunction, device: int) -> tuple[str, list[ir.Value]]:
    """The name of the runtime's function, and its first operands."""
    out = host.out
    if device == 0 or not host.module.devices:
        return "rx_arena", [out.context]
    return "rx_placed_arena", [out.context, out.integer(device, out.i32)]


def constant(host: HostFunction, op: arith.ConstantOp) -> None:
    """A global for a tensor, a register for a scalar."""
    type_, value = op.result.type, op.attributes["value"]
    if isinstance(type_, ir.IndexType | ir.IntegerType):
        kind = host.out.i64 if isinstance(type_, ir.IndexType) else type_
        host.scope.scalars[op.result] = host.out.integer(ir.IntegerAttr(value).value, kind)
    elif isinstance(value, ir.FloatAttr):
        host.scope.scalars[op.result] = host.out.real(value)
    elif isinstance(type_, ir.RankedTensorType):
        table = host.module.table
        name = table.data(value) if _is_data(value) else table.constant(*stored(op, type_, value))
        host.constants[op.result] = name
    else:
        raise PassFailure(op, f"is a constant of type '{type_}', not a tensor")


def _is_data(value: ir.Attribute) -> bool:
    """Whether the linker stores the elements, in memory format."""
    return is_data(value) or math.prod(ir.ShapedType(value.type).shape) > LARGE


def stored(
    op: ir.OpView, type_: ir.RankedTensorType, value: ir.Attribute
) -> tuple[ir.Attribute, ir.Type]:
    """A constant tensor in LLVM's memory format, and its type."""
    element = memory_type(type_.element_type)
    nested = str(element)
    for extent in reversed(type_.shape):
        nested = f"array<{extent} x {nested}>"
    kind = ir.Type.parse(f"!llvm.{nested}") if type_.rank else element
    if type_.rank and element == type_.element_type:
        return value, kind
    if not isinstance(value, ir.DenseElementsAttr):
        raise PassFailure(op, f"is not a dense constant, which '{type_}' needs")
    if is_small_float(type_.element_type):
        value = ir.DenseElementsAttr(signless(value))
    elif element != type_.element_type:
        value = _as_integers(value, type_.shape, ir.IntegerType(element))
    return value if type_.rank else value.get_splat_value(), kind


def _as_integers(
    value: ir.DenseElementsAttr, shape: Sequence[int], element: ir.IntegerType
) -> ir.DenseElementsAttr:
    """A dense constant of booleans, indices or unsigned integers as signless integers."""
    if value.is_splat:
        tensor = ir.RankedTensorType.get(shape, element)
        splat = int(ir.IntegerAttr(value.get_splat_value()).value)
        return ir.DenseElementsAttr.get_splat(tensor, ir.IntegerAttr.get(element, splat))
    mask, code = (1 << element.width) - 1, {8: "B", 16: "H", 32: "I", 64: "Q"}[element.width]
    data = array(code, (int(x) & mask for x in ir.DenseIntElementsAttr(value)))
    return ir.DenseElementsAttr.get(data, shape=shape, type=element)
