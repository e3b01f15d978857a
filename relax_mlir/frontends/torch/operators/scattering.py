"""Elements written by indices: scatter in all forms."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    add,
    astype,
    broadcast_to,
    dims_of,
    element_of,
    emit,
    expand_dims,
    greatest,
    is_integer,
    least,
    permute,
    reshape,
    scalar,
    where,
)
from relax_mlir.dialects import graph
from relax_mlir.errors import ModelError
from relax_mlir.symbolic import product

from ..adapters import by_parts_of
from ..call import Call
from ..registry import operator
from .indexing import indexed, is_mask
from .shaping import as_strided, diagonal_of, from_front, part_of


def _put(x: ir.Value, values: ir.Value, *indices: ir.Value, count: int, reduction: str) -> ir.Value:
    """Elements written by indices of the first axes."""
    settings = {"axes": list(range(count)), "reduction": reduction}
    return graph.IndexPutOp.build(x, values, *indices, **settings).operation.results[0]


@operator("index_put", "_unsafe_index_put", pairs=by_parts_of(0, 2))
def index_put(
    call: Call,
    x: ir.Value,
    indices: Sequence[ir.Value | None],
    values: ir.Value,
    accumulate: bool = False,
) -> ir.Value:
    """A tensor with other elements at indices."""
    mask = indices[0]
    is_alone = len(indices) == 1 and mask is not None and is_mask(mask)
    if is_alone and not accumulate and not call.rank(values):
        mask = call.tensor(mask, ir.IntegerType.get_signless(1))
        return where(expand_dims(mask, range(call.rank(mask), call.rank(x))), values, x)
    axes, own = indexed(call, x, indices)
    dims = own[0]
    for each in own[1:]:
        dims = add(dims, each)
    # Adjacent axes are replaced where they are, others in front of all.
    rest = [axis for axis in range(call.rank(x)) if axis not in axes]
    is_adjacent = axes == list(range(axes[0], axes[0] + len(axes)))
    first, new = axes[0] if is_adjacent else 0, call.rank(dims)
    left = [dims_of(x)[axis] for axis in rest]
    values = call.tensor(values, element_of(x))
    values = broadcast_to(values, [*left[:first], *dims_of(dims), *left[first:]])
    values = permute(
        values, [*range(first, first + new), *range(first), *range(first + new, new + len(rest))]
    )
    order = [*axes, *rest]
    kind = "add" if accumulate else "none"
    result = _put(permute(x, order), values, *own, count=len(axes), reduction=kind)
    return permute(result, [order.index(axis) for axis in range(len(order))])


REDUCTIONS = {
    "add": "add",
    "multiply": "mul",
    "sum": "add",
    "mean": "add",
    "prod": "mul",
    "amax": "max",
    "amin": "min",
}
Write: TypeAlias = "Callable[[ir.Value, ir.Value, str], ir.Value]"
"""Writes updates into a tensor, by a reduction."""


def _reduced(
    x: ir.Value, updates: ir.Value, reduce: str, include_self: bool, write: Write
) -> ir.Value:
    """A tensor with reductions of updates, of which its own elements may be one.

    Those that are not counted keep what they are where nothing is written.
    """
    if reduce not in REDUCTIONS:
        raise ModelError(f"reduces by '{reduce}'; supported are {', '.join(REDUCTIONS)}")
    element, kind = element_of(x), REDUCTIONS[reduce]
    updates = astype(updates, element)
    if not include_self:
        i1 = ir.IntegerType.get_signless(1)
        nowhere = broadcast_to(scalar(0, i1), dims_of(x))
        written = write(nowhere, broadcast_to(scalar(1, i1), dims_of(updates)), "none")
        start = broadcast_to(scalar(_NEUTRAL[kind](element), element), dims_of(x))
        x = where(written, start, x)
    result = write(x, updates, kind)
    if reduce != "mean":
        return result
    first = scalar(1 if include_self else 0, element)
    ones = broadcast_to(scalar(1, element), dims_of(updates))
    counts = write(broadcast_to(first, dims_of(x)), ones, "add")
    counts = emit(graph.MaximumOp, counts, scalar(1, element))
    return emit(graph.FloorDivideOp if is_integer(element) else graph.DivideOp, result, counts)


_NEUTRAL: dict[str, Callable[[ir.Type], float]] = {
    "add": lambda element: 0,
    "mul": lambda element: 1,
    "max": least,
    "min": greatest,
}


def _scattered(
    call: Call, x: ir.Value, dim: int, index: ir.Value, source: Any, reduction: str
) -> ir.Value:
    axis, element = call.axis(dim, call.rank(x)), element_of(x)
    if not call.rank(x):
        x, index = reshape(x, [1]), reshape(index, [1])
    updates = call.tensor(source, element)
    if not isinstance(source, ir.Value):
        updates = broadcast_to(updates, dims_of(index))
    elif not call.rank(updates):
        updates = reshape(updates, dims_of(index))
    dims = dims_of(index)
    for i, dim_ in enumerate(dims):
        if dims_of(updates)[i] != dim_:
            updates = emit(
                graph.StridedSliceOp, updates, axes=[i], begin=[0], end=[dim_], strides=[1]
            )
    result = emit(graph.ScatterElementsOp, x, index, updates, axis=axis, reduction=reduction)
    return reshape(result, call.dims)


@operator("scatter.src", "scatter.value", pairs=by_parts_of(0, 3))
def scatter(call: Call, x: ir.Value, dim: int, index: ir.Value, source: Any) -> ir.Value:
    """A tensor with other elements along an axis."""
    return _scattered(call, x, dim, index, source, "none")


@operator("scatter.reduce", "scatter.value_reduce")
def scatter_with(
    call: Call, x: ir.Value, dim: int, index: ir.Value, source: Any, reduce: str = "add"
) -> ir.Value:
    """A tensor with sums or products along an axis."""
    return _scattered(call, x, dim, index, source, REDUCTIONS[reduce])


@operator("scatter_add", pairs=by_parts_of(0, 3))
def scatter_add(call: Call, x: ir.Value, dim: int, index: ir.Value, source: ir.Value) -> ir.Value:
    """A tensor with sums along an axis."""
    return _scattered(call, x, dim, index, source, "add")


@operator("scatter_reduce.two")
def scatter_reduce(
    call: Call,
    x: ir.Value,
    dim: int,
    index: ir.Value,
    source: ir.Value,
    reduce: str,
    include_self: bool = True,
) -> ir.Value:
    """A tensor with reductions along an axis."""

    def write(base: ir.Value, updates: ir.Value, reduction: str) -> ir.Value:
        return _scattered(call, base, dim, index, updates, reduction)

    return _reduced(x, source, reduce, include_self, write)


def _slices(call: Call, dim: int, index: ir.Value, rank: int) -> Write:
    """Writes slices of an axis by their indices."""
    axis = call.axis(dim, rank)
    order = [axis, *(i for i in range(rank) if i != axis)]
    back = [order.index(i) for i in range(rank)]

    def write(base: ir.Value, updates: ir.Value, reduction: str) -> ir.Value:
        if not rank:
            line = _put(
                reshape(base, [1]),
                reshape(updates, [product(dims_of(updates))]),
                index,
                count=1,
                reduction=reduction,
            )
            return reshape(line, [])
        result = _put(
            permute(base, order), permute(updates, order), index, count=1, reduction=reduction
        )
        return permute(result, back)

    return write


@operator("index_add")
def index_add(
    call: Call, x: ir.Value, dim: int, index: ir.Value, source: ir.Value, alpha: Any = 1
) -> ir.Value:
    """A tensor with sums of slices."""
    if alpha != 1:
        source = d.emit.multiply(source, call.tensor(alpha, element_of(x)))
    return _slices(call, dim, index, call.rank(x))(x, source, "add")


@operator("index_reduce")
def index_reduce(
    call: Call,
    x: ir.Value,
    dim: int,
    index: ir.Value,
    source: ir.Value,
    reduce: str,
    include_self: bool = True,
) -> ir.Value:
    """A tensor with reductions of slices."""
    write = _slices(call, dim, index, call.rank(x))
    return _reduced(x, source, reduce, include_self, write)


@operator("put", pairs=by_parts_of(0, 2))
def put(
    call: Call, x: ir.Value, index: ir.Value, source: ir.Value, accumulate: bool = False
) -> ir.Value:
    """A tensor with other elements at indices of it as a line."""
    count = product(dims_of(x))
    line, updates, at = (reshape(each, [product(dims_of(each))]) for each in (x, source, index))
    reduction = "add" if accumulate else "none"
    return reshape(
        _put(line, updates, from_front(at, count), count=1, reduction=reduction), dims_of(x)
    )


@operator("select_scatter", pairs=by_parts_of(0, 1))
def select_scatter(call: Call, x: ir.Value, source: ir.Value, dim: int, index: Any) -> ir.Value:
    """A tensor with another slice of an axis."""
    axis = call.axis(dim, call.rank(x))
    at = call.position(index, dims_of(x)[axis])
    updates = expand_dims(astype(source, element_of(x)), [axis])
    return emit(
        graph.SliceScatterOp, x, updates, axes=[axis], begin=[at], end=[at + 1], strides=[1]
    )


@operator("slice_scatter", pairs=by_parts_of(0, 1))
def slice_scatter(
    call: Call,
    x: ir.Value,
    source: ir.Value,
    dim: int = 0,
    start: Any = None,
    end: Any = None,
    step: int = 1,
) -> ir.Value:
    """A tensor with another part of an axis."""
    axis = call.axis(dim, call.rank(x))
    extent = dims_of(x)[axis]
    begin, stop = part_of(call, start, end, extent)
    return emit(
        graph.SliceScatterOp,
        x,
        astype(source, element_of(x)),
        axes=[axis],
        begin=[begin],
        end=[stop],
        strides=[step],
    )


@operator("masked_scatter", pairs=by_parts_of(0, 2))
def masked_scatter(call: Call, x: ir.Value, mask: ir.Value, source: ir.Value) -> ir.Value:
    """A tensor with other elements where a mask is true, in order."""
    return d.masked_scatter(broadcast_to(x, call.dims), mask, source)


def _scattered_to(call: Call, x: ir.Value, source: ir.Value, view: Any) -> ir.Value:
    """A tensor with other elements where a view, which indices go through, has its own."""
    i64 = ir.IntegerType.get_signless(64)
    count = product(dims_of(x))
    positions = reshape(d.emit.arange(0, count, 1, i64), dims_of(x))
    index = view(positions)
    index = reshape(index, [product(dims_of(index))])
    updates = reshape(astype(source, element_of(x)), dims_of(index))
    line = _put(reshape(x, [count]), updates, index, count=1, reduction="none")
    return reshape(line, dims_of(x))


@operator("diagonal_scatter", pairs=by_parts_of(0, 1))
def diagonal_scatter(
    call: Call, x: ir.Value, source: ir.Value, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> ir.Value:
    """A tensor with other diagonals."""
    count = dims_of(source)[-1]
    view = lambda positions: diagonal_of(call, positions, offset, dim1, dim2, count)  # noqa: E731
    return _scattered_to(call, x, source, view)


@operator("as_strided_scatter", pairs=by_parts_of(0, 1))
def as_strided_scatter(
    call: Call,
    x: ir.Value,
    source: ir.Value,
    sizes: Sequence[Any],
    strides: Sequence[Any],
    offset: Any = None,
) -> ir.Value:
    """A tensor with other elements at offsets."""
    view = lambda positions: as_strided(call, positions, sizes, strides, offset)  # noqa: E731
    return _scattered_to(call, x, source, view)
