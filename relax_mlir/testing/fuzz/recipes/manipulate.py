"""Recipes of operators that move elements, select them, or make tensors."""

from itertools import pairwise
from typing import Any

from relax_mlir.bindings import arith, ir
from relax_mlir.dialects import graph
from relax_mlir.symbolic import Expr, const

from ..builder import ELEMENTS, INTEGERS, Builder, Value
from .table import recipe


def _ranked(b: Builder, least: int, most: int = 4) -> Value:
    return b.take(
        lambda v: least <= v.rank <= most, ranks=[max(least, 1), max(least, 2), min(most, 3)]
    )


@recipe("movement", graph.PermuteDimsOp)
def permute(b: Builder, op: Any) -> None:
    """Any order."""
    x = _ranked(b, 2)
    b.emit(op, [x], axes=b.random.sample(range(x.rank), x.rank))


@recipe("movement", graph.ReshapeOp)
def reshape(b: Builder, op: Any) -> None:
    """Joins neighbours, splits a dim, or keeps the number of elements in some other way."""
    x = _ranked(b, 1)
    dims = list(x.dims)
    kind = b.random.choice(["join", "split", "turn", "unit", "flat"])
    if kind == "join" and len(dims) > 1:
        at = b.random.randrange(len(dims) - 1)
        dims[at : at + 2] = [dims[at] * dims[at + 1]]
    elif kind == "split":
        dims = _split_dims(b, dims)
    elif kind == "turn":
        dims = [dims[-1], *dims[:-1]]
    elif kind == "unit":
        dims.insert(b.random.randint(0, len(dims)), const(1))
    elif kind == "flat":
        total = const(1)
        for dim in dims:
            total = total * dim
        dims = [total]
    b.emit(op, [x], shape=dims)


def _split_dims(b: Builder, dims: list[Expr]) -> list[Expr]:
    places = [i for i, dim in enumerate(dims) if dim.value and dim.value % 2 == 0]
    if not places:
        return dims
    at = b.random.choice(places)
    size = dims[at].value
    assert size is not None
    factor = b.random.choice([f for f in range(2, size + 1) if size % f == 0])
    return [*dims[:at], const(factor), const(size // factor), *dims[at + 1 :]]


@recipe("movement", graph.ExpandDimsOp)
def expand(b: Builder, op: Any) -> None:
    """One new dim, or two."""
    x = _ranked(b, 0, 3)
    axes = sorted(b.random.sample(range(x.rank + 1), b.random.randint(1, min(2, x.rank + 1))))
    b.emit(op, [x], axes=axes)


@recipe("movement", graph.SqueezeOp)
def squeeze(b: Builder, op: Any) -> None:
    """The dims of 1."""
    x = b.pick(lambda v: any(dim.value == 1 for dim in v.dims))
    if x is None:
        x = b.argument([1, *b.pick_dims(2)])
    units = [axis for axis, dim in enumerate(x.dims) if dim.value == 1]
    b.emit(op, [x], axes=b.random.sample(units, b.random.randint(1, len(units))))


@recipe("movement", graph.BroadcastToOp)
def broadcast_to(b: Builder, op: Any) -> None:
    """Leading dims, and what is 1."""
    x = _ranked(b, 0, 3)
    dims = [b.pick_dim() if dim.value == 1 and b.chance(0.7) else dim for dim in x.dims]
    lead = [b.pick_dim()] if len(dims) < 3 and b.chance(0.6) else []
    b.emit(op, [x], shape=[*lead, *dims])


@recipe("movement", graph.ConcatOp)
def concat(b: Builder, op: Any) -> None:
    """Two or three tensors that agree but for one axis."""
    x = _ranked(b, 1)
    axis = b.random.randrange(x.rank)

    def joins(v: Value) -> bool:
        same = v.element == x.element and v.rank == x.rank
        return same and all(p == q for i, (p, q) in enumerate(zip(v.dims, x.dims)) if i != axis)

    parts = [x]
    for _ in range(b.random.randint(1, 2)):
        other = b.pick(joins) if b.chance(0.7) else None
        dims = [b.maybe_other(dim) for dim in x.dims]
        dims[axis] = b.pick_dim()
        parts.append(other or b.argument(dims, x.element))
    b.random.shuffle(parts)
    b.emit(op, parts, axis=b.random.choice([axis, axis - x.rank]))


@recipe("movement", graph.SplitOp)
def split(b: Builder, op: Any) -> None:
    """Two or three pieces, some of them empty."""
    x = _ranked(b, 1)
    axis = b.random.randrange(x.rank)
    dim = x.dims[axis]
    if dim.value is not None:
        cuts = sorted(b.random.randint(0, dim.value) for _ in range(b.random.randint(1, 2)))
        ends = [0, *cuts, dim.value]
        pieces = [const(end - begin) for begin, end in pairwise(ends)]
    else:
        half, part = dim // 2, dim // 3
        pieces = b.random.choice(
            [[half, dim - half], [part, dim - half - part, half], [dim, const(0)], [const(0), dim]]
        )
    b.emit_many(op, [x], sizes=pieces, axis=axis)


@recipe("movement", graph.StridedSliceOp)
def strided_slice(b: Builder, op: Any) -> None:
    """Some axes, from anywhere to anywhere that is there, with strides."""
    x = _ranked(b, 1)
    axes, begins, ends, strides = slices(b, x)
    b.emit(op, [x], axes=axes, begin=begins, end=ends, strides=strides)


def slices(b: Builder, x: Value) -> tuple[list[int], list[Expr], list[Expr], list[int]]:
    """Some axes, where slices of them begin and end, and their strides."""
    axes = b.random.sample(range(x.rank), b.random.randint(1, min(2, x.rank)))
    bounds = [_bounds(b, x.dims[axis]) for axis in axes]
    strides = [b.random.choice([1, 1, 1, 2, 3, 5]) for _ in axes]
    return axes, [first for first, _ in bounds], [last for _, last in bounds], strides


def _bounds(b: Builder, dim: Expr) -> tuple[Expr, Expr]:
    if dim.value is not None:
        first = b.random.randint(0, dim.value)
        return const(first), const(b.random.randint(first, dim.value))
    half = dim // 2
    return b.random.choice([(const(0), dim), (const(0), half), (half, dim), (dim // 3, dim)])


@recipe("movement", graph.TakeOp)
def take(b: Builder, op: Any) -> None:
    """By indices that are an argument, constants, or were computed; clamped."""
    x = b.take(lambda v: 1 <= v.rank <= 3 and all(dim.value != 0 for dim in v.dims))
    axis = b.random.randrange(x.rank)
    indices = b.pick(lambda v: v.element in INTEGERS and v.exact and v.rank <= 2)
    if indices is None or b.chance(0.4):
        element = b.random.choice(["i64", "i32"])
        dims = b.pick_dims(b.random.choice([0, 1, 1, 2]))
        indices = _constant_indices(b) if b.chance(0.3) else b.argument(dims, element)
    b.emit(op, [x, indices], exact=x.exact, bound=x.bound, axis=axis)


def _constant_indices(b: Builder) -> Value:
    numbers = [b.random.randint(-3, 20) for _ in range(b.random.randint(1, 9))]
    kind = ir.RankedTensorType.get([len(numbers)], ir.IntegerType.get_signless(64))
    attributes = [ir.IntegerAttr.get(kind.element_type, number) for number in numbers]
    dense = ir.DenseElementsAttr.get(attributes, kind)
    return b.add(arith.ConstantOp(kind, dense).result, exact=True, bound=20)


@recipe("movement", graph.TrilOp, graph.TriuOp)
def triangle(b: Builder, op: Any) -> None:
    """Any diagonal."""
    b.emit(op, [_ranked(b, 2)], k=b.random.randint(-5, 5))


@recipe("create", graph.FullOp)
def full(b: Builder, op: Any) -> None:
    """Of a constant or an argument of rank 0."""
    kind = b.random.choice([b.element, *ELEMENTS])
    constant = b.chance(0.5) and kind != "i1"
    value = b.number(b.random.randint(-9, 9), kind) if constant else b.argument([], kind)
    b.emit(op, [value], shape=b.pick_dims(b.random.randint(0, 3)))


@recipe("create", graph.PhiloxOp)
def philox(b: Builder, op: Any) -> None:
    """Of any state."""
    state = b.pick(lambda v: v.element == "i64" and v.dims == (const(2),))
    state = state or b.argument([2], "i64")
    b.emit_many(op, [state], True, 2.0**31, blocks=[b.pick_dim()])


@recipe("create", graph.ArangeOp)
def arange(b: Builder, op: Any) -> None:
    """Up to a dim."""
    kind = b.random.choice([b.element if b.element != "i1" else "i64", "i64", "f32"])
    start, step = b.random.randint(-20, 5), b.random.randint(1, 4)
    stop = b.pick_dim()
    b.emit(op, [], exact=True, bound=100.0, bounds=[start, stop, step], dtype=ir.Type.parse(kind))


@recipe("movement", graph.PadOp)
def pad(b: Builder, op: Any) -> None:
    """By constants, or by what is there; negative numbers remove."""
    x = _ranked(b, 1, 3)
    mode = b.random.choice(["constant", "constant", "edge", "reflect", "wrap"])
    most = [min(dim.value, 4) if dim.value is not None else 1 for dim in x.dims]
    most = [max(n - 1, 0) if mode == "reflect" else n for n in most]
    if mode != "constant":
        widths = [[b.random.randint(-(n // 2), n) for n in most] for _ in range(2)]
        b.emit(op, [x], low=widths[0], high=widths[1], interior=[0] * x.rank, mode=mode)
        return
    low, high = ([const(b.random.randint(-(n // 2), 3)) for n in most] for _ in range(2))
    if b.chance(0.2):
        high[b.random.randrange(x.rank)] = x.dims[0]
    interior = [b.random.choice([0, 0, 0, 1, 2]) for _ in most]
    if x.rank == 3:
        interior = [0] * 3
    value = b.argument([], x.element)
    b.emit(op, [x, value], low=low, high=high, interior=interior, mode=mode)


@recipe("movement", graph.FlipOp, graph.RollOp)
def turn(b: Builder, op: Any) -> None:
    """Along some axes."""
    x = _ranked(b, 1)
    axes = b.random.sample(range(x.rank), b.random.randint(1, x.rank))
    attributes: dict[str, Any] = {"axes": axes}
    if op is graph.RollOp:
        attributes["shifts"] = [b.random.choice([-1, 1, 3, -70, 100]) for _ in axes]
    b.emit(op, [x], **attributes)


@recipe("movement", graph.TileOp, graph.RepeatOp)
def repeat(b: Builder, op: Any) -> None:
    """A few times, or none."""
    x = _ranked(b, 1, 2)
    if op is graph.RepeatOp:
        count = b.random.choice([0, 2, 2, 3])
        b.emit(op, [x], repeats=[count], axis=b.random.randrange(x.rank))
        return
    counts = [b.random.choice([1, 1, 2, 3]) for _ in range(b.random.choice([x.rank, 3]))]
    b.emit(op, [x], repeats=counts)


@recipe("movement", graph.StackOp)
def stack(b: Builder, op: Any) -> None:
    """One to three tensors."""
    x = _ranked(b, 0, 3)
    parts = [x]
    for _ in range(b.random.randint(0, 2)):
        other = b.pick(lambda v: v.dims == x.dims and v.element == x.element)
        parts.append(other or b.argument(x.dims, x.element))
    b.emit(op, parts, axis=b.random.randint(-x.rank - 1, x.rank))


@recipe("create", graph.EyeOp)
def eye(b: Builder, op: Any) -> None:
    """Any diagonal."""
    kind = b.random.choice([b.element, "i1"])
    k, dims = b.random.randint(-3, 5), b.pick_dims(2)
    b.emit(op, [], True, 1, shape=dims, k=k, dtype=ir.Type.parse(kind))
