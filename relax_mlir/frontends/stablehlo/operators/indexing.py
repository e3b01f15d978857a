"""Slices by tensors of indices: gather."""

from collections.abc import Sequence
from typing import NamedTuple

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    add,
    arange,
    dims_of,
    emit,
    expand_dims,
    maximum,
    minimum,
    permute,
    rank_of,
    reshape,
    scalar,
    symbol,
)
from relax_mlir.dialects import graph
from relax_mlir.errors import ModelError
from relax_mlir.symbolic import Expr, const

from ..node import Node
from ..registry import operator
from .movement import as_index


class Roles(NamedTuple):
    """What axes of the operand, of the indices and of windows are for.

    `windows` are the axes of the result of a gather, or of the updates of a scatter, that windows
    have; `dropped` those of the operand of which a window has one element, `batching` those that go
    along with the axes `index_batching` of the indices; `indexed` those that an index says.
    """

    windows: list[int]
    dropped: list[int]
    batching: list[int]
    index_batching: list[int]
    indexed: list[int]
    index_axis: int

    @property
    def outside(self) -> set[int]:
        """Axes of the operand that windows do not have."""
        return {*self.dropped, *self.batching}


def tuples_of(indices: ir.Value, roles: Roles) -> tuple[ir.Value, list[int]]:
    """Tuples of indices as i64, along the last axis; the batching axes, counted without it."""
    axis = roles.index_axis
    if axis == rank_of(indices):
        indices = expand_dims(indices, [axis])
    order = [i for i in range(rank_of(indices)) if i != axis]
    batching = [order.index(i) for i in roles.index_batching]
    return permute(as_index(indices), [*order, axis]), batching


def index_lines(
    tuples: ir.Value,
    batching: Sequence[int],
    roles: Roles,
    sizes: Sequence[Expr],
    limits: Sequence[Expr] | None,
) -> list[ir.Value]:
    """For each axis of the operand the indices of all windows' elements, of dims that broadcast.

    `sizes` are those of a window along each axis. Where there are `limits`, what begins above them
    or below 0 begins there.
    """
    batch = rank_of(tuples) - 1
    rank = batch + len(roles.windows)
    batch_axes = [i for i in range(rank) if i not in roles.windows]
    inside = [axis for axis in range(len(sizes)) if axis not in roles.outside]
    i64 = ir.IntegerType.get_signless(64)
    lines = []
    for axis, size in enumerate(sizes):
        parts = []
        if axis in roles.indexed:
            at = _element(tuples, roles.indexed.index(axis))
            if limits is not None:
                at = maximum(minimum(at, reshape(symbol(limits[axis], i64), [])), 0)
            parts.append(expand_dims(at, roles.windows))
        if axis in roles.batching:
            own = batching[roles.batching.index(axis)]
            ramp = arange(0, dims_of(tuples)[own], 1, i64)
            parts.append(expand_dims(ramp, _others(rank, batch_axes[own])))
        if axis in inside and size != const(1):
            ramp = arange(0, size, 1, i64)
            parts.append(expand_dims(ramp, _others(rank, roles.windows[inside.index(axis)])))
        line = parts[0] if parts else reshape(scalar(0, i64), [1] * rank)
        for part in parts[1:]:
            line = add(line, part)
        lines.append(line)
    return lines


def _element(tuples: ir.Value, index: int) -> ir.Value:
    """One element of each tuple."""
    last = rank_of(tuples) - 1
    bounds = {"begin": [index], "end": [index + 1], "strides": [1]}
    part = emit(graph.StridedSliceOp, tuples, axes=[last], **bounds)
    return reshape(part, dims_of(tuples)[:-1])


def _others(rank: int, axis: int) -> list[int]:
    return [i for i in range(rank) if i != axis]


@operator("gather", by_part=True)
def gather(node: Node) -> ir.Value:
    """Slices of constant extents that begin where tuples of indices say, within the operand."""
    return _gathered(node, [const(size) for size in node.integers("slice_sizes")])


@operator("dynamic_gather", by_part=True)
def dynamic_gather(node: Node) -> ir.Value:
    """Slices that begin where tuples of indices say; an operand has their extents."""
    return _gathered(node, node.exprs(2, "slice sizes"))


def _gathered(node: Node, sizes: Sequence[Expr]) -> ir.Value:
    axes = node.axes_of("gather")
    roles = Roles(
        axes.list("offset_dims"),
        axes.list("collapsed_slice_dims"),
        axes.list("operand_batching_dims"),
        axes.list("start_indices_batching_dims"),
        axes.list("start_index_map"),
        axes.integer("index_vector_dim"),
    )
    x, dims = node.tensor(0), node.dims()
    tuples, batching = tuples_of(node.tensor(1), roles)
    batch = dims_of(tuples)[:-1]
    if not dims:
        return reshape(x, []) if not batch else emit(graph.BroadcastToOp, x, shape=list(batch))
    partial = [i for i, (size, dim) in enumerate(zip(sizes, dims)) if size != dim]
    outside = {*partial, *roles.outside}
    if len(roles.indexed) == 1 and not roles.batching and outside <= set(roles.indexed):
        (axis,) = roles.indexed
        if sizes[axis] == const(1):
            return _along(x, _element(tuples, 0), axis, roles)
    limits = [dim - size for dim, size in zip(dims, sizes)]
    if any(limit.value is not None and limit.value < 0 for limit in limits):
        raise ModelError(f"takes slices of {list(map(str, sizes))} from {list(map(str, dims))}")
    lines = index_lines(tuples, batching, roles, sizes, limits)
    taken = graph.IndexTensorOp.build(x, *lines, axes=list(range(len(dims))))
    result = taken.operation.results[0]
    inside = [size for axis, size in enumerate(sizes) if axis not in roles.outside]
    target, rest = list(batch), iter(inside)
    for position in sorted(roles.windows):
        target.insert(position, next(rest))
    if dims_of(result) == tuple(target):
        return result
    return emit(graph.BroadcastToOp, result, shape=target)


def _along(x: ir.Value, index: ir.Value, axis: int, roles: Roles) -> ir.Value:
    """Slices of one element along an axis, whole ones along others."""
    taken, batch = emit(graph.TakeOp, x, index, axis=axis), rank_of(index)
    rest = [i for i in range(rank_of(x)) if i != axis]
    positions = {i: (i if i < axis else i + batch - 1) for i in rest}
    if axis not in roles.dropped:
        taken = expand_dims(taken, [rank_of(taken)])
        positions[axis] = rank_of(taken) - 1
    inside = [i for i in range(rank_of(x)) if i not in roles.dropped]
    of_windows = dict(zip(sorted(roles.windows), (positions[i] for i in inside), strict=True))
    of_batch = iter(range(axis, axis + batch))
    return permute(
        taken,
        [of_windows[i] if i in of_windows else next(of_batch) for i in range(rank_of(taken))],
    )
