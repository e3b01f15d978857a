"""Reductions and running products of complex elements."""

from typing import Any

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    add,
    broadcast_to,
    dims_of,
    element_of,
    emit,
    expand_dims,
    reduce,
    reshape,
    scalar,
)
from relax_mlir.decompositions.loops import Round, each_index
from relax_mlir.dialects import graph
from relax_mlir.errors import ModelError
from relax_mlir.symbolic import product as count_of

from ....complex import Pair, of_real
from ....complex.arithmetic import absolute, product, subtract
from ...adapters import by_parts_of
from ...call import Call
from ...registry import of_pairs
from .. import scattering
from ..reductions import axes_of, norm_of, spread


def _variance(call: Call, x: Pair, dim: Any, correction: Any, keepdim: bool) -> ir.Value:
    """That of the real parts and that of the imaginary ones."""
    parts = (spread(call, graph.VarianceOp, part, dim, correction, keepdim) for part in x.parts)
    return add(*parts)


@of_pairs("var.correction")
def var(
    call: Call, x: Pair, dim: Any = None, correction: Any = None, keepdim: bool = False
) -> ir.Value:
    """The variance, which is real."""
    return _variance(call, x, dim, correction, keepdim)


@of_pairs("std.correction")
def std(
    call: Call, x: Pair, dim: Any = None, correction: Any = None, keepdim: bool = False
) -> ir.Value:
    """The standard deviation, which is real."""
    return emit(graph.SqrtOp, _variance(call, x, dim, correction, keepdim))


@of_pairs("var_mean.correction")
def var_mean(
    call: Call, x: Pair, dim: Any = None, correction: Any = None, keepdim: bool = False
) -> tuple[ir.Value, Pair]:
    """The variance and the mean."""
    axes = axes_of(call, x.real, dim)
    mean = x.map(lambda part: reduce(graph.MeanOp, part, axes, keepdim))
    return _variance(call, x, dim, correction, keepdim), mean


@of_pairs("prod", "prod.dim_int")
def prod(call: Call, x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Pair:
    """The product of elements, one after another."""
    pair = call.pair(x)
    if not call.rank(pair):
        return pair
    if dim is None:
        pair = pair.map(lambda part: reshape(part, [count_of(dims_of(part))]))
    axis = call.axis(dim or 0, call.rank(pair))
    start = _ones(pair, axis)

    def round_(at: Round, *total: ir.Value) -> tuple[ir.Value, ir.Value]:
        return product(Pair(*total), pair.map(lambda part: at.take(part, axis))).parts

    result = Pair(*each_index(pair.real, axis, start.parts, round_))
    return result.map(lambda part: expand_dims(part, [axis])) if keepdim else result


@of_pairs("cumprod")
def cumprod(call: Call, x: Any, dim: int, dtype: Any = None) -> Pair:
    """Running products."""
    pair = call.pair(x)
    if not call.rank(pair):
        return pair
    axis = call.axis(dim, call.rank(pair))

    def round_(at: Round, *carried: ir.Value) -> list[ir.Value]:
        total = product(Pair(*carried[:2]), pair.map(lambda part: at.take(part, axis)))
        rows = zip(carried[2:], total.parts, strict=True)
        return [*total.parts, *(at.put(room, row, axis) for room, row in rows)]

    start = [*_ones(pair, axis).parts, *pair.parts]
    return Pair(*each_index(pair.real, axis, start, round_)[2:])


@of_pairs("dist")
def dist(call: Call, a: Any, b: Any, order: float = 2) -> ir.Value:
    """The norm of a difference."""
    size = absolute(subtract(call.pair(a), call.pair(b)))
    return norm_of(size, order, list(range(call.rank(size))), False)


@of_pairs("scatter.reduce", "scatter.value_reduce")
def scatter_with(
    call: Call, x: Pair, dim: int, index: ir.Value, source: Any, *, reduce: str
) -> Any:
    """A tensor with sums along an axis."""
    if reduce != "add":
        raise ModelError(f"scatters complex elements by '{reduce}'; supported is add")
    adapted = by_parts_of(0, 3)(scattering.scatter_with)
    return adapted(call, x, dim, index, source, reduce=reduce)


def _ones(x: Pair, axis: int) -> Pair:
    """1 for each line along an axis."""
    dims = [dim for i, dim in enumerate(dims_of(x.real)) if i != axis]
    return of_real(broadcast_to(scalar(1, element_of(x.real)), dims))
