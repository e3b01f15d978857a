"""Runs dataflow nodes: instance by instance, in an order that tests may choose."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from relax_mlir.analysis.leaves import shared_parameters
from relax_mlir.analysis.nodes import MAX_LEVELS, Tiles, is_leaf, piece_type, tiles_of
from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import ONE_TO_ONE, TILES, NodeOp, TensorType, exact_dims
from relax_mlir.dialects.tir import BarrierOp

from .elements import stored_dtype
from .frame import Frame, Position
from .step import Step

Ids: TypeAlias = tuple[int, ...]
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
    """Runs each instance of a node; returns what they return, with the grid's dims in front.

    In front of those are tensors that instances share, as the last instance leaves them. All
    instances come to a barrier before one goes on.
    """
    grid = frame.evaluate(op.extents)
    if any(extent < 0 for extent in grid):
        raise ValueError(f"has a grid of {list(grid)}, which is negative")
    callee = frame.code.functions.get(op.callee_name)
    if callee is None or callee.is_external:
        raise ValueError(f"runs '@{op.callee_name}', which has no body")
    if len(frame.grids) == MAX_LEVELS:
        raise ValueError(f"is more than {MAX_LEVELS} levels below the outermost node")
    shared = shared_parameters(callee) if is_leaf(callee) else []
    results = _zeros(frame, op, len(shared))
    now = [operands[index] for index in shared]
    begun: dict[int, tuple[Ids, Frame]] = {}
    phases = _phases(frame, callee, shared)
    own = phases[-1].yielded[len(shared) :]
    start = _Start(frame, op, callee, grid)
    for phase in phases:
        for flat in _order.get()(math.prod(grid)):
            ids, inner = begun[flat] if flat in begun else start(flat, operands)
            if len(phases) > 1:
                begun[flat] = ids, inner
            inner.values.update(zip(phase.entered, now, strict=True))
            for step in phase.steps:
                step(inner)
            now = [inner.values[value] for value in phase.yielded[: len(shared)]]
            if phase is phases[-1]:
                for result, value in zip(results, own, strict=True):
                    start.put(inner.values[value], result, ids)
    return [*map(np.asarray, now), *results]


def _zeros(frame: Frame, op: NodeOp, first: int) -> list[np.ndarray]:
    """Memory of the results of a node, but for the first ones."""
    results = []
    for out in list(op.outs)[first:]:
        annotation = TensorType.of(out)
        shape = frame.evaluate(exact_dims(annotation.dims))
        results.append(np.zeros(shape, stored_dtype(annotation.element)))
    return results


@dataclass(frozen=True)
class _Phase:
    """Steps of a leaf between barriers; shared tensors are `entered`, and yielded first."""

    entered: Sequence[ir.Value]
    steps: Sequence[Step]
    yielded: Sequence[ir.Value]


def _phases(frame: Frame, callee: func.FuncOp, shared: Sequence[int]) -> list[_Phase]:
    prepared = frame.code.steps(callee.entry_block)
    phases, entered, begin = [], [prepared.arguments[index] for index in shared], 0
    positions = [i for i, step in enumerate(prepared.steps) if isinstance(step.op, BarrierOp)]
    for first in positions[:: len(shared) or 1]:
        end = first + len(shared)
        barriers = [step.op for step in prepared.steps[first:end]]
        befores = [barrier.operands[0] for barrier in barriers]
        phases.append(_Phase(entered, prepared.steps[begin:first], befores))
        entered, begin = [barrier.results[0] for barrier in barriers], end
    return [*phases, _Phase(entered, prepared.steps[begin:], prepared.yielded)]


class _Start:
    """Begins the instances of a node."""

    def __init__(self, frame: Frame, op: NodeOp, callee: func.FuncOp, grid: Ids) -> None:
        self.frame, self.callee, self.grid, self.edges = frame, callee, grid, op.edge_kinds
        self.signature = frame.code.signature(callee)
        self.tiles = tiles_of(op, frame.code.functions)
        self.covered = () if self.tiles is None else frame.evaluate(self.tiles.covered)
        self.kinds = [
            (isinstance(t, ir.RankedTensorType), piece_type(t)) for t in callee.type.inputs
        ]

    def __call__(self, flat: int, operands: Sequence[Any]) -> tuple[Ids, Frame]:
        """The indices of an instance, and its frame with what it gets."""
        grid = self.grid
        ids = tuple(int(i) for i in np.unravel_index(flat, grid)) if grid else ()
        edges, tiles = self.edges, self.tiles
        pieces = [_piece(x, edge, ids, tiles) for x, edge in zip(operands, edges, strict=True)]
        arguments = [
            np.asarray(x).view(stored_dtype(kind.element))[... if is_tensor else ()]
            for x, (is_tensor, kind) in zip(pieces, self.kinds, strict=True)
        ]
        grids = (Position(ids, grid, self.covered), *self.frame.grids)
        symbols = self.signature.bind(arguments)
        inner = Frame(self.frame.code, self.signature, symbols=symbols, grids=grids)
        inner.values.update(zip(self.callee.arguments, arguments, strict=True))
        return ids, inner

    def put(self, value: Any, result: np.ndarray, ids: Ids) -> None:
        """Writes what an instance returns to a result of the node."""
        if self.tiles is None:
            result[ids] = value
        else:
            inside = result[_slices(ids, self.tiles)]
            inside[...] = value[tuple(map(slice, inside.shape))]


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
