"""Recipes of reductions, softmax and normalisations."""

from typing import Any

from relax_mlir.dialects import graph

from ..builder import Builder, Value, size_of
from .elementwise import number
from .table import recipe


def _axes(b: Builder, value: Value) -> list[int]:
    axes = b.random.sample(
        range(value.rank), b.random.randint(0 if b.chance(0.1) else 1, value.rank)
    )
    return [axis - value.rank if b.chance(0.2) else axis for axis in sorted(axes)]


def _reduced(value: Value, axes: list[int]) -> int:
    return size_of([value.dims[axis] for axis in axes or range(value.rank)])


def _some(b: Builder) -> Value:
    value = number(b)
    return value if value.rank else b.argument(b.pick_dims(2), value.element)


@recipe("reduction", graph.SumOp, graph.MeanOp)
def total(b: Builder, op: Any) -> None:
    """Over some axes, or all."""
    value = _some(b)
    if op is graph.MeanOp and not value.is_float:
        value = b.floats(lambda v: v.rank > 0)
    axes = _axes(b, value)
    grown = value.bound * (_reduced(value, axes) if op is graph.SumOp else 1)
    b.emit(op, [value], not value.is_float, grown, axes=axes, keepdims=b.chance(0.5))


def factors(b: Builder, value: Value, count: int) -> tuple[Value, float]:
    """Numbers of which `count` may be multiplied in any order, and a bound of their product.

    Those of both signs and 0 are few: products of many would be subnormal in one order alone.
    """
    if not value.is_float:
        return value, value.bound
    if count <= 16:
        return b.clamp(value, -1.0625, 1.0625), 1.0625**16
    width = 4 / count
    return b.clamp(value, 1 - width, 1 + width), 64


@recipe("reduction", graph.ProdOp)
def prod(b: Builder, op: Any) -> None:
    """Of numbers near 1 where there are many, or of integers."""
    value = _some(b)
    axes = _axes(b, value)
    value, bound = factors(b, value, _reduced(value, axes))
    b.emit(op, [value], not value.is_float, bound, axes=axes, keepdims=b.chance(0.5))


@recipe("reduction", graph.MaxOp, graph.MinOp)
def extreme(b: Builder, op: Any) -> None:
    """The greatest or least element."""
    value = _some(b)
    b.emit(op, [value], axes=_axes(b, value), keepdims=b.chance(0.5))


@recipe("reduction", graph.AnyOp, graph.AllOp)
def truth(b: Builder, op: Any) -> None:
    """Of truth values that are there, or an argument."""
    value = b.pick(lambda v: v.element == "i1" and v.exact and v.rank > 0)
    value = value or b.argument(b.pick_dims(2), "i1")
    b.emit(op, [value], axes=_axes(b, value), keepdims=b.chance(0.5))


@recipe("reduction", graph.ArgmaxOp, graph.ArgminOp)
def place(b: Builder, op: Any) -> None:
    """Where an exact operand has it; the axis is never empty."""
    value = b.exact(lambda v: v.rank > 0 and v.element != "i1" and v.bound < 1e20)
    if value.element == "i1":
        value = b.argument(b.pick_dims(2), "f32")
    axis = b.random.randrange(value.rank)
    b.emit(op, [value], True, 100, axis=axis, keepdims=b.chance(0.5))


@recipe("reduction", graph.SoftmaxOp)
def softmax(b: Builder, op: Any) -> None:
    """Along any axis; now and then of numbers whose exponentials are infinite."""
    value = b.floats(lambda v: v.rank > 0)
    if b.chance(0.2):
        value = b.emit(graph.MultiplyOp, [value, b.number(64, value.element)], False, 0)
    b.emit(op, [value], False, 1, axis=b.random.randrange(value.rank))


@recipe("reduction", graph.LogSoftmaxOp)
def log_softmax(b: Builder, op: Any) -> None:
    """Along any axis."""
    value = b.floats(lambda v: v.rank > 0)
    b.emit(op, [value], False, 2 * value.bound + 8, axis=b.random.randrange(value.rank))


@recipe("reduction", graph.VarianceOp, graph.StdOp, graph.LogsumexpOp)
def two_passes(b: Builder, op: Any) -> None:
    """Over some axes, or all, of more elements than are taken off."""
    value = b.floats(lambda v: v.rank > 0)
    attributes: dict[str, Any] = {"axes": _axes(b, value), "keepdims": b.chance(0.5)}
    bound = value.bound + 8
    if op is not graph.LogsumexpOp:
        attributes["correction"] = b.random.choice([0, 0, 1])
        bound = 4 * value.bound**2
    b.emit(op, [value], False, bound, **attributes)


@recipe("reduction", graph.RmsNormOp, graph.LayerNormOp)
def norm(b: Builder, op: Any) -> None:
    """Over the last dim, with parameters that are arguments or computed."""
    value = b.floats(lambda v: v.rank > 0)

    def parameter() -> Value:
        found = b.pick(lambda v: v.dims == value.dims[-1:] and v.element == value.element)
        return found or b.argument(value.dims[-1:], value.element)

    operands = [value, *(parameter() for _ in range(2 if op is graph.LayerNormOp else 1))]
    epsilon = b.random.choice([0.25, 0.0625])
    b.emit(op, operands, False, 8 * max(v.bound for v in operands[1:]), epsilon=epsilon)
