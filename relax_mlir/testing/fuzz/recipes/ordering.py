"""Recipes of what goes along an axis in order: sorting, sums and products so far."""

from typing import Any

from relax_mlir.dialects import graph
from relax_mlir.symbolic import const

from ..builder import Builder, Value, size_of
from .elementwise import number
from .reductions import factors
from .table import recipe

_MANY = 8
"""So many elements make a dim long."""


def _sorted(b: Builder) -> tuple[Value, int]:
    """What levels may not differ in, and an axis of it; few elements, as each is moved alone."""
    most_long = 0 if b.depth else 1

    def is_small(v: Value) -> bool:
        long = sum(dim.value is None or dim.value > _MANY for dim in v.dims)
        return v.exact and v.rank > 0 and v.element != "i1" and long <= most_long

    value = b.pick(is_small)
    if value is None:
        dims = [b.pick_dim() if most_long else const(b.few("lines", [1, 5, 8], 1)), const(3)]
        b.random.shuffle(dims)
        value = b.argument(dims, b.random.choice(["f32", "i64", "i8", "bf16", "ui8", "ui64"]))
    return value, b.random.randrange(value.rank)


@recipe("reduction", graph.SortOp)
def sort(b: Builder, op: Any) -> None:
    """In either direction."""
    value, axis = _sorted(b)
    bound = max(value.bound, 100)
    b.emit_many(op, [value], True, bound, axis=axis, descending=b.chance(0.5))


@recipe("reduction", graph.TopkOp)
def topk(b: Builder, op: Any) -> None:
    """Of all, of half, or of a few where there are so many."""
    value, axis = _sorted(b)
    dim = value.dims[axis]
    k = b.random.choice([dim, dim // 2])
    if dim.value is not None and b.chance(0.6):
        k = const(b.random.randint(0, dim.value))
    bound, largest = max(value.bound, 100), b.chance(0.5)
    b.emit_many(op, [value], True, bound, k=[k], axis=axis - value.rank, largest=largest)


@recipe("reduction", graph.CumsumOp, graph.CumprodOp)
def scan(b: Builder, op: Any) -> None:
    """Near 1 where floats are multiplied."""
    value = number(b)
    value = value if value.rank else b.argument(b.pick_dims(2), value.element)
    axis = b.random.randrange(value.rank)
    count = size_of([value.dims[axis]])
    bound = value.bound * count
    if op is graph.CumprodOp:
        value, bound = factors(b, value, count)
    flags = {"exclusive": b.chance(0.3), "reverse": b.chance(0.3)}
    b.emit(op, [value], not value.is_float, bound, axis=axis, **flags)


@recipe("reduction", graph.SearchsortedOp)
def searchsorted(b: Builder, op: Any) -> None:
    """Of what was sorted, or not, for values of an argument."""
    value, _ = _sorted(b)
    line = value
    if b.chance(0.7):
        line, _ = b.emit_many(graph.SortOp, [value], True, value.bound, axis=-1, descending=False)
    lead = line.dims[:-1] if line.rank > 1 else b.pick_dims(b.random.randint(0, 1))
    values = b.argument([*lead, b.pick_dim()], line.element)
    b.emit(op, [line, values], True, 100, right=b.chance(0.5))
