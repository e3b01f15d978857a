"""Runs dataflow nodes: instance by instance, in an order that tests may choose."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from relax_mlir.analysis.nodes import MAX_LEVELS, piece_type
from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import ONE_TO_ONE, NodeOp, TensorType, exact_dims

from .elements import stored_dtype
from .frame import Frame

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
    is_own = [kind == ONE_TO_ONE for kind in op.edge_kinds]
    kinds = [(isinstance(t, ir.RankedTensorType), piece_type(t)) for t in callee.type.inputs]
    for flat in _order.get()(math.prod(grid)):
        ids = tuple(int(i) for i in np.unravel_index(flat, grid)) if grid else ()
        pieces = [x[ids] if own else x for x, own in zip(operands, is_own, strict=True)]
        arguments = [
            np.asarray(x).view(stored_dtype(kind.element))[... if is_tensor else ()]
            for x, (is_tensor, kind) in zip(pieces, kinds, strict=True)
        ]
        symbols, grids = signature.bind(arguments), ((ids, grid), *frame.grids)
        inner = Frame(frame.code, signature, symbols=symbols, grids=grids)
        for result, value in zip(results, inner.run(callee.entry_block, arguments), strict=True):
            result[ids] = value
    return results
