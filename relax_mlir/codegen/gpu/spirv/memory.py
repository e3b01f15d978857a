"""Memory: buffers of the device, memory of a group, tables of constants, and indices of threads."""

import math

from relax_mlir.bindings import ir, memref

from .assembler import (
    ALIASED,
    BINDING,
    BUILT_IN,
    DESCRIPTOR_SET,
    INPUT,
    NON_WRITABLE,
    PRIVATE,
    PUSH_CONSTANT,
    RESTRICT,
    STORAGE_BUFFER,
    WORKGROUP,
)
from .casts import resized
from .emitter import Emitter, Rule, bits_of, is_bool, operand_type, result_type
from .opcodes import Op

_BUILT_INS = {"gpu.block_id": 26, "gpu.thread_id": 27, "gpu.grid_dim": 24}
_BARRIER = 0x8 | 0x40 | 0x100  # acquires and releases memory of the device and of the group
_AVAILABLE = 0x2000 | 0x4000  # makes them available and visible, in Vulkan's memory model
_NON_PRIVATE = 0x20
_SCOPE_OF_GROUP = 2
MOST_SCALAR_BYTES = 128
"""Bytes of push constants that every device has."""


def stored_bits(element: ir.Type) -> int:
    """The bits of an element in a buffer."""
    return 64 if isinstance(element, ir.IndexType) else max(8, bits_of(element))


def stored_type(emitter: Emitter, element: ir.Type) -> int:
    """The type of an element in a buffer: truth values are bytes, indices have 64 bits."""
    bits = stored_bits(element)
    if bits < 32:
        emitter.out.require(f"StorageBuffer{bits}BitAccess")
        if bits == 8:
            emitter.out.extensions.add("SPV_KHR_8bit_storage")
    if is_bool(element) or isinstance(element, ir.IndexType):
        return emitter.out.integer(bits)
    return emitter.type(element)


def declare_buffer(
    emitter: Emitter, argument: ir.Value, binding: int, is_written: bool, is_disjoint: bool
) -> None:
    """Declares a buffer that a kernel takes: drivers assume that none overlaps another one."""
    element = ir.MemRefType(argument.type).element_type
    out, inner = emitter.out, stored_type(emitter, element)
    struct = out.buffer_struct(inner, stored_bits(element) // 8)
    variable = out.variable(STORAGE_BUFFER, struct)
    out.decorate(variable, DESCRIPTOR_SET, 0)
    out.decorate(variable, BINDING, binding)
    if not is_written:
        out.decorate(variable, NON_WRITABLE)
    out.decorate(variable, RESTRICT if is_disjoint else ALIASED)
    emitter.pointers[argument] = variable, STORAGE_BUFFER


def declare_group_memory(emitter: Emitter, argument: ir.Value) -> None:
    """Declares memory that a group shares."""
    kind = ir.MemRefType(argument.type)
    array = emitter.out.array(emitter.type(kind.element_type), math.prod(kind.shape))
    emitter.pointers[argument] = emitter.out.variable(WORKGROUP, array), WORKGROUP


def scalar_bytes(kind: ir.Type) -> int:
    """The bytes of a scalar among the push constants: a word, or two."""
    return 8 if bits_of(kind) == 64 else 4


def offsets_of(kinds: list[ir.Type]) -> tuple[list[int], int]:
    """The offset of each scalar among the push constants, and the bytes of all."""
    offsets, at = [], 0
    for kind in kinds:
        size = scalar_bytes(kind)
        at = -(-at // size) * size
        offsets.append(at)
        at += size
    return offsets, at


def load_scalars(emitter: Emitter, scalars: list[ir.Value]) -> None:
    """Loads the scalars that a kernel takes, at the start of its function."""
    if not scalars:
        return
    out, kinds = emitter.out, [x.type for x in scalars]
    types = [out.integer(8 * scalar_bytes(kind)) for kind in kinds]
    variable = out.variable(PUSH_CONSTANT, out.structure(types, offsets_of(kinds)[0]))
    for index, (x, type_) in enumerate(zip(scalars, types, strict=True)):
        pointer = out.pointer(PUSH_CONSTANT, type_)
        field = emitter.add(Op.AccessChain, pointer, variable, emitter.integer(index))
        word = emitter.add(Op.Load, type_, field)
        emitter.values[x] = _from_word(emitter, word, x.type)


def _from_word(emitter: Emitter, word: int, kind: ir.Type) -> int:
    width = 8 * scalar_bytes(kind)
    bits = max(bits_of(kind), 1)
    whole, own = (ir.IntegerType.get_signless(n) for n in (width, bits))
    word = resized(emitter, word, whole, own, False)
    type_ = emitter.type(kind)
    is_same = isinstance(kind, ir.IndexType | ir.IntegerType) or type_ == emitter.type(own)
    return word if is_same else emitter.add(Op.Bitcast, type_, word)


def element_pointer(
    emitter: Emitter, op: ir.OpView, buffer: ir.Value, index: int
) -> tuple[int, int]:
    """The pointer to an element, and its type in memory."""
    if buffer not in emitter.pointers:
        raise emitter.refusal(op, "accesses memory of an unknown origin")
    variable, storage = emitter.pointers[buffer]
    element = ir.MemRefType(buffer.type).element_type
    is_buffer = storage == STORAGE_BUFFER
    type_ = stored_type(emitter, element) if is_buffer else emitter.type(element)
    path = [emitter.integer(0), index] if is_buffer else [index]
    return emitter.add(Op.AccessChain, emitter.out.pointer(storage, type_), variable, *path), type_


def shared_access(emitter: Emitter, buffer: ir.Value) -> list[int]:
    """What an access to memory of several threads says, in Vulkan's memory model."""
    is_shared = emitter.pointers[buffer][1] in (STORAGE_BUFFER, WORKGROUP)
    return [_NON_PRIVATE] if is_shared and emitter.out.has_vulkan_memory else []


def _load(emitter: Emitter, op: ir.OpView) -> None:
    buffer, *indices = op.operation.operands
    index = _linear(emitter, buffer, indices)
    pointer, type_ = element_pointer(emitter, op, buffer, index)
    x = emitter.add(Op.Load, type_, pointer, *shared_access(emitter, buffer))
    element = result_type(op)
    if emitter.pointers[buffer][1] == STORAGE_BUFFER:
        if is_bool(element):
            x = emitter.add(Op.INotEqual, emitter.out.boolean(), x, emitter.integer(0, 8))
        elif isinstance(element, ir.IndexType):
            x = resized(emitter, x, ir.IntegerType.get_signless(64), element, True)
    emitter.define(op, x)


def _store(emitter: Emitter, op: ir.OpView) -> None:
    value, buffer, *indices = op.operation.operands
    index = _linear(emitter, buffer, indices)
    pointer, _ = element_pointer(emitter, op, buffer, index)
    x, element = emitter.values[value], operand_type(op)
    if emitter.pointers[buffer][1] == STORAGE_BUFFER:
        if is_bool(element) or isinstance(element, ir.IndexType):
            stored = ir.IntegerType.get_signless(stored_bits(element))
            x = resized(emitter, x, element, stored, not is_bool(element))
    emitter.plain(Op.Store, pointer, x, *shared_access(emitter, buffer))


def _linear(emitter: Emitter, buffer: ir.Value, indices: list[ir.Value]) -> int:
    """The row-major index of an element."""
    shape, made = ir.MemRefType(buffer.type).shape, emitter.integer(0)
    type_ = emitter.out.integer(32)
    for axis, index in enumerate(indices):
        x = emitter.values[index]
        if axis:
            made = emitter.add(Op.IMul, type_, made, emitter.integer(shape[axis]))
            x = emitter.add(Op.IAdd, type_, made, x)
        made = x
    return made


def _table(emitter: Emitter, op: ir.OpView) -> None:
    """A table of constants in the module of the kernel."""
    table = emitter.globals[op.operation.attributes["name"].value]
    kind = ir.MemRefType(result_type(op))
    key = op.operation.results[0]
    values = table.operation.attributes["initial_value"]
    element = kind.element_type
    if isinstance(values, ir.DenseFPElementsAttr):
        parts = [emitter.real(x, element.width) for x in values]
    else:
        parts = [emitter.integer(x, bits_of(element)) for x in ir.DenseIntElementsAttr(values)]
    array = emitter.out.array(emitter.type(element), math.prod(kind.shape))
    initial = emitter.out.composite(array, parts)
    emitter.pointers[key] = emitter.out.variable(PRIVATE, array, initial), PRIVATE


def declare_indices(emitter: Emitter) -> dict[str, int]:
    """Declares the indices of group and thread, and the extents of the grid."""
    made = {}
    triple = emitter.out.vector(emitter.out.integer(32), 3)
    for name, built_in in _BUILT_INS.items():
        made[name] = emitter.out.variable(INPUT, triple)
        emitter.out.decorate(made[name], BUILT_IN, built_in)
    return made


def _index(emitter: Emitter, op: ir.OpView) -> None:
    axis = "xyz".index(str(op.operation.attributes["dimension"])[-2])
    word = emitter.out.integer(32)
    pointer = emitter.out.pointer(INPUT, word)
    variable = emitter.indices[op.operation.name]
    component = emitter.add(Op.AccessChain, pointer, variable, emitter.integer(axis))
    emitter.define(op, emitter.add(Op.Load, word, component))


def _barrier(emitter: Emitter, op: ir.OpView) -> None:
    scope = emitter.integer(_SCOPE_OF_GROUP)
    semantics = _BARRIER | _AVAILABLE * emitter.out.has_vulkan_memory
    emitter.plain(Op.ControlBarrier, scope, scope, emitter.integer(semantics))


MEMORY: dict[str, Rule] = {
    memref.LoadOp.OPERATION_NAME: _load,
    memref.StoreOp.OPERATION_NAME: _store,
    memref.GetGlobalOp.OPERATION_NAME: _table,
    "gpu.barrier": _barrier,
    **dict.fromkeys(_BUILT_INS, _index),
}
