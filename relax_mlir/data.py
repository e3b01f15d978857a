"""Elements of constants as named blobs of memory: never printed, parsed or copied.

    %0 = arith.constant dense<[1.0, 2.0, ...]> : tensor<9999xf32>
      ->
    %0 = arith.constant dense_resource<data_1f0c...> : tensor<9999xf32>

It names a blob, which MLIR stores in the context and which may be any memory: a NumPy array, a
mapped file, the elements of another attribute. Blobs that are made here are named by a hash of
their bytes, so that equal ones are one attribute. Elements are in row-major order and native
format: a boolean takes a byte, an index eight, and bfloat16 two.

Source: MLIR's `DenseResourceElementsAttr`; "MLIR Language Reference", dialect resources.
"""

import ctypes
import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relax_mlir.bindings import arith, ir
from relax_mlir.bindings.elements import dense_address, is_resource, resource_memory

LARGE = 256
"""Element count above which a constant is a blob; smaller ones are in the code."""

DATA = "graph.data"
"""Attribute of a variable in host code: the constant that the linker stores there."""
DATA_PREFIX = "rx_constant_"
"""Of the names of such variables, before that of the blob."""

NO_DATA = "has no data: the text names a resource, but its bytes are missing"

_PIECE = 1 << 16
_EMPTY_SECTION = re.compile(r"\{-#\s*#-\}\s*$")
_REFERENCE = "dense_resource<"
_NAME = re.compile(r'dense_resource<(?:"((?:[^"\\]|\\.)*)"|([^">]*))>')


def is_large(attribute: ir.Attribute) -> bool:
    """Whether an attribute has more than `LARGE` elements and is neither splat nor blob."""
    if not isinstance(attribute, ir.DenseElementsAttr) or attribute.is_splat:
        return False
    return len(attribute) > LARGE


@dataclass(frozen=True)
class Contents:
    """What a constant holds: the bytes of its elements, of a splat those of one, repeated."""

    data: np.ndarray
    element: str
    dims: tuple[int, ...]

    @property
    def is_zero(self) -> bool:
        """Whether all bytes are 0, as far as that is known without a look at all of them."""
        return self.data.ndim == 2 and not self.data[:1].any()


def contents(attribute: ir.Attribute) -> Contents:
    """The elements of a constant that has data."""
    data, type_ = bytes_of(attribute), ir.ShapedType(attribute.type)
    assert data is not None, attribute
    if isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat:
        data = np.broadcast_to(data, (math.prod(type_.shape), data.size))
    return Contents(data, str(type_.element_type), tuple(type_.shape))


def is_data(attribute: ir.Attribute) -> bool:
    """Whether an attribute names a blob."""
    return is_resource(attribute)


def name_of(attribute: ir.Attribute) -> str:
    """The name of an attribute's blob, unique in its context."""
    match = _NAME.match(str(attribute))
    assert match is not None, attribute
    return match[1] or match[2]


def bytes_of(attribute: ir.Attribute) -> np.ndarray | None:
    """The elements of a dense attribute or blob, as a read-only view of MLIR's memory.

    One element for a splat. None if the blob has no bytes, or a size that its type contradicts.
    """
    type_ = ir.ShapedType(attribute.type)
    count = math.prod(type_.shape)
    if count == 0:
        return np.empty(0, np.uint8)
    if isinstance(attribute, ir.DenseElementsAttr):
        stored = 1 if attribute.is_splat else count
        return _memory(
            attribute, dense_address(attribute), stored * stored_width(type_.element_type)
        )
    memory = resource_memory(attribute)
    if memory is None or memory[1] != count * stored_width(type_.element_type):
        return None
    return _memory(attribute, *memory)


def _memory(attribute: ir.Attribute, address: int, size: int) -> np.ndarray:
    """That memory as an array, which keeps the attribute's context alive."""
    block = (ctypes.c_ubyte * size).from_address(address)
    block.context = attribute.context  # type: ignore[attr-defined]
    array = np.frombuffer(memoryview(block).cast("B"), np.uint8)
    array.flags.writeable = False
    return array


def stored_width(element: ir.Type) -> int:
    """Bytes in which MLIR stores an element of a dense attribute."""
    if isinstance(element, ir.IndexType):
        return 8
    if isinstance(element, ir.ComplexType):
        return 2 * stored_width(element.element_type)
    bits = element.width  # type: ignore[attr-defined]
    return -(-bits // 8)


def content_name(data: np.ndarray) -> str:
    """A name that is unique to the bytes of an array, row by row."""
    name = ContentName()
    name.add(data)
    return str(name)


class ContentName:
    """The `content_name` of an array whose pieces are added in order."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, data: np.ndarray) -> None:
        """Adds the bytes of a piece."""
        self._hash.update(np.ascontiguousarray(data).reshape(-1).view(np.uint8).data)

    def __str__(self) -> str:
        return f"data_{self._hash.hexdigest()[:40]}"


def blob(type_: ir.Type, data: np.ndarray, name: str | None = None) -> ir.Attribute:
    """An attribute of a tensor type whose elements are the bytes, which are not copied.

    The context keeps the array alive. `name` is its `content_name`, if it is known.
    """
    name = name or content_name(data)
    width = stored_width(ir.ShapedType(type_).element_type)
    flat = data.reshape(-1).view(np.uint8)
    granted = width | flat.ctypes.data  # elements of a mapped file may lie anywhere
    alignment = granted & -granted
    return ir.DenseResourceElementsAttr.get_from_buffer(flat, name, type_, alignment)  # type: ignore[call-arg]


def elements_of(attribute: ir.Attribute) -> np.ndarray:
    """The elements of a constant that has data, in its dims; bf16 as bits in uint16. Read-only.

    They are copied if they are not aligned, as they may be in a file that is mapped.
    """
    type_ = ir.ShapedType(attribute.type)
    data = bytes_of(attribute)
    assert data is not None, attribute
    elements = np.require(data.view(dtype_of(type_.element_type)), requirements="A")
    if len(elements) == 1:
        return np.broadcast_to(elements.reshape(()), type_.shape)
    return elements.reshape(type_.shape)


def floats_of(attribute: ir.Attribute) -> np.ndarray:
    """The elements of a constant of floats that has data, as float32, in its dims."""
    elements = elements_of(attribute)
    if elements.dtype == np.uint16:  # bf16: the upper half of float32
        return (elements.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return elements.astype(np.float32)


def dtype_of(element: ir.Type) -> np.dtype:
    """The dtype in which NumPy has elements of a type as they lie in memory."""
    if isinstance(element, ir.IntegerType) and element.width == 1:
        return np.dtype(np.bool_)
    packed = isinstance(element, ir.BF16Type) or stored_width(element) == 1
    if isinstance(element, ir.FloatType) and not packed:
        return np.dtype(f"f{stored_width(element)}")
    unsigned = isinstance(element, ir.FloatType) or str(element).startswith("ui")
    return np.dtype(f"{'u' if unsigned else 'i'}{stored_width(element)}")


def attribute_of(type_: ir.Type, array: np.ndarray, name: str | None = None) -> ir.Attribute:
    """A constant of that tensor type with the elements of an array, whose bytes are taken as such.

    One element if all are equal, bit by bit, elements that are written out if they are few, else a
    blob that is the array. `name` is its `content_name`, if it is known.
    """
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    element = ir.ShapedType(type_).element_type
    rows = data.reshape(-1, stored_width(element))
    repeats = _repeats(rows)
    if len(rows) > LARGE and not repeats:
        return blob(type_, data, name)
    elements = (data[: rows.shape[1]] if repeats else data).view(dtype_of(element))
    shape = [1] if repeats else ir.ShapedType(type_).shape
    small = ir.RankedTensorType.get(shape, element)
    made = ir.DenseElementsAttr.get(elements.reshape(shape), type=small)
    if repeats:
        return ir.DenseElementsAttr.get_splat(type_, made.get_splat_value())
    return made if made.type == type_ else blob(type_, data)


def _repeats(rows: np.ndarray) -> bool:
    """Whether all rows are equal; takes little memory, and little time if an early one differs."""
    pieces = range(0, len(rows), _PIECE)
    return len(rows) > 0 and all((rows[at : at + _PIECE] == rows[0]).all() for at in pieces)


@dataclass(frozen=True)
class Blob:
    """The elements of a large constant, independent of a context: their type as text, and bytes."""

    type: str
    data: np.ndarray
    name: str

    @staticmethod
    def of(attribute: ir.Attribute) -> "Blob":
        """The blob of an attribute. Raises ValueError if it has no bytes."""
        data = bytes_of(attribute)
        if data is None:
            raise ValueError(NO_DATA)
        return Blob(str(attribute.type), data, content_name(data))


def large_constants(op: ir.Operation) -> list[arith.ConstantOp]:
    """The constants in an op that are blobs or large enough to be, in the order of the text."""
    constants: list[arith.ConstantOp] = []

    def visit(inner: ir.Operation) -> ir.WalkResult:
        if inner.name == "arith.constant":
            attribute = inner.attributes["value"]
            if is_large(attribute) or is_data(attribute):
                constants.append(inner.opview)
        return ir.WalkResult.ADVANCE

    op.walk(visit)
    return constants


def elided(op: ir.Operation, large_resource_limit: int = 16 * LARGE, **options: bool) -> str:
    """The text of an op for people: large constants are names. `options` are those of `get_asm`."""
    text = op.get_asm(
        assume_verified=True,  # broken IR is printed too: that is when one wants to see it
        large_elements_limit=LARGE,
        large_resource_limit=large_resource_limit,
        **options,
    )
    return _EMPTY_SECTION.sub("", text).rstrip("\n") + "\n"


def without_data(module: ir.Module, locations: bool = False) -> tuple[str, tuple[Blob, ...]]:
    """The text of a module without its large constants, and the constants for `with_data`.

    Raises ValueError if a constant names a missing blob.
    """
    text = module.operation.get_asm(
        large_elements_limit=LARGE, large_resource_limit=0, enable_debug_info=locations
    )
    constants = large_constants(module.operation) if _REFERENCE in text else []
    if text.count(_REFERENCE) != len(constants):  # other attributes are blobs too: keep them
        return str(module), ()
    return text, tuple(Blob.of(op.attributes["value"]) for op in constants)


def with_data(module: ir.Module, blobs: Sequence[Blob]) -> None:
    """Restores the large constants of a module that was parsed from the text of `without_data`."""
    if not blobs:
        return
    made: dict[tuple[str, str], ir.Attribute] = {}
    for op, each in zip(large_constants(module.operation), blobs, strict=True):
        key = each.type, each.name
        if key not in made:
            made[key] = blob(ir.Type.parse(each.type), each.data, each.name)
        op.attributes["value"] = made[key]
