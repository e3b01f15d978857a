"""Products of matrices that warps compute, and how their parts come to threads."""

from typing import Any

import numpy as np

from relax_mlir.bindings import ir, nvgpu
from relax_mlir.interpreter.elements import widen

from ..fragments import WARP, Product, are_whole, spread
from ..threads import Threads

__all__ = ["device_async_copy", "ldmatrix", "mma_sync"]

_ROW, _ROW_BYTES = 8, 16
"""Rows of a matrix, and the bytes of one."""


def mma_sync(
    frame: Threads, op: nvgpu.MmaSyncOp, a: np.ndarray, b: np.ndarray, c: np.ndarray
) -> np.ndarray:
    """The elements of D = A * B + C of each thread."""
    _require_warps(frame)
    _, _, depth = (ir.IntegerAttr(x).value for x in op.mmaShape)
    element = ir.VectorType(op.matrixA.type).element_type
    count = len(frame.running)
    widened = [widen(np.broadcast_to(x, (count, *x.shape[-2:])), element) for x in (a, b)]
    total = np.broadcast_to(c, (count, 2, 2))
    product = Product(depth, a.shape[-1])
    flat = [np.ascontiguousarray(x).reshape(count, -1) for x in (*widened, total)]
    return product.compute(*flat).reshape(count, 2, 2)


def ldmatrix(frame: Threads, op: nvgpu.LdMatrixOp, buffer: Any, index: Any) -> np.ndarray:
    """Two elements of each matrix for each thread; a thread names a row."""
    _require_warps(frame)
    tiles = ir.IntegerAttr(op.operation.attributes["numTiles"]).value
    count = len(frame.running)
    at = np.broadcast_to(index, (count,))
    names = np.tile(np.arange(WARP) < _ROW * tiles, count // WARP)
    length = _ROW_BYTES // buffer.words.itemsize
    if (at[names] % length).any():
        raise ValueError(f"names a row that does not begin at a multiple of {length} elements")
    by = frame.access.some(names)
    rows = np.stack([buffer.load([at[names] + i], by) for i in range(length)], 1)
    pairs = np.ascontiguousarray(rows).view(np.uint16).reshape(-1, tiles, _ROW, _ROW)
    transposes = ir.BoolAttr(op.operation.attributes["transpose"]).value
    loaded = np.ascontiguousarray(spread(pairs, transposes)).view(rows.dtype)
    return loaded.reshape(count, tiles, -1)


def device_async_copy(frame: Threads, op: nvgpu.DeviceAsyncCopyOp, *operands: Any) -> Any:
    """Begins to copy elements; those beyond what the source has are zero."""
    to, target, source, index, *rest = operands
    size = ir.IntegerAttr(op.operation.attributes["dstElements"]).value
    count, by = len(frame.running), frame.access
    at, begin = np.broadcast_to(target, (count,)), np.broadcast_to(index, (count,))
    taken = np.broadcast_to(rest[0] if rest else size, (count,))
    if (taken < 0).any() or (taken > size).any():
        raise ValueError(f"copies {taken.max()} of {size} elements")
    if (at % size).any() or (begin % size).any():
        raise ValueError(f"copies {size} elements from or to what is no multiple of them")
    data = np.zeros((count, size), to.words.dtype)
    for i in range(size):
        chosen = taken > i
        if chosen.any():
            data[chosen, i] = source.load([begin[chosen] + i], by.some(chosen))
    to.begin(at, size, by)
    frame.pending.add(to, frame.local, at, data)
    return None


def _require_warps(frame: Threads) -> None:
    """Raises ValueError unless all threads of each warp that runs do."""
    if not are_whole(frame.running % frame.per_group):
        raise ValueError("is of warps, of which threads do not run")
