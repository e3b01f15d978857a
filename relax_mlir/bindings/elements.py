"""The memory in which MLIR keeps elements of attributes, which its Python bindings do not show.

They hand out buffers of dense attributes of some element types, and of resources none at all. The
C interface has the address of the former. That of a resource is seen when MLIR writes an op of it
as bytecode: what it hands to the writer is the memory itself.

Source: MLIR's C interface, `mlir-c/BuiltinAttributes.h`; "MLIR Bytecode Format", Sections.
"""

import ctypes
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from torch_mlir import ir
from torch_mlir._mlir_libs import _mlir

_RESOURCES = 5
"""The section of bytecode that holds the bytes of resources."""
_VERSION, _ALIGNED, _LONG = 4, 0x80, 4096


class _Handle(ctypes.Structure):
    _fields_ = [("pointer", ctypes.c_void_p)]


class _StringRef(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class _BytesRef(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("length", ctypes.c_size_t)]


_Write = ctypes.CFUNCTYPE(None, _StringRef, ctypes.c_void_p)


@cache
def _library() -> ctypes.CDLL:
    """The C interface, which the bindings have loaded."""
    folder = Path(_mlir.__file__).parent
    (file,) = folder.glob("lib*AggregateCAPI.so")
    library = ctypes.CDLL(str(file))
    library.mlirDenseElementsAttrGetRawData.argtypes = [_Handle]
    library.mlirDenseElementsAttrGetRawData.restype = ctypes.c_void_p
    library.mlirOperationGetAttributeByName.argtypes = [_Handle, _BytesRef]
    library.mlirOperationGetAttributeByName.restype = _Handle
    for name in ("mlirAttributeIsADenseElements", "mlirDenseElementsAttrIsSplat"):
        getattr(library, name).argtypes = [_Handle]
        getattr(library, name).restype = ctypes.c_bool
    library.mlirAttributeIsADenseResourceElements.argtypes = [_Handle]
    library.mlirAttributeIsADenseResourceElements.restype = ctypes.c_bool
    library.mlirOperationWriteBytecode.argtypes = [_Handle, _Write, ctypes.c_void_p]
    library.mlirOperationWriteBytecode.restype = None
    ctypes.pythonapi.PyCapsule_GetName.restype = ctypes.c_char_p
    ctypes.pythonapi.PyCapsule_GetName.argtypes = [ctypes.py_object]
    ctypes.pythonapi.PyCapsule_GetPointer.restype = ctypes.c_void_p
    ctypes.pythonapi.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return library


def _handle(thing: ir.Attribute | ir.Operation) -> _Handle:
    capsule = thing._CAPIPtr  # type: ignore[union-attr]
    name = ctypes.pythonapi.PyCapsule_GetName(capsule)
    return _Handle(ctypes.pythonapi.PyCapsule_GetPointer(capsule, name))


def is_resource(attribute: ir.Attribute) -> bool:
    """Whether an attribute is `dense_resource<...>`."""
    return _library().mlirAttributeIsADenseResourceElements(_handle(attribute))


def dense_address(attribute: ir.DenseElementsAttr) -> int:
    """Where the elements of a dense attribute are; of a splat, its one element."""
    return _library().mlirDenseElementsAttrGetRawData(_handle(attribute))


def element_bytes(op: ir.Operation, name: str, count: int, width: int) -> bytes | None:
    """The bytes of a dense attribute of an op, one element of a splat; None if it is not dense.

    For elements that the bindings have no class of, such as complex ones, of a width in bytes.
    """
    library, text = _library(), name.encode()
    attribute = library.mlirOperationGetAttributeByName(_handle(op), _BytesRef(text, len(text)))
    if not attribute.pointer or not library.mlirAttributeIsADenseElements(attribute):
        return None
    stored = 1 if library.mlirDenseElementsAttrIsSplat(attribute) else count
    return ctypes.string_at(library.mlirDenseElementsAttrGetRawData(attribute), stored * width)


def resource_memory(attribute: ir.Attribute) -> tuple[int, int] | None:
    """Address and number of the bytes of a resource; None if nothing has given it any.

    They stay where they are as long as the context lives.
    """
    written = _Bytecode()
    with attribute.context, ir.Location.unknown():
        module = ir.Module.create()
        module.operation.attributes["builtin.resource"] = attribute
        write = _Write(written.write)
        _library().mlirOperationWriteBytecode(_handle(module.operation), write, None)
    return written.last_piece(_RESOURCES)


@dataclass
class _Bytecode:
    """Bytecode of a module by the pieces it was written in; of long ones, the addresses alone."""

    pieces: dict[int, tuple[int, int, bytes]] = field(default_factory=dict)
    size: int = 0

    def write(self, piece: _StringRef, _: object) -> None:
        """Takes a piece."""
        if piece.length:
            text = ctypes.string_at(piece.data, min(piece.length, _LONG))
            self.pieces[self.size] = piece.data, piece.length, text
            self.size += piece.length

    def last_piece(self, section: int) -> tuple[int, int] | None:
        """Address and size of the piece that a section ends with; None if that is empty."""
        at = _VERSION
        _, at = self._number(at)
        while self._byte(at):
            at += 1
        at += 1
        while at < self.size:
            kind = self._byte(at)
            length, at = self._number(at + 1)
            if kind & _ALIGNED:
                alignment, at = self._number(at)
                at += -at % alignment
            at += length
            if kind & ~_ALIGNED == section and length:
                pieces = self.pieces.items()
                return next((a, size) for start, (a, size, _) in pieces if start + size == at)
        return None

    def _byte(self, at: int) -> int:
        start = max(start for start in self.pieces if start <= at)
        return self.pieces[start][2][at - start]

    def _number(self, at: int) -> tuple[int, int]:
        """A number of variable length, and what follows: zeros below a one say how many bytes."""
        first = self._byte(at)
        more = 8 if not first else (first & -first).bit_length() - 1
        value = sum(self._byte(at + i) << 8 * i for i in range(more + 1))
        return value >> more + 1, at + more + 1
