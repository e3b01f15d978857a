"""Runs dataflow nodes: instance by instance, in an order that tests may choose."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from relax_mlir.analysis.nodes import MAX_LEVELS, Tiles, piece_type, tiles_of
from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import ONE_TO_ONE, TILES, NodeOp, TensorType, exact_dims

from .elements import stored_dtype
from .frame import Frame, Position

Order = Callable[[int], Sequence[int]]
_order: ContextVar[Order] = ContextVar("order", default=range)


@contextmanager
def instances_in(order: Order) -> Iterator[None]:
    """Runs the instances of nodes in another order: `order(count)` is a permutation of its range.

    No result may depend on it.
    """
    token = _order.set(order)
    try:
        yield
    finally:
        _order.reset(token)


def run_node(frame: Frame, op: NodeOp, operands: Sequence[Any]) -> list[np.ndarray]:
    """Runs each instance of a node; returns what they return, with the grid's dims in front."""
    grid = frame.evaluate(op.extents)
    if any(extent < 0 for extent in grid):
        raise ValueError(f"has a grid of {list(grid)}, which is negative")
    callee = frame.code.functions.get(op.callee_name)
    if callee is None or callee.is_external:
        raise ValueError(f"runs '@{op.callee_name}', which has no body")
    if len(frame.grids) == MAX_LEVELS:
        raise ValueError(f"is more than {MAX_LEVELS} levels below the outermost node")
    signature = frame.code.signature(callee)
    results = []
    for out in op.outs:
        annotation = TensorType.of(out)
        shape = frame.evaluate(exact_dims(annotation.dims))
        results.append(np.zeros(shape, stored_dtype(annotation.element)))
    tiles = tiles_of(op, frame.code.functions)
    covered = () if tiles is None else frame.evaluate(tiles.covered)
    edges = op.edge_kinds
    kinds = [(isinstance(t, ir.RankedTensorType), piece_type(t)) for t in callee.type.inputs]
    for flat in _order.get()(math.prod(grid)):
        ids = tuple(int(i) for i in np.unravel_index(flat, grid)) if grid else ()
        pieces = [_piece(x, edge, ids, tiles) for x, edge in zip(operands, edges, strict=True)]
        arguments = [
            np.asarray(x).view(stored_dtype(kind.element))[... if is_tensor else ()]
            for x, (is_tensor, kind) in zip(pieces, kinds, strict=True)
        ]
        symbols = signature.bind(arguments)
        grids = (Position(ids, grid, covered), *frame.grids)
        inner = Frame(frame.code, signature, symbols=symbols, grids=grids)
        for result, value in zip(results, inner.run(callee.entry_block, arguments), strict=True):
            if tiles is None:
                result[ids] = value
            else:
                inside = result[_slices(ids, tiles)]
                inside[...] = value[tuple(map(slice, inside.shape))]
    return results


def _slices(ids: Sequence[int], tiles: Tiles) -> tuple[slice, ...]:
    return tuple(slice(i * size, (i + 1) * size) for i, size in zip(ids, tiles.sizes))


def _piece(x: np.ndarray, edge: str, ids: tuple[int, ...], tiles: Tiles | None) -> np.ndarray:
    """What an instance gets of an operand; of a tile, zeros beyond the end."""
    if edge == ONE_TO_ONE:
        return x[ids]
    if edge != TILES or tiles is None:
        return x
    inside = x[_slices(ids, tiles)]
    tile = np.zeros((*tiles.sizes, *x.shape[len(ids) :]), x.dtype)
    tile[tuple(map(slice, inside.shape))] = inside
    return tile
