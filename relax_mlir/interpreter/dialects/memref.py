"""Memory of scheduled kernels: mutable NumPy arrays with bounds checks."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from relax_mlir.bindings import ir, memref
from relax_mlir.interpreter.constants import constant_value
from relax_mlir.interpreter.elements import garbage
from relax_mlir.interpreter.elements import stored as read
from relax_mlir.interpreter.frame import Frame

from .tensor import mixed, parts_of, reduced, require_inside

__all__ = ["read"]

_DYNAMIC = ir.ShapedType.get_dynamic_size()


def alloc(*sizes: int, result: ir.MemRefType) -> np.ndarray:
    """New memory, with garbage in it."""
    return garbage(mixed(result.shape, sizes), result.element_type)


alloca = alloc


def dealloc(frame: Frame, op: memref.DeallocOp, x: np.ndarray) -> list[Any]:
    """Nothing: memory is freed after its last use."""
    return []


def get_global(frame: Frame, op: memref.GetGlobalOp) -> np.ndarray:
    """A table of constants."""
    name = ir.FlatSymbolRefAttr(op.attributes["name"]).value
    return constant_value(frame.code.globals[name].attributes["initial_value"])


def dim(x: np.ndarray, axis: int) -> int:
    """An extent."""
    return x.shape[axis]


def cast(x: np.ndarray) -> np.ndarray:
    """The same memory."""
    return x


def load(x: np.ndarray, *indices: int) -> Any:
    """An element."""
    for axis, (index, extent) in enumerate(zip(indices, x.shape, strict=True)):
        require_inside(index, extent, axis)
    return x[indices]


def store(frame: Frame, op: memref.StoreOp, value: Any, x: np.ndarray, *indices: int) -> list[Any]:
    """Writes an element."""
    load(x, *indices)
    x[indices] = value
    return []


def copy(frame: Frame, op: memref.CopyOp, x: np.ndarray, target: np.ndarray) -> list[Any]:
    """Writes all elements."""
    if x.shape != target.shape:
        raise ValueError(f"copies dims {list(x.shape)} to {list(target.shape)}")
    target[...] = x
    return []


def prefetch(frame: Frame, op: memref.PrefetchOp, x: np.ndarray, *indices: int) -> list[Any]:
    """Nothing: any address may be fetched."""
    return []


def extract_aligned_pointer_as_index(x: np.ndarray) -> int:
    """The address, which kernels of devices ask for alignment."""
    return x.ctypes.data


def reinterpret_cast(
    x: np.ndarray,
    *dynamic: int,
    static_offsets: Sequence[int],
    static_sizes: Sequence[int],
    static_strides: Sequence[int],
) -> np.ndarray:
    """The elements from an offset on, at strides; all of them are in memory."""
    rest = list(dynamic)
    parts = []
    for statics in (static_offsets, static_sizes, static_strides):
        count = sum(value == _DYNAMIC for value in statics)
        parts.append(mixed(statics, rest[:count]))
        rest = rest[count:]
    (offset,), sizes, strides = parts
    last = offset + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True))
    flat = _same_memory(x, [x.size])
    if min(sizes) > 0:
        require_inside(last, x.size, 0)
    steps = [stride * x.itemsize for stride in strides]
    return np.lib.stride_tricks.as_strided(flat[offset:], sizes, steps)


def collapse_shape(x: np.ndarray, *, reassociation: ir.ArrayAttr) -> np.ndarray:
    """The same memory with groups of dims collapsed."""
    groups = [[axis.value for axis in group] for group in reassociation]
    shape = [int(np.prod([x.shape[axis] for axis in group])) for group in groups]
    return _same_memory(x, shape)


def expand_shape(x: np.ndarray, *sizes: int, static_output_shape: Sequence[int]) -> np.ndarray:
    """The same memory with dims expanded."""
    return _same_memory(x, mixed(static_output_shape, sizes))


def subview(
    x: np.ndarray,
    *dynamic: int,
    static_offsets: Sequence[int],
    static_sizes: Sequence[int],
    static_strides: Sequence[int],
    result: ir.MemRefType,
) -> np.ndarray:
    """A view of a part; drops dims of extent 1 that the result does not have."""
    part = x[parts_of(x.shape, dynamic, static_offsets, static_sizes, static_strides)]
    return _same_memory(part, reduced(part.shape, result.shape))


def _same_memory(x: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    seen = x.reshape(shape)
    if seen.size and not np.may_share_memory(seen, x):
        raise ValueError(f"cannot view dims {list(x.shape)} as {list(shape)}, which are apart")
    return seen
