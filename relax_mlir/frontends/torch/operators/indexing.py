"""Elements by indices: gather and scatter in all forms."""

from collections.abc import Sequence
from typing import Any

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
    permute,
    reshape,
    where,
)
from relax_mlir.dialects import graph
from relax_mlir.errors import ModelError
from relax_mlir.symbolic import product

from ..call import Call
from ..registry import operator
from .shaping import as_strided, diagonal_of, from_front, part_of


def _taken(x: ir.Value, *indices: ir.Value, count: int) -> ir.Value:
    """Elements by indices of the first axes."""
    return graph.IndexTensorOp.build(x, *indices, axes=list(range(count))).operation.results[0]


def _put(x: ir.Value, values: ir.Value, *indices: ir.Value, count: int, reduction: str) -> ir.Value:
    """Elements written by indices of the first axes."""
    settings = {"axes": list(range(count)), "reduction": reduction}
    return graph.IndexPutOp.build(x, values, *indices, **settings).operation.results[0]


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


@operator("index_put", "_unsafe_index_put")
def index_put(
    call: Call,
    x: ir.Value,
    indices: Sequence[ir.Value | None],
    values: ir.Value,
    accumulate: bool = False,
) -> ir.Value:
    """A tensor with other elements at indices."""
    given = [(axis, each) for axis, each in enumerate(indices) if each is not None]
    axes = [axis for axis, _ in given]
    if any(str(element_of(each)) == "i1" for _, each in given):
        if len(given) == 1 and axes == [0] and not accumulate and not call.rank(values):
            mask = given[0][1]
            more = call.rank(x) - call.rank(mask)
            return where(
                expand_dims(mask, range(call.rank(mask), call.rank(mask) + more)), values, x
            )
        raise ModelError("has a mask next to other indices, which is not supported")
    if axes != list(range(len(axes))):
        raise ModelError("has indices of axes that are not the first, which is not supported")
    own = [from_front(each, dims_of(x)[axis]) for axis, each in given]
    dims = own[0]
    for each in own[1:]:
        dims = add(dims, each)
    shape = [*dims_of(dims), *dims_of(x)[len(axes) :]]
    values = broadcast_to(call.tensor(values, element_of(x)), shape)
    kind = "add" if accumulate else "none"
    return _put(x, values, *own, count=len(axes), reduction=kind)


REDUCTIONS = {
    "add": "add",
    "multiply": "mul",
    "sum": "add",
    "prod": "mul",
    "amax": "max",
    "amin": "min",
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


@operator("scatter.src", "scatter.value")
def scatter(call: Call, x: ir.Value, dim: int, index: ir.Value, source: Any) -> ir.Value:
    """A tensor with other elements along an axis."""
    return _scattered(call, x, dim, index, source, "none")


@operator("scatter.reduce", "scatter.value_reduce")
def scatter_with(
    call: Call, x: ir.Value, dim: int, index: ir.Value, source: Any, reduce: str = "add"
) -> ir.Value:
    """A tensor with sums or products along an axis."""
    return _scattered(call, x, dim, index, source, REDUCTIONS[reduce])


@operator("scatter_add")
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
    if reduce not in REDUCTIONS or not include_self:
        raise ModelError(f"reduces by '{reduce}' without the tensor itself, which is not supported")
    return _scattered(call, x, dim, index, source, REDUCTIONS[reduce])


@operator("index_add")
def index_add(
    call: Call, x: ir.Value, dim: int, index: ir.Value, source: ir.Value, alpha: Any = 1
) -> ir.Value:
    """A tensor with sums of slices."""
    axis = call.axis(dim, call.rank(x))
    order = [axis, *(i for i in range(call.rank(x)) if i != axis)]
    back = [order.index(i) for i in range(call.rank(x))]
    if alpha != 1:
        source = d.emit.multiply(source, call.tensor(alpha, element_of(x)))
    result = _put(permute(x, order), permute(source, order), index, count=1, reduction="add")
    return permute(result, back)


@operator("select_scatter")
def select_scatter(call: Call, x: ir.Value, source: ir.Value, dim: int, index: Any) -> ir.Value:
    """A tensor with another slice of an axis."""
    axis = call.axis(dim, call.rank(x))
    at = call.position(index, dims_of(x)[axis])
    updates = expand_dims(astype(source, element_of(x)), [axis])
    return emit(
        graph.SliceScatterOp, x, updates, axes=[axis], begin=[at], end=[at + 1], strides=[1]
    )


@operator("slice_scatter")
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


@operator("nonzero")
def nonzero(call: Call, x: ir.Value) -> ir.Value:
    """The indices of elements that are not 0, a row for each."""
    return d.argwhere(x)


@operator("masked_select")
def masked_select(call: Call, x: ir.Value, mask: ir.Value) -> ir.Value:
    """The elements at which a mask is true."""
    return d.masked_select(x, mask)


@operator("masked_scatter")
def masked_scatter(call: Call, x: ir.Value, mask: ir.Value, source: ir.Value) -> ir.Value:
    """A tensor with other elements where a mask is true, in order."""
    return d.masked_scatter(x, mask, source)


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


@operator("diagonal_scatter")
def diagonal_scatter(
    call: Call, x: ir.Value, source: ir.Value, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> ir.Value:
    """A tensor with other diagonals."""
    count = dims_of(source)[-1]
    view = lambda positions: diagonal_of(call, positions, offset, dim1, dim2, count)  # noqa: E731
    return _scattered_to(call, x, source, view)


@operator("as_strided_scatter")
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
