"""Orders."""

from collections.abc import Sequence
from typing import Any

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    astype,
    binary,
    broadcast_to,
    dims_of,
    element_of,
    emit,
    expand_dims,
    is_integer,
    permute,
    reduce,
    reshape,
    scalar,
    where,
)
from relax_mlir.dialects import graph
from relax_mlir.symbolic import product

from ...regions import Carried, loop
from ..call import Call
from ..registry import operator
from .shaping import sliced


def _i64(value: ir.Value) -> ir.Value:
    return astype(value, ir.IntegerType.get_signless(64))


@operator("sort")
def sort(call: Call, x: ir.Value, dim: int = -1, descending: bool = False) -> Sequence[ir.Value]:
    """Elements in order, and where they were."""
    if not call.rank(x):
        return x, scalar(0, ir.IntegerType.get_signless(64))
    axis = call.axis(dim, call.rank(x))
    op = graph.SortOp.build(x, axis=axis, descending=descending)
    values, indices = op.operation.results
    return values, _i64(indices)


@operator("sort.stable")
def sort_stable(
    call: Call, x: ir.Value, stable: Any = None, dim: int = -1, descending: bool = False
) -> Sequence[ir.Value]:
    """The same, of which equal ones keep their order."""
    return sort(call, x, dim, descending)


@operator("argsort")
def argsort(call: Call, x: ir.Value, dim: int = -1, descending: bool = False) -> ir.Value:
    """Where elements in order were."""
    return sort(call, x, dim, descending)[1]


@operator("topk")
def topk(
    call: Call, x: ir.Value, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True
) -> Sequence[ir.Value]:
    """The greatest or least elements, and where they were."""
    if not call.rank(x):
        return x, scalar(0, ir.IntegerType.get_signless(64))
    axis = call.axis(dim, call.rank(x))
    op = graph.TopkOp.build(x, k=[call.expr(k)], axis=axis, largest=largest)
    values, indices = op.operation.results
    return values, _i64(indices)


@operator("bucketize.Tensor", "bucketize.Scalar")
def bucketize(
    call: Call, x: Any, boundaries: ir.Value, out_int32: bool = False, right: bool = False
) -> ir.Value:
    """Between which boundaries elements are."""
    return searchsorted(call, boundaries, x, out_int32, right)


@operator("searchsorted.Tensor", "searchsorted.Scalar")
def searchsorted(
    call: Call,
    line: ir.Value,
    x: Any,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: ir.Value | None = None,
) -> ir.Value:
    """Where elements would be in sorted rows: before equal ones, or after them."""
    if sorter is not None:
        line = emit(graph.GatherElementsOp, line, sorter, axis=-1)
    line, x = call.common(line, x)
    right = right or side == "right"
    if call.rank(line) == 1:
        index = d.bucketize(x, line, right)
        return astype(reshape(index, list(dims_of(x))), call.element)
    return astype(emit(graph.SearchsortedOp, line, x, right=right), call.element)


def _in_order(call: Call, x: ir.Value, dim: int | None) -> tuple[ir.Value, ir.Value, int]:
    """Elements in order along an axis, NaN last, and where they were; all of them without one."""
    if dim is None or not call.rank(x):
        x, dim = reshape(x, [product(dims_of(x))]), 0
    axis = call.axis(dim, call.rank(x))
    values, indices = graph.SortOp.build(x, axis=axis, descending=False).operation.results
    return values, _i64(indices), axis


def _picked(
    call: Call, values: ir.Value, indices: ir.Value, axis: int, at: Any
) -> tuple[ir.Value, ir.Value]:
    """Elements at an index of an axis, which stays, and where they were."""
    if isinstance(at, ir.Value):
        pair = (emit(graph.GatherElementsOp, each, at, axis=axis) for each in (values, indices))
    else:
        pair = (sliced(each, axis, at, at + 1) for each in (values, indices))
    first, second = pair
    return first, second


def _without(call: Call, parts: Sequence[ir.Value]) -> tuple[ir.Value, ir.Value]:
    """Results with the dims that PyTorch gives them."""
    first, second = (reshape(part, call.dims) for part in parts)
    return first, second


@operator("kthvalue")
def kthvalue(
    call: Call, x: ir.Value, k: Any, dim: int = -1, keepdim: bool = False
) -> tuple[ir.Value, ir.Value]:
    """The k-th of the elements in order, and where it was."""
    values, indices, axis = _in_order(call, x, dim)
    return _without(call, _picked(call, values, indices, axis, call.expr(k) - 1))


@operator("median.dim")
def median_dim(
    call: Call, x: ir.Value, dim: int | None, keepdim: bool = False
) -> tuple[ir.Value, ir.Value]:
    """The element in the middle, the lower of two, and where it was; a NaN if there is one."""
    values, indices, axis = _in_order(call, x, dim)
    count = dims_of(values)[axis]
    middle = _picked(call, values, indices, axis, (count - 1) // 2)
    if is_integer(element_of(x)):
        return _without(call, middle)
    last = _picked(call, values, indices, axis, count - 1)
    has_nan = emit(graph.IsnanOp, last[0])
    return _without(call, [where(has_nan, a, b) for a, b in zip(last, middle, strict=True)])


@operator("median")
def median(call: Call, x: ir.Value) -> ir.Value:
    """The element in the middle of all."""
    return median_dim(call, x, None)[0]


@operator("nanmedian.dim")
def nanmedian_dim(
    call: Call, x: ir.Value, dim: int | None, keepdim: bool = False
) -> tuple[ir.Value, ir.Value]:
    """The element in the middle of those that are no NaN."""
    if is_integer(element_of(x)):
        return median_dim(call, x, dim, keepdim)
    values, indices, axis = _in_order(call, x, dim)
    i64 = ir.IntegerType.get_signless(64)
    known = astype(emit(graph.LogicalNotOp, emit(graph.IsnanOp, values)), i64)
    count = reduce(graph.SumOp, known, [axis], True)
    middle = d.emit.floor_divide(d.emit.subtract(d.emit.maximum(count, 1), 1), 2)
    return _without(call, _picked(call, values, indices, axis, middle))


@operator("nanmedian")
def nanmedian(call: Call, x: ir.Value) -> ir.Value:
    """The element in the middle of all that are no NaN."""
    return nanmedian_dim(call, x, None)[0]


@operator("mode")
def mode(
    call: Call, x: ir.Value, dim: int = -1, keepdim: bool = False
) -> tuple[ir.Value, ir.Value]:
    """The most frequent element, the least of several, and where it is last."""
    values, indices, axis = _in_order(call, x, dim)
    same = binary(graph.EqualOp, expand_dims(values, [axis]), expand_dims(values, [axis + 1]))
    i64 = ir.IntegerType.get_signless(64)
    counts = reduce(graph.SumOp, astype(same, i64), [axis])
    first = _i64(emit(graph.ArgmaxOp, counts, axis=axis, keepdims=True))
    often = reduce(graph.MaxOp, counts, [axis], True)
    last = d.emit.subtract(d.emit.add(first, often), 1)
    return _without(call, _picked(call, values, indices, axis, last))


def _running(call: Call, x: ir.Value, dim: int, op: type[graph.InferredOp]) -> Sequence[ir.Value]:
    """Running extremes along an axis, of equal ones the last, and where they are."""
    i64 = ir.IntegerType.get_signless(64)
    if not call.rank(x):
        return x, scalar(0, i64)
    axis = call.axis(dim, call.rank(x))
    order = [axis, *(i for i in range(call.rank(x)) if i != axis)]
    front = permute(x, order)
    count, *rest = dims_of(front)
    filler = broadcast_to(scalar(0, element_of(x)), rest)
    start = [filler, broadcast_to(scalar(0, i64), rest)]

    def run(at: ir.Value, carried: list[Any]) -> tuple[Any, list[Any], list[Any]]:
        best, where_ = carried
        row = emit(graph.TakeOp, front, at, axis=0)
        is_new = emit(graph.LogicalOrOp, emit(op, row, best), binary(graph.EqualOp, at, 0))
        if not is_integer(element_of(x)):
            is_new = emit(graph.LogicalOrOp, is_new, emit(graph.IsnanOp, row))
        best, where_ = where(is_new, row, best), where(is_new, at, where_)
        return None, [best, where_], [best, where_]

    rows = loop(call.importer, Carried(count, None, start, 2), run)[2:]
    back = [order.index(i) for i in range(len(order))]
    return [permute(each, back) for each in rows]


@operator("cummax")
def cummax(call: Call, x: ir.Value, dim: int) -> Sequence[ir.Value]:
    """Running maxima, and where they are."""
    return _running(call, x, dim, graph.GreaterEqualOp)


@operator("cummin")
def cummin(call: Call, x: ir.Value, dim: int) -> Sequence[ir.Value]:
    """Running minima, and where they are."""
    return _running(call, x, dim, graph.LessEqualOp)
