"""Arrays as DLPack descriptors."""

import ctypes
import functools
import importlib.util
import operator
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

# DLPack's type codes.
INT, UINT, FLOAT, BFLOAT, COMPLEX, BOOL = 0, 1, 2, 4, 5, 6
CPU = 1

_CODE_OF_KIND = {"i": INT, "u": UINT, "f": FLOAT, "c": COMPLEX, "b": BOOL}
_KIND_OF_CODE = {code: kind for kind, code in _CODE_OF_KIND.items()}

FLOAT8 = {"f8E4M3FN": 10, "f8E4M3FNUZ": 11, "f8E5M2": 12, "f8E5M2FNUZ": 13}
"""The type codes of DLPack 1.1 for floats of 8 bits."""
_PACKED = {
    "bf16": ("bfloat16", BFLOAT),
    **{element: (f"float8_{element[2:].lower()}", code) for element, code in FLOAT8.items()},
}
"""The names in `ml_dtypes` of floats that NumPy does not have, and their type codes."""

MAX_RANK = 32  # RX_MAX_RANK

# MLIR's element types to which Python numbers can be converted.
_NUMPY_OF_ELEMENT: dict[str, np.dtype] = {
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "i1": np.dtype(np.bool_),
    "index": np.dtype(np.int64),
    **{f"{sign}{bits}": np.dtype(f"int{bits}") for sign in ("i", "si") for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
}


class DLTensor(ctypes.Structure):
    """`DLTensor` of dlpack.h, with its nested structures flattened."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    """`DLManagedTensorVersioned`."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    )


_READ_ONLY = 1  # DLPACK_FLAG_BITMASK_READ_ONLY


class TensorError(Exception):
    """A value cannot be an argument or result; the message continues "argument 0: "."""


@dataclass(frozen=True)
class Slot:
    """The requirements of a function on one argument or result.

    `element` is MLIR's name of the element type, `is_shape` marks a shape value, `is_written` an
    array that the function writes to.
    """

    element: str
    is_shape: bool = False
    is_written: bool = False


Referent = tuple[object, ctypes.Array]
"""The objects that a descriptor points to, its dims last."""


def describe(tensor: DLTensor, value: Any, slot: Slot) -> Referent:
    """Fills `tensor` with a view of `value`; returns the objects that must outlive it.

    `value` is a NumPy array, an object with `__dlpack__`, a number (for rank 0 or a shape value),
    or a sequence of integers (for a shape value). A non-contiguous array is copied, unless the
    function writes to it. The runtime checks dtype, rank and dims.

    Raises:
        TensorError: the value is none of these, or cannot be written to.
    """
    if type(value) is np.ndarray:
        return _describe_numpy(tensor, value, slot)
    if isinstance(value, np.ma.MaskedArray):
        raise TensorError("an array with a value for each element is expected, but it is masked")
    if isinstance(value, np.ndarray):
        return _describe_numpy(tensor, value, slot)
    if hasattr(type(value), "__dlpack__"):
        return _describe_dlpack(tensor, value, slot)
    if slot.is_written:
        raise TensorError(f"an array (NumPy or DLPack) is expected, but got {type(value).__name__}")
    if slot.is_shape:
        return _describe_numpy(tensor, _shape_values(value), slot)
    if isinstance(value, bool | int | float | np.generic):
        return _describe_numpy(tensor, _scalar(value, slot), slot)
    raise TensorError(f"an array (NumPy or DLPack) is expected, but got {type(value).__name__}")


def _shape_values(value: Any) -> np.ndarray:
    values = value if isinstance(value, Sequence) else (value,)
    if isinstance(value, bytes | bytearray) or bool in map(type, values):
        raise TensorError(f"integers are expected, but got {value!r}")
    try:
        integers = [operator.index(dim) for dim in values]
    except TypeError:
        raise TensorError(f"integers are expected, but got {value!r}") from None
    for index, integer in enumerate(integers):
        if not -(2**63) <= integer < 2**63:
            raise TensorError(f"value {index} is {integer}, beyond 64 bits")
    return np.array(integers, dtype=np.int64)


def _scalar(value: Any, slot: Slot) -> np.ndarray:
    if isinstance(value, np.generic):
        return np.asarray(value)
    if slot.element not in _NUMPY_OF_ELEMENT:
        raise TensorError(f"an array of {slot.element} is expected, but got the number {value!r}")
    dtype = _NUMPY_OF_ELEMENT[slot.element]
    loses = isinstance(value, float) and dtype.kind in "iu"
    if loses or isinstance(value, bool) != (dtype.kind == "b"):
        raise TensorError(f"{slot.element} is expected, but got the number {value!r}")
    try:
        return np.array(value, dtype=dtype)
    except OverflowError:
        raise TensorError(f"{value!r} is out of the range of {slot.element}") from None


def _describe_numpy(tensor: DLTensor, array: np.ndarray, slot: Slot) -> Referent:
    flags, dtype = array.flags, array.dtype
    if slot.is_written and not flags.writeable:
        raise TensorError("an array that can be written to is expected, but it is read-only")
    if not flags.c_contiguous:
        if slot.is_written:
            raise TensorError(
                "is written to, so a contiguous row-major array is expected, "
                f"but its strides are {array.strides} bytes"
            )
        array = _contiguous(array)
    shape = array.shape
    dims = _dims_type(len(shape))(*shape)
    # One `pack_into` is several times faster than setting ten fields.
    _LAYOUT.pack_into(
        tensor,
        0,
        array.__array_interface__["data"][0],
        CPU,
        0,
        len(shape),
        _dtype_code(dtype, slot.element),
        8 * dtype.itemsize,
        1,
        ctypes.addressof(dims),
        0,
        0,
    )
    return array, dims


def _contiguous(array: np.ndarray) -> np.ndarray:
    try:
        return np.ascontiguousarray(array)
    except MemoryError:
        raise TensorError(f"no memory for a contiguous copy, of {array.nbytes} bytes") from None


_LAYOUT = struct.Struct("@PiiiBBHPPQ")


@functools.cache
def _dims_type(rank: int) -> type[ctypes.Array]:
    return ctypes.c_int64 * rank


@functools.cache
def _dtype_code(dtype: np.dtype, element: str) -> int:
    if not dtype.isnative:
        raise TensorError(f"native byte order is expected, but dtype is {dtype.str}")
    # NumPy has no such floats: their bits may come as integers, or as elements of ml_dtypes.
    for packed, (name, code) in _PACKED.items():
        if dtype.name == name or (element == packed and dtype == _bits_of(packed)):
            return code
    if dtype.kind not in _CODE_OF_KIND:
        raise TensorError(f"an array of numbers is expected, but dtype is {dtype}")
    return _CODE_OF_KIND[dtype.kind]


_is_capsule = ctypes.pythonapi.PyCapsule_IsValid
_is_capsule.argtypes = (ctypes.py_object, ctypes.c_char_p)
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
_capsule_pointer.restype = ctypes.c_void_p


def _describe_dlpack(tensor: DLTensor, value: Any, slot: Slot) -> Referent:
    # A capsule that is not consumed frees its tensor when it dies, so a reference to it is enough.
    capsule, source, is_read_only = _export(value)
    dims = _exported_dims(source)
    if slot.is_written and is_read_only:
        raise TensorError("an array that can be written to is expected, but it is read-only")
    if not _is_compact(source, dims):
        if slot.is_written:
            raise TensorError("is written to, so a contiguous row-major array is expected")
        if source.device_type == CPU and source.code in (*_KIND_OF_CODE, BFLOAT, *FLOAT8.values()):
            referent = _describe_numpy(tensor, _copy(source, dims), slot)
            tensor.code = source.code
            return referent
    own_dims = _dims_type(len(dims))(*dims)
    ctypes.pointer(tensor)[0] = source
    tensor.data = (source.data or 0) + source.byte_offset
    if not tensor.data and 0 in dims:
        tensor.data = NOWHERE  # null would mean that there is no buffer
    tensor.byte_offset = 0
    tensor.shape = own_dims  # the exporter's may change
    if _is_compact(source, dims):
        tensor.strides = None
    return capsule, own_dims


NOWHERE = 64
"""An address of no bytes."""


def exported_tensor(capsule: object) -> DLTensor:
    """The tensor in a capsule of DLPack without versions, which has to outlive it."""
    return DLTensor.from_address(_capsule_pointer(capsule, b"dltensor"))


def _export(value: Any) -> tuple[object, DLTensor, bool]:
    """The capsule that an object exports, the tensor in it, and whether that is read-only."""
    name = type(value).__name__
    try:
        try:
            capsule = value.__dlpack__(max_version=(1, 0))
        except TypeError:  # the exporter supports only the unversioned protocol
            capsule = value.__dlpack__()
    except Exception as error:
        raise TensorError(f"the {name} cannot be exported: {error}") from error
    if _is_capsule(capsule, b"dltensor"):
        return capsule, exported_tensor(capsule), False
    if not _is_capsule(capsule, b"dltensor_versioned"):
        raise TensorError(f"the {name} exports no DLPack tensor, or one that was taken before")
    managed = _Versioned.from_address(_capsule_pointer(capsule, b"dltensor_versioned"))
    if managed.major != 1:
        raise TensorError(f"the {name} exports DLPack {managed.major}, but 1 is expected")
    return capsule, managed.tensor, bool(managed.flags & _READ_ONLY)


def _exported_dims(tensor: DLTensor) -> list[int]:
    if not 0 <= tensor.ndim <= MAX_RANK:
        raise TensorError(f"rank is {tensor.ndim}, but 0 to {MAX_RANK} are supported")
    if tensor.ndim and not tensor.shape:
        raise TensorError("has no dims")
    dims = tensor.shape[: tensor.ndim]
    for index, dim in enumerate(dims):
        if dim < 0:
            raise TensorError(f"dim {index} is {dim}, but a dim must not be negative")
    return dims


def _is_compact(tensor: DLTensor, dims: Sequence[int]) -> bool:
    if not tensor.strides or 0 in dims:
        return True
    stride = 1
    for dim, actual in zip(reversed(dims), reversed(tensor.strides[: tensor.ndim]), strict=True):
        if dim != 1 and actual != stride:
            return False
        stride *= dim
    return True


class _Exported:
    """Strided memory, for NumPy; its elements are unsigned integers of their size."""

    def __init__(self, tensor: DLTensor, dims: Sequence[int]) -> None:
        size = tensor.bits // 8
        strides = tensor.strides[: tensor.ndim]
        self.__array_interface__ = {
            "version": 3,
            "data": (tensor.data + tensor.byte_offset, True),
            "shape": tuple(dims),
            "strides": tuple(size * stride for stride in strides),
            "typestr": f"{'|' if size == 1 else '<'}{_KIND_OF_CODE.get(tensor.code, 'u')}{size}",
        }


def _copy(tensor: DLTensor, dims: Sequence[int]) -> np.ndarray:
    """A contiguous copy."""
    try:
        return _contiguous(np.asarray(_Exported(tensor, dims)))
    except (TypeError, ValueError) as error:
        raise TensorError(f"cannot be copied: {error}") from error


@functools.cache
def packed_dtype(element: str) -> np.dtype | None:
    """The dtype of results of bf16 and of floats of 8 bits; None for other elements.

    Without the package `ml_dtypes` they are integers of the same bits.
    """
    if element not in _PACKED:
        return None
    if importlib.util.find_spec("ml_dtypes") is None:
        return _bits_of(element)
    import ml_dtypes  # optional: NumPy works without it

    return np.dtype(getattr(ml_dtypes, _PACKED[element][0]))


def type_code(element: str, dtype: np.dtype) -> int:
    """DLPack's code of an element type, whose bits NumPy has as a dtype."""
    return _PACKED[element][1] if element in _PACKED else _CODE_OF_KIND[dtype.kind]


def dtype_name(element: str) -> str | None:
    """The name of that dtype, whether the package is installed or not."""
    return _PACKED[element][0] if element in _PACKED else None


def _bits_of(element: str) -> np.dtype:
    return np.dtype(np.uint16 if element == "bf16" else np.uint8)
