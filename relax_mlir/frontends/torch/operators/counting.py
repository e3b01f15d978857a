"""How many elements there are of a kind: bincount, histograms."""

from collections.abc import Sequence
from typing import Any

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    add,
    astype,
    binary,
    broadcast_to,
    concat,
    dims_of,
    divide,
    element_of,
    emit,
    is_integer,
    maximum,
    minimum,
    multiply,
    reduce,
    reshape,
    scalar,
    subtract,
    where,
)
from relax_mlir.dialects import graph
from relax_mlir.symbolic import Expr, const, product

from ..call import Call
from ..registry import operator
from .shaping import sliced


def _flat(x: ir.Value) -> ir.Value:
    return reshape(x, [product(dims_of(x))])


def _counted(index: ir.Value, weights: ir.Value, count: Expr | int) -> ir.Value:
    """The sum of weights for each index below a count."""
    zeros = broadcast_to(scalar(0, element_of(weights)), [count])
    return emit(graph.ScatterElementsOp, zeros, index, weights, axis=0, reduction="add")


@operator("bincount")
def bincount(
    call: Call, x: ir.Value, weights: ir.Value | None = None, minlength: Any = 0
) -> ir.Value:
    """How often each integer occurs, or the sum of its weights."""
    i64 = ir.IntegerType.get_signless(64)
    index = astype(x, i64)
    is_wrong = reduce(graph.AnyOp, binary(graph.LessOp, index, 0), [0])
    graph.AssertOp.build(
        emit(graph.LogicalNotOp, is_wrong), "bincount has an integer that is negative"
    )
    most = reduce(graph.MaxOp, concat([index, broadcast_to(scalar(-1, i64), [1])], 0), [0])
    count = call.importer.bind(
        maximum(add(most, 1), call.tensor(call.expr(minlength), i64)), call.first.shape[0]
    )
    if weights is None:
        return _counted(index, broadcast_to(scalar(1, i64), dims_of(index)), count)
    return _counted(index, call.tensor(weights, call.element), count)


@operator("histc")
def histc(call: Call, x: ir.Value, bins: int = 100, low: Any = 0, high: Any = 0) -> ir.Value:
    """How many elements are in each of so many parts."""
    x = call.tensor(x, call.element)
    if is_integer(element_of(x)):
        x = astype(x, ir.F32Type.get())
    return astype(d.histc(x, bins, float(low), float(high)), call.element)


@operator("histogram.bins_tensor", "histogram.bin_ct")
def histogram(
    call: Call,
    x: ir.Value,
    bins: Any = 100,
    *,
    range: Sequence[float] | None = None,
    weight: ir.Value | None = None,
    density: bool = False,
) -> tuple[ir.Value, ir.Value]:
    """How many elements are between neighbouring edges, or the sum of their weights; the edges.

    The last part has its upper edge. A density is divided by the sum and by the width of its part.
    """
    line, element = _flat(x), element_of(x)
    edges = bins if isinstance(bins, ir.Value) else _edges(line, bins, range)
    count = dims_of(edges)[0] - 1
    first, last = sliced(edges, 0, const(0), const(1)), sliced(edges, 0, count, count + 1)
    inside = emit(
        graph.LogicalAndOp,
        emit(graph.GreaterEqualOp, line, first),
        emit(graph.LessEqualOp, line, last),
    )
    weights = scalar(1, element) if weight is None else _flat(weight)
    part = subtract(emit(graph.SearchsortedOp, edges, line, right=True), 1)
    part = minimum(maximum(part, 0), call.tensor(count - 1, element_of(part)))
    sums = _counted(part, where(inside, weights, 0), count)
    if density:
        widths = subtract(sliced(edges, 0, const(1), count + 1), sliced(edges, 0, const(0), count))
        sums = divide(sums, multiply(widths, reduce(graph.SumOp, sums, [0])))
    return sums, edges


def _edges(line: ir.Value, bins: int, range: Sequence[float] | None) -> ir.Value:
    """Edges of parts of equal widths between bounds, or from the least to the greatest element.

    They are computed from the nearer end, as `linspace` of ATen does.
    """
    element = element_of(line)
    if range is not None:
        low, high = (scalar(each, element) for each in range)
    else:
        nothing = binary(graph.EqualOp, d.emit.symbol(dims_of(line)[0], element), 0)
        ends = (reduce(op, line, [0]) for op in (graph.MinOp, graph.MaxOp))
        low, high = (where(reshape(nothing, []), 0, end) for end in ends)
    is_same = binary(graph.EqualOp, low, high)
    low, high = (where(is_same, add(end, by), end) for end, by in ((low, -0.5), (high, 0.5)))
    step = divide(subtract(high, low), float(bins))
    at = d.emit.arange(0, bins + 1, 1, element)
    below, above = add(multiply(at, step), low), subtract(high, multiply(subtract(bins, at), step))
    return where(binary(graph.LessOp, at, (bins + 1) // 2), below, above)
