"""Recipes of operators that take tensors of indices; what is out of range is part of the test."""

from collections.abc import Sequence
from typing import Any

from relax_mlir.dialects import graph
from relax_mlir.symbolic import const

from ..builder import INTEGERS, Builder, Dims, Value
from .table import recipe


def _indexed(b: Builder) -> Value:
    """What has an element along each axis."""
    return b.take(lambda v: 1 <= v.rank <= 3 and all(dim.value != 0 for dim in v.dims))


def _indices(b: Builder, dims: Sequence[Any]) -> Value:
    """Integers of given dims that levels may not differ in."""

    def fits(v: Value) -> bool:
        return v.element in INTEGERS and v.exact and v.dims == tuple(dims)

    found = b.pick(fits) if b.chance(0.6) else None
    return found or b.argument(dims, b.random.choice(["i64", "i32"]))


@recipe("indexing", graph.GatherElementsOp)
def gather_elements(b: Builder, op: Any) -> None:
    """From a part of the other axes."""
    x = _indexed(b)
    axis = b.random.randrange(x.rank)
    dims = [const(1) if b.chance(0.2) else dim for dim in x.dims]
    dims[axis] = b.pick_dim()
    b.emit(
        op, [x, _indices(b, dims)], x.exact, x.bound, axis=b.random.choice([axis, axis - x.rank])
    )


@recipe("indexing", graph.GatherNdOp)
def gather_nd(b: Builder, op: Any) -> None:
    """Of none to all dims, maybe behind one that is the same of both."""
    x = _indexed(b)
    batch = 1 if x.rank > 1 and b.chance(0.3) else 0
    count = b.random.randint(0 if b.chance(0.1) else 1, x.rank - batch)
    dims = [*x.dims[:batch], *_few_dims(b), const(count)]
    b.emit(op, [x, _indices(b, dims)], x.exact, x.bound, batch_dims=batch)


@recipe("indexing", graph.IndexTensorOp)
def index_tensor(b: Builder, op: Any) -> None:
    """By one tensor, or by several of which some have fewer dims, or 1."""
    x = _indexed(b)
    axes, indices = index_tensors(b, x)
    b.emit(op, [x, *indices], x.exact, x.bound, axes=axes)


def index_tensors(b: Builder, x: Value) -> tuple[list[int], list[Value]]:
    """Some axes, and indices for each."""
    axes = sorted(b.random.sample(range(x.rank), b.random.randint(1, x.rank)))
    joint = _few_dims(b)
    indices: list[Value] = []
    for _ in axes:
        dims = [const(1) if b.chance(0.2) else dim for dim in joint]
        indices.append(_indices(b, dims[b.random.randint(0, len(dims)) :] if indices else joint))
    return axes, indices


def _few_dims(b: Builder) -> Dims:
    return b.pick_dims(b.random.choice([0, 1, 1, 1, 2]))
