"""Matrices that subgroups multiply: a thread has some elements, and only the device knows which.

So a kernel may not depend on it: what is stored has other threads than what is loaded, and access
to what another thread of the same subgroup wrote needs a barrier, as any.
"""

import re
from typing import Any

import numpy as np

from relax_mlir.bindings import gpu, ir
from relax_mlir.interpreter.elements import widen

from ..fragments import WARP, are_whole
from ..threads import Threads

__all__ = [
    *("subgroup_id", "subgroup_mma_compute", "subgroup_mma_constant_matrix"),
    *("subgroup_mma_load_matrix", "subgroup_mma_store_matrix"),
]


def subgroup_id(frame: Threads, op: ir.OpView) -> np.ndarray:
    """The index of the subgroup in its group."""
    return frame.running % frame.per_group // WARP


def subgroup_mma_constant_matrix(frame: Threads, op: ir.OpView, x: Any) -> np.ndarray:
    """A matrix of the same elements."""
    count = _size(op.operation.results[0].type) // WARP
    return np.broadcast_to(np.asarray(x), (len(frame.running), count))


def subgroup_mma_load_matrix(
    frame: Threads, op: gpu.SubgroupMmaLoadMatrixOp, buffer: Any, index: Any
) -> np.ndarray:
    """The matrix of each subgroup, from an element of memory on."""
    at = _positions(frame, op, op.operation.results[0].type, index)
    return np.stack([buffer.load([part], frame.access) for part in at.T], 1)


def subgroup_mma_store_matrix(
    frame: Threads, op: gpu.SubgroupMmaStoreMatrixOp, x: np.ndarray, buffer: Any, index: Any
) -> list[Any]:
    """Stores the matrix of each subgroup, from an element of memory on."""
    at, count = _positions(frame, op, op.operation.operands[0].type, index), x.shape[1]
    at, whole = (y.reshape(-1, WARP, count)[:, ::-1].reshape(-1, count) for y in (at, x))
    for i in range(count):
        buffer.store(whole[:, i], [at[:, i]], frame.access)
    return []


def subgroup_mma_compute(
    frame: Threads, op: gpu.SubgroupMmaComputeOp, a: np.ndarray, b: np.ndarray, c: np.ndarray
) -> np.ndarray:
    """A * B + C of each subgroup, exact but for the last step: a device may round in between.

    Integers wrap.
    """
    _require_subgroups(frame)
    exact = np.float64 if c.dtype.kind == "f" else np.int64
    left, right, total = (
        widen(x, _element(value.type)).reshape(-1, *_shape(value.type)).astype(exact)
        for x, value in zip((a, b, c), op.operation.operands, strict=True)
    )
    with np.errstate(all="ignore"):
        return (left @ right + total).astype(c.dtype).reshape(c.shape)


def _positions(frame: Threads, op: ir.OpView, kind: ir.Type, index: Any) -> np.ndarray:
    """Where in memory the elements of each thread are: [thread, element]."""
    _require_subgroups(frame)
    count = len(frame.running)
    first = np.broadcast_to(index, (count,)).reshape(-1, WARP)
    if (first != first[:, :1]).any():
        raise ValueError("has another address in some threads of a subgroup")
    attributes = op.operation.attributes
    lead = ir.IntegerAttr(attributes["leadDimension"]).value
    row, column = np.divmod(np.arange(_size(kind)), _shape(kind)[1])
    outer, inner = (column, row) if "transpose" in attributes else (row, column)
    at = first[:, :1] + outer * lead + inner
    return at.reshape(count, -1)


def _shape(kind: ir.Type) -> tuple[int, int]:
    """The rows and columns of a type of matrices, for which there are no bindings."""
    rows, columns = re.findall(r"(\d+)x", str(kind))
    return int(rows), int(columns)


def _size(kind: ir.Type) -> int:
    rows, columns = _shape(kind)
    return rows * columns


def _element(kind: ir.Type) -> ir.Type:
    matched = re.search(r"x([a-z]\w*),", str(kind))
    assert matched
    return ir.Type.parse(matched[1], kind.context)


def _require_subgroups(frame: Threads) -> None:
    """Raises ValueError unless all threads of each subgroup that runs do."""
    if not are_whole(frame.running % frame.per_group):
        raise ValueError("is of subgroups, of which threads do not run")
