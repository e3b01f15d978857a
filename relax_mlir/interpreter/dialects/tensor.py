"""Tensors as immutable values; results may be views of operands."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relax_mlir.bindings import ir, tensor
from relax_mlir.interpreter.elements import garbage, stored_dtype
from relax_mlir.interpreter.elements import stored as read
from relax_mlir.interpreter.frame import Frame

__all__ = ["read"]

_DYNAMIC = ir.ShapedType.get_dynamic_size()


def mixed(static: Sequence[int], dynamic: Sequence[int]) -> list[int]:
    """Static values, with dynamic ones filled in."""
    rest = iter(dynamic)
    return [int(next(rest)) if value == _DYNAMIC else value for value in static]


def cast(x: np.ndarray) -> np.ndarray:
    """The same tensor; its dims must match the type."""
    return x


def dim(x: np.ndarray, axis: int) -> int:
    """An extent."""
    return x.shape[axis]


def rank(x: np.ndarray) -> int:
    """The count of dims."""
    return x.ndim


def empty(*sizes: int, result: ir.RankedTensorType) -> np.ndarray:
    """A tensor of garbage."""
    return garbage(mixed(result.shape, sizes), result.element_type)


def splat(value: Any, *sizes: int, result: ir.RankedTensorType) -> np.ndarray:
    """One element, repeated."""
    return np.broadcast_to(value, mixed(result.shape, sizes))


def from_elements(*values: Any, result: ir.RankedTensorType) -> np.ndarray:
    """A tensor of single elements."""
    return np.array(values, stored_dtype(result.element_type)).reshape(result.shape)


def extract(x: np.ndarray, *indices: Any) -> Any:
    """An element."""
    for axis, (index, extent) in enumerate(zip(indices, x.shape, strict=True)):
        require_inside(index, extent, axis)
    return x[indices]


CLAMPED = ("extract", "insert")
"""Ops whose indices may be outside in leaves of dataflow graphs.

A read is clamped, and gives 0 of an empty tensor; a store outside does nothing.
"""


def clamped(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function for leaves of an op of `CLAMPED`."""
    if function is insert:
        return _insert_if_inside

    def inside(x: np.ndarray, *indices: Any) -> Any:
        if not x.size:
            return np.zeros(np.broadcast_shapes(*map(np.shape, indices)), x.dtype)[()]
        lasts = [extent - 1 for extent in x.shape]
        return function(x, *(np.clip(i, 0, last) for i, last in zip(indices, lasts)))

    return inside


def require_inside(index: Any, extent: int, axis: int) -> None:
    """Raises ValueError unless an index, or each of an array, is within a dim."""
    if isinstance(index, int) and 0 <= index < extent:
        return
    if np.size(index) and not (0 <= np.min(index) and np.max(index) < extent):
        wrong = np.min(index) if np.min(index) < 0 else np.max(index)
        raise ValueError(f"has the index {wrong} outside of dim {axis} of {extent}")


def insert(value: Any, x: np.ndarray, *indices: int) -> np.ndarray:
    """The tensor with one element replaced."""
    extract(x, *indices)
    result = np.array(x)
    result[indices] = value
    return result


def _insert_if_inside(value: Any, x: np.ndarray, *indices: int) -> np.ndarray:
    is_inside = all(0 <= i < extent for i, extent in zip(indices, x.shape))
    return insert(value, x, *map(int, indices)) if is_inside else x


def parts_of(
    shape: Sequence[int],
    dynamic: Sequence[int],
    offsets: Sequence[int],
    sizes: Sequence[int],
    strides: Sequence[int],
) -> tuple[slice, ...]:
    """The slices of an array of these dims; raises ValueError if they are out of bounds."""
    rest = list(dynamic)
    parts = []
    for static in (offsets, sizes, strides):
        parts.append(mixed(static, rest))
        rest = rest[sum(value == _DYNAMIC for value in static) :]
    for axis, (extent, first, size, stride) in enumerate(zip(shape, *parts, strict=True)):
        last = first + (size - 1) * stride
        if size < 0 or first < 0 or (size and not (0 <= last < extent)) or first > extent:
            raise ValueError(
                f"takes {size} elements from {first}, by {stride}, of dim {axis} of {extent}"
            )
    return tuple(
        slice(first, first + size * stride, stride)
        for first, size, stride in zip(*parts, strict=True)
    )


def extract_slice(
    x: np.ndarray,
    *dynamic: int,
    static_offsets: Sequence[int],
    static_sizes: Sequence[int],
    static_strides: Sequence[int],
    result: ir.RankedTensorType,
) -> np.ndarray:
    """A part of a tensor; drops dims of extent 1 that the result does not have."""
    part = x[parts_of(x.shape, dynamic, static_offsets, static_sizes, static_strides)]
    return part.reshape(reduced(part.shape, result.shape))


def reduced(shape: Sequence[int], wanted: Sequence[int]) -> list[int]:
    """Drops dims of extent 1 until the rank is that of `wanted`."""
    dims: list[int] = []
    surplus = len(shape) - len(wanted)
    for extent in shape:
        fits = len(dims) < len(wanted) and wanted[len(dims)] in (extent, _DYNAMIC)
        if surplus and extent == 1 and not (fits and wanted[len(dims)] == 1):
            surplus -= 1
        else:
            dims.append(extent)
    return dims


def insert_slice(
    part: np.ndarray,
    x: np.ndarray,
    *dynamic: int,
    static_offsets: Sequence[int],
    static_sizes: Sequence[int],
    static_strides: Sequence[int],
) -> np.ndarray:
    """The tensor with a part replaced."""
    result = x.copy()
    where = parts_of(x.shape, dynamic, static_offsets, static_sizes, static_strides)
    if result[where].size != part.size:
        raise ValueError(f"inserts {part.shape} where there is room for {result[where].shape}")
    result[where] = part.reshape(result[where].shape)
    return result


def collapse_shape(x: np.ndarray, *, reassociation: ir.ArrayAttr) -> np.ndarray:
    """Collapses groups of dims."""
    groups = [[axis.value for axis in group] for group in reassociation]
    return x.reshape([int(np.prod([x.shape[axis] for axis in group])) for group in groups])


def expand_shape(x: np.ndarray, *sizes: int, static_output_shape: Sequence[int]) -> np.ndarray:
    """Expands dims to several each."""
    return x.reshape(mixed(static_output_shape, sizes))


def reshape(x: np.ndarray, shape: np.ndarray) -> np.ndarray:
    """Reshapes to the dims in a tensor."""
    return x.reshape([int(extent) for extent in shape])


def concat(*parts: np.ndarray, dim: int) -> np.ndarray:
    """Joins tensors along a dim."""
    return np.concatenate(parts, dim)


def generate(frame: Frame, op: tensor.GenerateOp, *sizes: int) -> np.ndarray:
    """Each element computed from its index."""
    shape = mixed(op.result.type.shape, sizes)
    return _computed(frame, op, shape)


def pad(frame: Frame, op: tensor.PadOp, x: np.ndarray, *dynamic: int) -> np.ndarray:
    """Pads a tensor with elements that are computed from their index."""
    low_static = list(ir.DenseI64ArrayAttr(op.attributes["static_low"]))
    count = sum(value == _DYNAMIC for value in low_static)
    low = mixed(low_static, dynamic[:count])
    high = mixed(list(ir.DenseI64ArrayAttr(op.attributes["static_high"])), dynamic[count:])
    if min([*low, *high], default=0) < 0:
        raise ValueError(f"pads by {low} and {high}, but not below 0")
    shape = [a + extent + b for a, extent, b in zip(low, x.shape, high, strict=True)]
    result = _computed(frame, op, shape)
    result[tuple(slice(a, a + n) for a, n in zip(low, x.shape, strict=True))] = x
    return result


def _computed(frame: Frame, op: ir.OpView, shape: Sequence[int]) -> np.ndarray:
    """The yield of the region at each index."""
    indices = np.ogrid[tuple(map(slice, shape))] if shape else []
    (element,) = frame.nested().run(op.regions[0].blocks[0], list(indices))
    dtype = stored_dtype(op.result.type.element_type)
    return np.array(np.broadcast_to(element, shape), dtype)
