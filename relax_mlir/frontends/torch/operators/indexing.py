"""Elements by indices: gather in all forms."""

from collections.abc import Sequence
from typing import Any

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    broadcast_to,
    dims_of,
    element_of,
    emit,
    permute,
    reshape,
)
from relax_mlir.dialects import graph
from relax_mlir.errors import ModelError

from ..call import Call
from ..registry import operator
from .shaping import from_front


def _taken(x: ir.Value, *indices: ir.Value, count: int) -> ir.Value:
    """Elements by indices of the first axes."""
    return graph.IndexTensorOp.build(x, *indices, axes=list(range(count))).operation.results[0]


@operator("embedding")
def embedding(
    call: Call, weight: ir.Value, indices: ir.Value, *args: Any, **options: Any
) -> ir.Value:
    """Rows of a table."""
    return emit(graph.TakeOp, weight, indices, axis=0)


@operator("index_select")
def index_select(call: Call, x: ir.Value, dim: int, index: ir.Value) -> ir.Value:
    """Slices of an axis."""
    if not call.rank(x):
        return x
    return emit(graph.TakeOp, x, d.reshape(index, [-1]), axis=call.axis(dim, call.rank(x)))


@operator("gather")
def gather(
    call: Call, x: ir.Value, dim: int, index: ir.Value, sparse_grad: bool = False
) -> ir.Value:
    """Elements along an axis."""
    if not (call.rank(x) and call.rank(index)):
        taken = emit(graph.TakeOp, d.reshape(x, [-1]), d.reshape(index, [-1]), axis=0)
        return reshape(taken, call.dims)
    return emit(graph.GatherElementsOp, x, index, axis=call.axis(dim, call.rank(x)))


@operator("index.Tensor", "_unsafe_index.Tensor")
def index(call: Call, x: ir.Value, indices: Sequence[ir.Value | None]) -> ir.Value:
    """Elements by tensors of indices, or of truth values, for some axes."""
    given = [(axis, each) for axis, each in enumerate(indices) if each is not None]
    if any(str(element_of(each)) == "i1" for _, each in given):
        return _by_mask(call, x, given)
    axes = [axis for axis, _ in given]
    own = [from_front(each, dims_of(x)[axis]) for axis, each in given]
    if axes == list(range(axes[0], axes[0] + len(axes))):
        return _taken(x, *own, count=len(axes)) if axes[0] == 0 else _inner(x, own, axes)
    rest = [axis for axis in range(call.rank(x)) if axis not in axes]
    front = permute(x, [*axes, *rest])
    return _taken(front, *own, count=len(axes))


def _inner(x: ir.Value, indices: Sequence[ir.Value], axes: Sequence[int]) -> ir.Value:
    """Elements by indices of adjacent axes that are not the first, where these stay."""
    rank = len(dims_of(x))
    rest = [axis for axis in range(rank) if axis not in axes]
    front = permute(x, [*axes, *rest])
    taken = _taken(front, *indices, count=len(axes))
    count = len(dims_of(taken)) - len(rest)
    first = axes[0]
    order = [*range(count, count + first), *range(count), *range(count + first, count + len(rest))]
    return permute(taken, order)


def _by_mask(call: Call, x: ir.Value, given: Sequence[tuple[int, ir.Value]]) -> ir.Value:
    if len(given) != 1 or given[0][0] != 0:
        raise ModelError("has a mask next to other indices, which is not supported")
    return d.index_by_mask(x, given[0][1])


@operator("nonzero")
def nonzero(call: Call, x: ir.Value) -> ir.Value:
    """The indices of elements that are not 0, a row for each."""
    return d.argwhere(x)


@operator("masked_select")
def masked_select(call: Call, x: ir.Value, mask: ir.Value) -> ir.Value:
    """The elements at which a mask is true."""
    return d.masked_select(x, mask)


@operator("one_hot")
def one_hot(call: Call, x: ir.Value, classes: Any = -1) -> ir.Value:
    """1 at an index, 0 elsewhere."""
    on, off = (d.emit.scalar(value, call.element) for value in (1, 0))
    depth = call.expr(classes)
    if depth.value is not None and depth.value < 0:
        raise ModelError("has as many classes as elements say, which is not supported")
    return emit(graph.OneHotOp, x, on, off, depth=[depth], axis=call.rank(x))


@operator("copy")
def copy(call: Call, x: ir.Value, source: ir.Value, non_blocking: bool = False) -> ir.Value:
    """Other elements, in the type and dims of a tensor."""
    return broadcast_to(call.tensor(source, call.element), call.dims)
