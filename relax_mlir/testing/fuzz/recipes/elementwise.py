"""Recipes of element-wise operators: operands where they are defined and well-conditioned."""

from dataclasses import replace
from typing import Any

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph

from ..builder import ELEMENTS, FLOATS, INTEGERS, LIMIT, Builder, Value
from .table import recipe

SMOOTH: dict[type, tuple[float, float, float] | None] = {
    graph.AcosOp: (-0.9, 0.9, 4),
    graph.AcoshOp: (1.25, 8, 4),
    graph.AsinOp: (-0.9, 0.9, 2),
    graph.AtanhOp: (-0.9, 0.9, 2),
    graph.CoshOp: (-3, 3, 11),
    graph.SinhOp: (-3, 3, 11),
    graph.ExpOp: (-9, 3, 21),
    graph.Expm1Op: (-9, 3, 21),
    graph.LogOp: (0.125, 8, 3),
    graph.Log2Op: (0.125, 8, 3),
    graph.Log10Op: (0.125, 8, 3),
    graph.Log1pOp: (-0.75, 8, 3),
    graph.ReciprocalOp: (0.125, 8, 8),
    graph.RsqrtOp: (0.125, 8, 4),
    graph.SqrtOp: (0.0625, 64, 8),
    graph.TanOp: (-1.25, 1.25, 4),
    graph.AsinhOp: None,
    graph.AtanOp: None,
    graph.CosOp: None,
    graph.ErfOp: None,
    graph.SigmoidOp: None,
    graph.SinOp: None,
    graph.TanhOp: None,
    graph.SiluOp: None,
    graph.GeluOp: None,
    graph.GeluTanhOp: None,
}
"""Functions of floats: where they are taken, and a bound there; None: anywhere, no bound grows."""
STEPS = (graph.CeilOp, graph.FloorOp, graph.RoundOp, graph.TruncOp)
PREDICATES = (graph.IsfiniteOp, graph.IsinfOp, graph.IsnanOp, graph.SignbitOp)
COMPARISONS = (
    graph.EqualOp,
    graph.GreaterOp,
    graph.GreaterEqualOp,
    graph.LessOp,
    graph.LessEqualOp,
    graph.NotEqualOp,
)
BITWISE = (graph.BitwiseAndOp, graph.BitwiseOrOp, graph.BitwiseXorOp)
LOGICAL = (graph.LogicalAndOp, graph.LogicalOrOp, graph.LogicalXorOp)
RAW = 0.15
"""How often a function is taken of an argument wherever it lies: NaN and infinities."""


def _pair(b: Builder, x: Value) -> list[Value]:
    wide = [dim for dim in x.dims if dim.value is None or dim.value > 8]
    if 1 <= x.rank <= 2 and len(wide) <= 1 and b.chance(0.08):
        axis = b.random.randrange(x.rank)
        # All pairs of slices along an axis, as of distances.
        pair = [b.emit(graph.ExpandDimsOp, [x], axes=[at]) for at in (axis, axis + 1)]
    else:
        pair = [x, b.beside(x)]
    return pair[::-1] if b.chance(0.5) else pair


def _numbers(value: Value) -> bool:
    return value.element != "i1"


def number(b: Builder) -> Value:
    """A tensor of floats or integers."""
    element = b.element if b.element != "i1" else "i32"
    return b.take(_numbers, element=element)


@recipe("elementwise", *SMOOTH)
def smooth(b: Builder, op: Any) -> None:
    """A function of floats."""
    domain = SMOOTH[op]
    if domain is None:
        b.emit(op, [b.floats()], exact=False)
        return
    low, high, bound = domain
    if b.chance(RAW):
        value = b.floats(lambda v: v.exact and v.bound <= NARROW)
        b.emit(op, [value], exact=False, bound=1e30)
    else:
        b.emit(op, [b.clamp(b.floats(), low, high)], exact=False, bound=bound)


NARROW = 8.0
"""The bound of operands that are taken as they are."""


@recipe("elementwise", graph.AbsOp, graph.NegativeOp, graph.ReluOp)
def keeping(b: Builder, op: Any) -> None:
    """The same magnitude."""
    b.emit(op, [number(b)])


@recipe("elementwise", graph.SignOp, *STEPS)
def step(b: Builder, op: Any) -> None:
    """What jumps: of exact operands."""
    if op is graph.SignOp:
        b.emit(op, [b.exact(_numbers)] if b.element != "i1" else [b.argument([4], "f32")])
    else:
        b.emit(op, [_exact_floats(b)])


def _exact_floats(b: Builder) -> Value:
    return b.floats(lambda v: v.exact)


@recipe("elementwise", graph.SquareOp)
def square(b: Builder, op: Any) -> None:
    """A bound that grows."""
    value = number(b)
    b.emit(op, [value], exact=not value.is_float, bound=value.bound**2 if value.is_float else 0)


@recipe("elementwise", *PREDICATES)
def predicate(b: Builder, op: Any) -> None:
    """Truth values of an exact operand."""
    b.emit(op, [_exact_floats(b)])


@recipe("elementwise", graph.BitwiseNotOp)
def bitwise_not(b: Builder, op: Any) -> None:
    """Of integers or truth values."""
    b.emit(op, [_bits(b)])


@recipe("elementwise", graph.PopcountOp)
def popcount(b: Builder, op: Any) -> None:
    """Of integers."""
    x = b.take(lambda v: v.element in INTEGERS, element=b.random.choice(INTEGERS))
    b.emit(op, [x], bound=64)


def _bits(b: Builder) -> Value:
    kind = b.random.choice([*INTEGERS, "i1"])
    return b.take(lambda v: not v.is_float, element=kind)


@recipe("elementwise", graph.LogicalNotOp)
def logical_not(b: Builder, op: Any) -> None:
    """Of truth values."""
    b.emit(op, [_truth(b)])


def _truth(b: Builder) -> Value:
    return b.take(lambda v: v.element == "i1", element="i1")


@recipe("arithmetic", graph.AddOp, graph.SubtractOp)
def sums(b: Builder, op: Any) -> None:
    """Sums and differences."""
    pair = _pair(b, number(b))
    b.emit(op, pair, exact=not pair[0].is_float, bound=sum(v.bound for v in pair))


@recipe("arithmetic", graph.MultiplyOp)
def multiply(b: Builder, op: Any) -> None:
    """A bound that is multiplied."""
    left, right = _pair(b, number(b))
    b.emit(op, [left, right], exact=not left.is_float, bound=left.bound * right.bound)


@recipe("arithmetic", graph.MaximumOp, graph.MinimumOp)
def extreme(b: Builder, op: Any) -> None:
    """One of two."""
    b.emit(op, _pair(b, number(b)))


@recipe("elementwise", graph.FloorDivideOp, graph.RemainderOp)
def quotient(b: Builder, op: Any) -> None:
    """Of exact operands, since it jumps."""
    x = b.exact(_numbers) if b.element != "i1" else b.argument([5], "i32")
    y = b.beside(x)
    if not y.exact:
        y = b.argument(y.dims, y.element)
    y = y if y.element not in FLOATS or y.bound > NARROW else b.clamp(y, 0.5, 8)
    exact = x.element not in FLOATS or op is graph.FloorDivideOp
    b.emit(op, [x, y], exact=exact, bound=max(2 * x.bound, y.bound))


@recipe("elementwise", graph.PowerOp)
def power(b: Builder, op: Any) -> None:
    """Positive floats to small powers, or integers."""
    x = number(b)
    y = b.beside(x)
    if not x.is_float:
        b.emit(op, [x, y])
        return
    b.emit(op, [b.clamp(x, 0.25, 4), b.clamp(y, -2, 3)], exact=False, bound=64)


@recipe("elementwise", graph.Atan2Op, graph.HypotOp, graph.LogaddexpOp)
def float_pair(b: Builder, op: Any) -> None:
    """Smooth functions of two floats."""
    x = b.floats()
    y = b.beside(x)
    if op is graph.Atan2Op:
        y = b.clamp(y, 0.25, 8)  # left of the origin it jumps by a turn
    b.emit(op, [x, y], exact=False, bound=2 * max(x.bound, y.bound) + 1)


@recipe("elementwise", graph.CopysignOp)
def copysign(b: Builder, op: Any) -> None:
    """The sign of an exact operand."""
    x = b.floats()
    sign = b.beside(x)
    if not sign.exact:
        sign = b.argument(sign.dims, sign.element)
    b.emit(op, [x, sign])


@recipe("elementwise", graph.DivideOp)
def divide(b: Builder, op: Any) -> None:
    """By what is not near 0, or of arguments as they are."""
    x = b.floats()
    y = b.beside(x)
    if b.chance(RAW):
        x, y = b.argument(x.dims, x.element), b.argument(y.dims, y.element)
        b.emit(op, [x, y], exact=False, bound=LIMIT[x.element])
    else:
        b.emit(op, [x, b.clamp(y, 0.25, 8)], exact=False, bound=4 * x.bound)


@recipe("elementwise", *BITWISE)
def bitwise(b: Builder, op: Any) -> None:
    """Of integers or truth values."""
    b.emit(op, _pair(b, _bits(b)))


@recipe("elementwise", *LOGICAL)
def logical(b: Builder, op: Any) -> None:
    """Of truth values."""
    b.emit(op, _pair(b, _truth(b)))


@recipe("elementwise", graph.LeftShiftOp, graph.RightShiftOp, graph.LogicalRightShiftOp)
def shift(b: Builder, op: Any) -> None:
    """By any amount, negative ones among them if they are meant by anything."""
    x = b.take(lambda v: v.element in INTEGERS, element=b.random.choice(INTEGERS))
    by = b.emit(graph.AbsOp, [b.beside(x)])
    bits = b.emit(graph.BitwiseAndOp, [by, b.number(63, x.element)])
    b.emit(op, [x, bits])


@recipe("elementwise", *COMPARISONS)
def comparison(b: Builder, op: Any) -> None:
    """Of exact operands."""
    x = b.exact(_numbers) if b.element != "i1" else b.argument([3], "f32")
    y = b.beside(x)
    y = y if y.exact else b.argument(y.dims, y.element)
    b.emit(op, [x, y])


@recipe("arithmetic", graph.WhereOp)
def where(b: Builder, op: Any) -> None:
    """One of two by a condition."""
    x = b.take()
    y, condition = b.beside(x), b.beside(x, "i1")
    b.emit(op, [condition, *((x, y) if b.chance(0.5) else (y, x))])


@recipe("elementwise", graph.AstypeOp)
def astype(b: Builder, op: Any) -> None:
    """Any type to any; to integers only what is exact, and to narrow floats what is small."""
    x = b.take()
    if x.is_float and x.exact and b.chance(0.3):
        _through_float8(b, x)
        return
    kind = b.random.choice([b.element, *ELEMENTS])
    if kind not in FLOATS and not x.exact:
        x = b.exact()
    bound = x.bound if x.is_float else BOUNDS.get(x.element, 1e30)
    b.emit(op, [x], bound=bound, dtype=ir.Type.parse(kind))


def _through_float8(b: Builder, x: Value) -> None:
    """Rounded to 8 bits, reversed, and widened again: nothing computes with such elements."""
    kind = b.random.choice(["f8E4M3FN", "f8E5M2", "f8E4M3FNUZ", "f8E5M2FNUZ"])
    small = graph.AstypeOp.build(x.ir, dtype=ir.Type.parse(kind)).result
    if x.rank:
        small = graph.FlipOp.build(small, axes=[b.random.randrange(x.rank)]).result
    b.emit(graph.AstypeOp, [replace(x, ir=small)], dtype=ir.Type.parse(x.element))


@recipe("elementwise", graph.BitcastOp)
def bitcast(b: Builder, op: Any) -> None:
    """The bits of integers, and of arguments: those of a NaN that was computed may be any."""
    x = b.pick(
        lambda v: v.exact and v.element != "i1" and (not v.is_float or v.ir.owner == b.entry)
    )
    x = x or b.argument(b.pick_dims(2), "f32")
    b.emit(op, [x], bound=2.0**63, dtype=ir.Type.parse(SAME_WIDTH.get(x.element, x.element)))


SAME_WIDTH = {"f64": "i64", "f32": "ui32", "f16": "i16", "bf16": "ui16", "i8": "ui8", "ui64": "i64"}
"""Integers of as many bits."""

BOUNDS = {"i1": 1.0, "i8": 128.0, "ui8": 255.0}
"""The magnitudes of integers."""
