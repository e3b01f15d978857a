"""Recipes of operators whose data decide how large results are; casts name those sizes.

What decides is exact, so that all levels have the same sizes.
"""

from collections.abc import Sequence
from typing import Any

from relax_mlir import decompositions
from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.symbolic import const

from ..builder import Builder, Value, size_of
from .shapes import fresh_symbol
from .table import recipe

_MOST = 256
"""Elements that are looked at, about: the interpreter goes through them one by one."""


def _few(b: Builder) -> Value:
    """A few elements that levels may not differ in."""

    def is_small(v: Value) -> bool:
        return v.exact and 1 <= v.rank <= 3 and v.element != "i1" and size_of(v.dims) <= _MOST

    value = b.pick(is_small) if b.depth == 0 else None
    if value is not None:
        return value
    dims = [const(3), b.pick_dim() if b.depth == 0 else const(b.few("lines", [1, 5, 8], 1))]
    b.random.shuffle(dims)
    return b.argument(dims, b.random.choice(["f32", "i64", "i8", "bf16", "ui8", "ui64"]))


def _above_one(b: Builder, value: Value) -> Value:
    return b.emit(graph.GreaterOp, [value, b.number(1, value.element)], True, 1)


def _named(b: Builder, built: Any, bounds: Sequence[float], exact: bool = True) -> list[Value]:
    """The results, with a symbol that all unknown dims of them are."""
    b.used.append(built.OPERATION_NAME.partition(".")[2])
    return _cast(b, built.operation.results, bounds, exact)


def _cast(
    b: Builder, made: Sequence[ir.Value], bounds: Sequence[float], exact: bool
) -> list[Value]:
    symbol = fresh_symbol(b)
    results: list[Value] = []
    for result, bound in zip(made, bounds, strict=True):
        annotation = graph.TensorType.of(result)
        dims = [symbol if dim is None else dim for dim in annotation.dims or ()]
        cast = graph.MatchCastOp.build(result, graph.TensorType.make(dims, annotation.element))
        results += b.results_of(cast, exact, bound)
    return results


@recipe("data", graph.NonzeroOp)
def nonzero(b: Builder, op: Any) -> None:
    """Of elements, or of a comparison; then what is at some of the indices."""
    value = _few(b)
    if b.chance(0.6):
        value = _above_one(b, value)
    (indices,) = _named(b, op.build(value.ir), [64])
    if b.chance(0.7):
        rows = b.emit(graph.SumOp, [indices], True, 256, axes=[0], keepdims=False)
        source = b.take(lambda v: v.rank > 0 and all(dim.value != 0 for dim in v.dims))
        b.emit(graph.TakeOp, [source, rows], source.exact, source.bound, axis=0)


@recipe("data", graph.FirstNonzeroOp)
def first_nonzero(b: Builder, op: Any) -> None:
    """As many as there may be, fewer or more."""
    value = _few(b)
    count = b.random.choice([const(b.few("counts", [0, 1, 5, 17], 2)), value.dims[-1]])
    b.emit(op, [value], True, 64, count=[count])


@recipe("data", graph.UniqueOp)
def unique(b: Builder, op: Any) -> None:
    """Of all elements, or of slices, in either order."""
    value = _few(b)
    axes = [] if b.chance(0.5) else [b.random.randrange(value.rank)]
    built = op.build(value.ir, axes=axes, sorted=b.chance(0.7))
    _named(b, built, [value.bound, 256, 256, 256])


@recipe("data", graph.ArgsortRowsOp)
def argsort_rows(b: Builder, op: Any) -> None:
    """Of a few rows, or of some short ones."""
    value = _few(b)
    if value.rank != 2:
        value = b.argument([value.dims[0], const(b.few("columns", [0, 1, 3], 1))], value.element)
    b.emit(op, [value], True, 64)


@recipe("data", graph.RepeatInterleaveOp)
def repeat_interleave(b: Builder, op: Any) -> None:
    """None to three times each."""
    value = b.take(lambda v: v.rank > 0 and size_of(v.dims) <= 4 * _MOST)
    axis = b.random.randrange(value.rank)
    counts = b.argument([value.dims[axis]], b.random.choice(["i64", "i32", "i8", "ui8"]))
    counts = b.emit(graph.BitwiseAndOp, [counts, b.number(3, counts.element)], True, 3)
    built = op.build(value.ir, counts.ir, axis=axis - value.rank * b.chance(0.5))
    _named(b, built, [value.bound], value.exact)


@recipe("data", graph.RangeOfOp)
def range_of(b: Builder, op: Any) -> None:
    """Of a few steps, up or down."""
    element = b.random.choice(["i64", "i32", "f32", "bf16"])
    steps = b.argument([], "i32")
    constant = b.number
    steps = b.emit(graph.BitwiseAndOp, [steps, constant(15, "i32")], True, 15)
    stop = b.emit(graph.AstypeOp, [steps], True, 15, dtype=ir.Type.parse(element))
    start, step = constant(-2, element), constant(b.few("steps", [1, 2, 3, -1], 2), element)
    _named(b, op.build(start.ir, stop.ir, step.ir), [64])


@recipe("data", "index_by_mask")
def index_by_mask(b: Builder, op: Any) -> None:
    """What is above some value, of it or of what it is the mask of."""
    value = _few(b)
    mask = _above_one(b, value)
    source = b.take(lambda v: v.dims == value.dims, [value.rank])
    source = source if source.dims == value.dims else value
    b.used.append("index_by_mask")
    built = decompositions.index_by_mask(source.ir, mask.ir)
    _cast(b, [built], [source.bound], source.exact)


@recipe("data", graph.VisionNmsOp)
def vision_nms(b: Builder, op: Any) -> None:
    """Of a few boxes."""
    n = b.pick_dim() if b.depth == 0 else const(3)
    element = b.random.choice(["f32", "f32", "bf16", "f64"])
    boxes = b.argument([2, n, 4], element)
    scores = b.argument([2, const(b.few("lines", [1, 3], 1)), n], element)
    constant = b.number
    bounds = [constant(4, "i64"), constant(0.25, element), constant(-1, element)]
    b.emit(op, [boxes, scores, *bounds], True, 64, center=b.chance(0.3))


@recipe("data", "box_nms")
def box_nms(b: Builder, op: Any) -> None:
    """Of a few boxes of classes, of which no two have one score."""
    n = b.pick_dim() if b.depth == 0 else const(3)
    rows = b.argument([2, n, 6], b.random.choice(["f32", "f32", "bf16", "f64"]))
    counts, indices = b.argument([2], "i32"), b.argument([2, n], "i32")
    settings: dict[str, Any] = {
        "iou_threshold": b.random.choice([0.0, 0.25, 0.5]),
        "max_output": b.random.choice([-1, 2]),
        "top_k": b.random.choice([-1, 3]),
        "compact": b.chance(0.5),
    }
    built = decompositions.box_nms(rows.ir, counts.ir, indices.ir, **settings)
    b.used.append("box_nms")
    for value, source in zip(built, (rows, indices, counts), strict=True):
        b.add(value, True, source.bound)
