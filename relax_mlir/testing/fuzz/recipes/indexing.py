"""Recipes of operators that take tensors of indices; what is out of range is part of the test."""

from collections.abc import Sequence
from typing import Any

from relax_mlir.dialects import graph
from relax_mlir.dialects.graph.gather import joint_position
from relax_mlir.symbolic import const

from ..builder import INTEGERS, Builder, Dims, Value, size_of
from .manipulate import slices
from .table import recipe

MANY = 1 << 30
UPDATES = 4096
"""Elements that a scatter writes, about: the interpreter goes through them one by one."""


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


def index_tensors(b: Builder, x: Value, most: int = MANY) -> tuple[list[int], list[Value]]:
    """Some axes, and indices for each: about `most` positions, or fewer."""
    axes = sorted(b.random.sample(range(x.rank), b.random.randint(1, x.rank)))
    joint = _few_dims(b, most)
    indices: list[Value] = []
    for _ in axes:
        dims = [const(1) if b.chance(0.2) else dim for dim in joint]
        indices.append(_indices(b, dims[b.random.randint(0, len(dims)) :] if indices else joint))
    return axes, indices


def _few_dims(b: Builder, most: int = MANY) -> Dims:
    dims = b.pick_dims(b.random.choice([0, 1, 1, 1, 2]))
    if size_of(dims) <= most:
        return dims
    return tuple(const(b.few("narrow", [1, 2, 3], 1)) for _ in dims)


@recipe("indexing", graph.ScatterElementsOp)
def scatter_elements(b: Builder, op: Any) -> None:
    """To a part of the other axes."""
    x = _target(b)
    axis = b.random.randrange(x.rank)
    dims = [const(1) if b.chance(0.2) and d.value != 0 else d for d in x.dims]
    dims[axis] = b.pick_dim()
    updates = _updates(b, x, dims)
    _scatter(b, op, [x, _indices(b, dims), updates], updates, dims, axis=axis)


@recipe("indexing", graph.ScatterNdOp)
def scatter_nd(b: Builder, op: Any) -> None:
    """By one to all dims."""
    x = _target(b)
    count = b.random.randint(1, x.rank)
    lead = _few_dims(b, UPDATES // size_of(x.dims))
    updates = _updates(b, x, [*lead, *x.dims[count:]])
    _scatter(b, op, [x, _indices(b, [*lead, const(count)]), updates], updates, lead)


@recipe("indexing", graph.IndexPutOp)
def index_put(b: Builder, op: Any) -> None:
    """Values with all dims of what is indexed, or with none."""
    x = _target(b)
    axes, indices = index_tensors(b, x, UPDATES // size_of(x.dims))
    joint, first = indices[0].dims, joint_position(axes)
    kept = [dim for axis, dim in enumerate(x.dims) if axis not in axes]
    dims = [*kept[:first], *joint, *kept[first:]]
    values = _updates(b, x, dims[b.random.choice([0, 0, len(dims)]) :])
    _scatter(b, op, [x, values, *indices], values, joint, axes=axes)


@recipe("indexing", graph.SliceScatterOp)
def slice_scatter(b: Builder, op: Any) -> None:
    """To one axis, or two."""
    x = _target(b)
    axes, begin, end, strides = slices(b, x)
    bounds: dict[str, Any] = {"axes": axes, "begin": begin, "end": end, "strides": strides}
    part = graph.StridedSliceOp.infer_return_type(x.annotation, **bounds)
    updates = _updates(b, x, graph.exact_dims(part.dims))
    b.emit(op, [x, updates], **bounds)


def _target(b: Builder) -> Value:
    """What has few elements, so that there is room for updates."""
    found = b.pick(lambda v: 1 <= v.rank <= 3 and 0 < size_of(v.dims) <= UPDATES)
    return found or b.argument(b.pick_dims(b.random.choice([1, 1, 2])))


def _updates(b: Builder, x: Value, dims: Sequence[Any]) -> Value:
    found = b.pick(lambda v: v.element == x.element and v.dims == tuple(dims))
    return found or b.argument(dims, x.element)


def _scatter(
    b: Builder,
    op: Any,
    operands: list[Value],
    updates: Value,
    steps: Sequence[Any],
    **attributes: Any,
) -> None:
    """Emits the op with a reduction that its elements have; products stay small."""
    reduction = b.random.choice(["none", "none", "add", "max", "min", "mul"])
    x = operands[0]
    if x.element == "i1":
        reduction = "none"
    if reduction == "mul" and x.is_float:
        reduction = "max"
    bound = max(x.bound, updates.bound)
    exact = x.exact and updates.exact and (reduction != "add" or not x.is_float)
    if reduction == "add" and x.is_float:
        bound = x.bound + updates.bound * size_of(steps)
    b.emit(op, operands, exact, bound, reduction=reduction, **attributes)


@recipe("indexing", graph.OneHotOp)
def one_hot(b: Builder, op: Any) -> None:
    """On any axis."""
    indices = b.pick(lambda v: v.element in INTEGERS and v.exact and v.rank <= 2)
    indices = indices or b.argument(_few_dims(b), "i64")
    values = [b.argument([], b.element) for _ in range(2)]
    depth, axis = [b.pick_dim()], b.random.randint(0, indices.rank)
    b.emit(op, [indices, *values], depth=depth, axis=axis)


@recipe("indexing", graph.DynamicSliceOp, graph.DynamicUpdateSliceOp)
def part(b: Builder, op: Any) -> None:
    """From anywhere; what would leave the tensor begins elsewhere."""
    x = _target(b)
    sizes = [dim if b.chance(0.5) else dim // 2 for dim in x.dims]
    starts = b.argument([x.rank], b.random.choice(["i64", "i32"]))
    if op is graph.DynamicSliceOp:
        b.emit(op, [x, starts], x.exact, x.bound, sizes=sizes)
        return
    updates = _updates(b, x, sizes)
    b.emit(op, [x, updates, starts], x.exact and updates.exact, max(x.bound, updates.bound))
