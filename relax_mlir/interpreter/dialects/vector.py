"""Vectors as arrays, with masks.

Loads and stores access consecutive elements along the last dim, which may cross rows of contiguous
memory, but not the end of the memory.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from relax_mlir.bindings import ir, vector
from relax_mlir.interpreter.elements import round_to, stored_dtype, widen
from relax_mlir.interpreter.elements import stored as read
from relax_mlir.interpreter.frame import Frame
from relax_mlir.interpreter.step import element_of

from .tensor import mixed, require_inside

__all__ = ["read"]

_REDUCTIONS = {
    "add": np.add,
    "mul": np.multiply,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "minsi": np.minimum,
    "maxsi": np.maximum,
    "minui": np.minimum,
    "maxui": np.maximum,
    "minimumf": np.minimum,
    "maximumf": np.maximum,
    "minnumf": np.fmin,
    "maxnumf": np.fmax,
}


def broadcast(x: Any, *, result: ir.VectorType) -> np.ndarray:
    """Broadcasts an element or a vector."""
    dtype = stored_dtype(result.element_type)
    return np.broadcast_to(np.asarray(x, dtype), result.shape)


def step(*, result: ir.VectorType) -> np.ndarray:
    """0, 1, ..."""
    return np.arange(result.shape[0])


def create_mask(*sizes: int, result: ir.VectorType) -> np.ndarray:
    """True for the first lanes of each dim."""
    mask = np.zeros(result.shape, np.bool_)
    mask[tuple(slice(max(0, size)) for size in sizes)] = True
    return mask


def constant_mask(*, mask_dim_sizes: Sequence[int], result: ir.VectorType) -> np.ndarray:
    """True for the first lanes of each dim."""
    return create_mask(*mask_dim_sizes, result=result)


def extract(x: np.ndarray, *dynamic: int, static_position: Sequence[int]) -> Any:
    """A lane, or the vectors at a position."""
    return x[tuple(mixed(static_position, dynamic))]


def insert(value: Any, x: np.ndarray, *dynamic: int, static_position: Sequence[int]) -> np.ndarray:
    """The vector with a lane, or the vectors at a position, replaced."""
    result = np.array(x)
    result[tuple(mixed(static_position, dynamic))] = value
    return result


def from_elements(*values: Any, result: ir.VectorType) -> np.ndarray:
    """A vector of single elements."""
    return np.array(values, stored_dtype(result.element_type)).reshape(result.shape)


def extract_strided_slice(
    x: np.ndarray, *, offsets: ir.ArrayAttr, sizes: ir.ArrayAttr, strides: ir.ArrayAttr
) -> np.ndarray:
    """Some lanes of the leading dims."""
    return x[_lanes([o.value for o in offsets], [s.value for s in sizes], strides)]


def insert_strided_slice(
    part: np.ndarray, x: np.ndarray, *, offsets: ir.ArrayAttr, strides: ir.ArrayAttr
) -> np.ndarray:
    """The vector with some lanes replaced."""
    result, first = np.array(x), [offset.value for offset in offsets]
    sizes = [1] * (x.ndim - part.ndim) + list(part.shape)
    steps = [1] * (x.ndim - part.ndim) + [stride.value for stride in strides]
    where = tuple(slice(o, o + n * s, s) for o, n, s in zip(first, sizes, steps, strict=True))
    result[where] = part.reshape(sizes)
    return result


def _lanes(
    offsets: Sequence[int], sizes: Sequence[int], strides: ir.ArrayAttr
) -> tuple[slice, ...]:
    steps = [stride.value for stride in strides]
    return tuple(slice(o, o + n * s, s) for o, n, s in zip(offsets, sizes, steps, strict=True))


def shuffle(a: np.ndarray, b: np.ndarray, *, mask: Sequence[int]) -> np.ndarray:
    """Lanes of two vectors, by index."""
    return np.concatenate([np.atleast_1d(a), np.atleast_1d(b)])[list(mask)]


def interleave(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Alternate lanes of two vectors."""
    return np.stack([a, b], -1).reshape(*a.shape[:-1], -1)


def bitcast(frame: Frame, op: vector.BitCastOp, x: np.ndarray) -> np.ndarray:
    """The same bits as another element type; a lane of a mask is one bit."""
    dtype = stored_dtype(element_of(op.result))
    if x.dtype != np.bool_:
        return np.ascontiguousarray(x).view(dtype)
    groups = x.reshape(op.result.type.shape[-1], -1)
    values = np.array([sum(int(b) << i for i, b in enumerate(bits)) for bits in groups], object)
    return values if dtype.hasobject else values.astype(f"u{dtype.name}").view(dtype)


def shape_cast(x: np.ndarray, *, result: ir.VectorType) -> np.ndarray:
    """The same elements under other dims."""
    return x.reshape(result.shape)


def transpose(x: np.ndarray, *, permutation: Sequence[int]) -> np.ndarray:
    """Permutes dims."""
    return np.transpose(x, permutation)


def fma(frame: Frame, op: vector.FMAOp, a: Any, b: Any, c: Any) -> np.ndarray:
    """a * b + c, rounded once."""
    element = element_of(op.result)
    a, b, c = (np.asarray(widen(x, element), np.float64) for x in (a, b, c))
    return round_to(a * b + c, element)


def reduction(frame: Frame, op: vector.ReductionOp, x: np.ndarray, *start: Any) -> Any:
    """Combines the lanes, in their own type."""
    kind = str(op.attributes["kind"]).partition("<")[2].rstrip(">")
    element = element_of(op.result)
    if kind not in _REDUCTIONS:
        raise ValueError(f"combines by '{kind}', which is not known")
    ufunc, lanes = _REDUCTIONS[kind], [widen(part, element) for part in (x, *start)]
    if kind.endswith("ui"):
        lanes = [np.asarray(part).view(f"u{part.dtype.itemsize}") for part in lanes]
    total = ufunc.reduce(lanes[0], dtype=lanes[0].dtype)
    return round_to(ufunc(total, lanes[1]) if start else total, element)[()]


def _flat(x: np.ndarray, indices: Sequence[int]) -> tuple[np.ndarray, int]:
    """Memory as one dim, and the position of an element; only its row if it is not contiguous."""
    for axis, (index, extent) in enumerate(zip(indices[:-1], x.shape, strict=False)):
        require_inside(index, extent, axis)
    if x.flags.c_contiguous:
        at = 0
        for index, extent in zip(indices, x.shape, strict=True):
            at = at * extent + index
        return x.reshape(-1), at
    return x[tuple(indices[:-1])], indices[-1]


def _require(row: np.ndarray, first: int, last: int, does: str) -> None:
    if first < 0 or last >= len(row):
        raise ValueError(f"{does} elements {first} to {last} of memory of {len(row)}")


def load(x: np.ndarray, *indices: int, result: ir.VectorType) -> np.ndarray:
    """Loads consecutive elements."""
    row, first = _flat(x, indices)
    count = result.shape[-1]
    _require(row, first, first + count - 1, "loads")
    return row[first : first + count].copy().reshape(result.shape)


def store(
    frame: Frame, op: vector.StoreOp, value: np.ndarray, x: np.ndarray, *indices: int
) -> list[Any]:
    """Stores consecutive elements."""
    row, first = _flat(x, indices)
    _require(row, first, first + value.size - 1, "stores")
    row[first : first + value.size] = value.reshape(-1)
    return []


def maskedload(frame: Frame, op: vector.MaskedLoadOp, x: np.ndarray, *others: Any) -> np.ndarray:
    """Loads consecutive elements where the mask is set, else takes the pass-through value."""
    *indices, mask, rest = others
    row, first = _flat(x, indices)
    lanes = first + np.flatnonzero(mask)
    if lanes.size:
        _require(row, lanes[0], lanes[-1], "loads")
    result = np.array(rest)
    result[mask] = row[lanes]
    return result


def maskedstore(frame: Frame, op: vector.MaskedStoreOp, x: np.ndarray, *others: Any) -> list[Any]:
    """Stores consecutive elements where the mask is set."""
    *indices, mask, value = others
    row, first = _flat(x, indices)
    lanes = first + np.flatnonzero(mask)
    if lanes.size:
        _require(row, lanes[0], lanes[-1], "stores")
    row[lanes] = value[mask]
    return []


def gather(frame: Frame, op: vector.GatherOp, x: np.ndarray, *others: Any) -> np.ndarray:
    """Loads elements at indices relative to a base, where the mask is set."""
    *indices, lanes, mask, rest = others
    row, first = _flat(x, indices)
    at = first + np.asarray(lanes, np.int64)[mask]
    if at.size:
        _require(row, at.min(), at.max(), "loads")
    result = np.array(rest)
    result[mask] = row[at]
    return result


def scatter(frame: Frame, op: vector.ScatterOp, x: np.ndarray, *others: Any) -> list[Any]:
    """Stores elements at indices relative to a base, where the mask is set."""
    *indices, lanes, mask, value = others
    row, first = _flat(x, indices)
    at = first + np.asarray(lanes, np.int64)[mask]
    if at.size:
        _require(row, at.min(), at.max(), "stores")
    row[at] = value[mask]
    return []
