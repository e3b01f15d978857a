"""Reductions, positions of extremes, running sums, norms."""

from collections.abc import Sequence
from typing import Any

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    astype,
    binary,
    dims_of,
    divide,
    element_of,
    emit,
    maximum,
    multiply,
    reduce,
    reshape,
    subtract,
    symbol,
    widen,
)
from relax_mlir.dialects import graph
from relax_mlir.symbolic import product

from ..adapters import by_part, of_size, of_truth
from ..call import Call
from ..registry import operator


def axes_of(call: Call, x: ir.Value, dim: Any) -> list[int]:
    """Axes from the front; all without any. A scalar has none."""
    rank = call.rank(x)
    if not rank or dim is None or (isinstance(dim, Sequence) and not dim):
        return list(range(rank))
    return sorted({call.axis(axis, rank) for axis in ([dim] if isinstance(dim, int) else dim)})


def _reduced(
    call: Call, op: type[graph.InferredOp], x: ir.Value, dim: Any, keepdim: bool
) -> ir.Value:
    return reduce(op, call.tensor(x, call.element), axes_of(call, x, dim), keepdim)


@operator("sum", "sum.dim_IntList", pairs=by_part)
def sum_(call: Call, x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> ir.Value:
    """The sum."""
    return _reduced(call, graph.SumOp, x, dim, keepdim)


@operator("mean", "mean.dim", pairs=by_part)
def mean(call: Call, x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> ir.Value:
    """The mean."""
    return _reduced(call, graph.MeanOp, x, dim, keepdim)


@operator("prod", "prod.dim_int")
def prod(call: Call, x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> ir.Value:
    """The product."""
    return _reduced(call, graph.ProdOp, x, dim, keepdim)


def _extreme(x: ir.Value, name: str) -> type[graph.InferredOp]:
    is_truth = str(graph.TensorType.of(x).element) == "i1"
    if name == "max":
        return graph.AnyOp if is_truth else graph.MaxOp
    return graph.AllOp if is_truth else graph.MinOp


@operator("amax", "max")
def amax(call: Call, x: ir.Value, dim: Any = None, keepdim: bool = False) -> ir.Value:
    """The greatest element."""
    return _reduced(call, _extreme(x, "max"), x, dim, keepdim)


@operator("amin", "min")
def amin(call: Call, x: ir.Value, dim: Any = None, keepdim: bool = False) -> ir.Value:
    """The least element."""
    return _reduced(call, _extreme(x, "min"), x, dim, keepdim)


@operator("max.dim")
def max_dim(call: Call, x: ir.Value, dim: int, keepdim: bool = False) -> tuple[ir.Value, ir.Value]:
    """The greatest element along an axis, and where it is."""
    values = _reduced(call, _extreme(x, "max"), x, dim, keepdim)
    return values, argmax(call, x, dim, keepdim)


@operator("min.dim")
def min_dim(call: Call, x: ir.Value, dim: int, keepdim: bool = False) -> tuple[ir.Value, ir.Value]:
    """The least element along an axis, and where it is."""
    values = _reduced(call, _extreme(x, "min"), x, dim, keepdim)
    return values, argmin(call, x, dim, keepdim)


def _position(
    call: Call, op: type[graph.InferredOp], x: ir.Value, dim: int | None, keepdim: bool
) -> ir.Value:
    i64 = ir.IntegerType.get_signless(64)
    if str(graph.TensorType.of(x).element) == "i1":
        x = astype(x, ir.IntegerType.get_signless(8))
    if dim is None or not call.rank(x):
        line = reshape(x, [product(dims_of(x))])
        actual = emit(op, line, axis=0, keepdims=False)
        return astype(reshape(actual, [1] * call.rank(x)) if keepdim else actual, i64)
    axis = call.axis(dim, call.rank(x))
    return astype(emit(op, x, axis=axis, keepdims=keepdim), i64)


@operator("argmax")
def argmax(call: Call, x: ir.Value, dim: int | None = None, keepdim: bool = False) -> ir.Value:
    """Where the greatest element is."""
    return _position(call, graph.ArgmaxOp, x, dim, keepdim)


@operator("argmin")
def argmin(call: Call, x: ir.Value, dim: int | None = None, keepdim: bool = False) -> ir.Value:
    """Where the least element is."""
    return _position(call, graph.ArgminOp, x, dim, keepdim)


def _truth(
    call: Call, op: type[graph.InferredOp], x: ir.Value, dim: Any, keepdim: bool
) -> ir.Value:
    is_none = isinstance(dim, Sequence) and not dim  # unlike in sums, no axis means none
    axes = [] if is_none else axes_of(call, x, dim)
    return reduce(op, call.tensor(x, ir.IntegerType.get_signless(1)), axes, keepdim)


@operator("any", "any.dim", "any.dims", "_is_any_true", pairs=of_truth)
def any_(call: Call, x: ir.Value, dim: Any = None, keepdim: bool = False) -> ir.Value:
    """Whether one is true."""
    return _truth(call, graph.AnyOp, x, dim, keepdim)


@operator("all", "all.dim", "all.dims", "_is_all_true", pairs=of_truth)
def all_(call: Call, x: ir.Value, dim: Any = None, keepdim: bool = False) -> ir.Value:
    """Whether all are true."""
    return _truth(call, graph.AllOp, x, dim, keepdim)


def spread(
    call: Call, op: type[graph.InferredOp], x: ir.Value, dim: Any, correction: Any, keepdim: bool
) -> ir.Value:
    """The variance or the standard deviation along some axes."""
    correction = 1 if correction is None else correction
    axes = axes_of(call, x, dim)
    if correction == int(correction):
        return emit(op, x, axes=axes, keepdims=keepdim, correction=int(correction))
    own = widen(x)
    count = symbol(product([dims_of(x)[axis] for axis in axes]), element_of(own))
    left = maximum(subtract(count, correction), 0)
    sums = multiply(emit(graph.VarianceOp, own, axes=axes, keepdims=keepdim, correction=0), count)
    variance = divide(sums, left)
    root = emit(graph.SqrtOp, variance) if op is graph.StdOp else variance
    return astype(root, element_of(x))


@operator("var.correction")
def var(
    call: Call, x: ir.Value, dim: Any = None, correction: Any = None, keepdim: bool = False
) -> ir.Value:
    """The variance."""
    return spread(call, graph.VarianceOp, x, dim, correction, keepdim)


@operator("std.correction")
def std(
    call: Call, x: ir.Value, dim: Any = None, correction: Any = None, keepdim: bool = False
) -> ir.Value:
    """The standard deviation."""
    return spread(call, graph.StdOp, x, dim, correction, keepdim)


@operator("var_mean.correction")
def var_mean(
    call: Call, x: ir.Value, dim: Any = None, correction: Any = None, keepdim: bool = False
) -> tuple[ir.Value, ir.Value]:
    """The variance and the mean."""
    own = spread(call, graph.VarianceOp, x, dim, correction, keepdim)
    return own, reduce(graph.MeanOp, x, axes_of(call, x, dim), keepdim)


@operator("var", "var.dim")
def var_plain(
    call: Call, x: ir.Value, dim: Any = None, unbiased: bool = True, keepdim: bool = False
) -> ir.Value:
    """The variance."""
    return spread(call, graph.VarianceOp, x, dim, int(unbiased), keepdim)


@operator("logsumexp")
def logsumexp(call: Call, x: ir.Value, dim: Any, keepdim: bool = False) -> ir.Value:
    """The logarithm of a sum of exponentials."""
    return _reduced(call, graph.LogsumexpOp, x, dim, keepdim)


@operator("linalg_vector_norm", pairs=of_size)
def vector_norm(
    call: Call,
    x: ir.Value,
    order: Any = 2,
    dim: Any = None,
    keepdim: bool = False,
    dtype: Any = None,
) -> ir.Value:
    """The norm of vectors."""
    x = call.tensor(x, call.element)
    return norm_of(x, order, axes_of(call, x, dim), keepdim)


def norm_of(x: ir.Value, order: Any, axes: Sequence[int], keepdim: bool) -> ir.Value:
    """The norm of an order over axes; of half precision it is computed in f32."""
    return astype(_norm(widen(x), order, axes, keepdim), element_of(x))


def _norm(x: ir.Value, order: Any, axes: Sequence[int], keepdim: bool) -> ir.Value:
    size, element = emit(graph.AbsOp, x), element_of(x)
    if not axes:
        return astype(binary(graph.NotEqualOp, x, 0), element) if order == 0 else size
    if order == float("inf"):
        return reduce(graph.MaxOp, size, axes, keepdim)
    if order == float("-inf"):
        return reduce(graph.MinOp, size, axes, keepdim)
    if order == 0:
        is_there = astype(binary(graph.NotEqualOp, x, 0), element)
        return reduce(graph.SumOp, is_there, axes, keepdim)
    if order == 1:
        return reduce(graph.SumOp, size, axes, keepdim)
    if order == 2:
        return emit(graph.SqrtOp, reduce(graph.SumOp, multiply(x, x), axes, keepdim))
    total = reduce(graph.SumOp, binary(graph.PowerOp, size, order), axes, keepdim)
    return binary(graph.PowerOp, total, 1 / order)


@operator("cumsum", pairs=by_part)
def cumsum(call: Call, x: ir.Value, dim: int, dtype: Any = None) -> ir.Value:
    """Running sums."""
    return _running(call, graph.CumsumOp, x, dim)


@operator("logcumsumexp")
def logcumsumexp(call: Call, x: ir.Value, dim: int) -> ir.Value:
    """Logarithms of running sums of exponentials."""
    return d.logcumsumexp(x, axis=dim) if call.rank(x) else x


@operator("cumprod")
def cumprod(call: Call, x: ir.Value, dim: int, dtype: Any = None) -> ir.Value:
    """Running products."""
    return _running(call, graph.CumprodOp, x, dim)


def _running(call: Call, op: type[graph.InferredOp], x: ir.Value, dim: int) -> ir.Value:
    x, rank = call.tensor(x, call.element), call.rank(x)
    if not rank:
        return x
    return emit(op, x, axis=call.axis(dim, rank), exclusive=False, reverse=False)
