"""Reductions, positions of extremes, and running sums."""

from collections.abc import Callable, Sequence

from relax_mlir.bindings import ir
from relax_mlir.decompositions import truncated_divide
from relax_mlir.decompositions.emit import (
    astype,
    dims_of,
    element_of,
    emit,
    is_integer,
    multiply,
    reduce,
    reshape,
    subtract,
    symbol,
)
from relax_mlir.dialects import graph
from relax_mlir.errors import ModelError
from relax_mlir.symbolic import product

from ..node import Node, normalized
from ..registry import operator

Reduction = Callable[[ir.Value, Sequence[int], bool], ir.Value]


def _by(op: type[graph.InferredOp]) -> Reduction:
    return lambda x, axes, keep: reduce(op, x, axes, keep)


def _extreme(op: type[graph.InferredOp], of_truth: type[graph.InferredOp]) -> Reduction:
    def build(x: ir.Value, axes: Sequence[int], keep: bool) -> ir.Value:
        return reduce(of_truth if str(element_of(x)) == "i1" else op, x, axes, keep)

    return build


def _sum(x: ir.Value, axes: Sequence[int], keep: bool) -> ir.Value:
    return reduce(graph.SumOp, x, axes, keep)


REDUCTIONS: dict[str, Reduction] = {
    "ReduceL1": lambda x, axes, keep: _sum(emit(graph.AbsOp, x), axes, keep),
    "ReduceL2": lambda x, axes, keep: _root(_sum(multiply(x, x), axes, keep)),
    "ReduceLogSum": lambda x, axes, keep: emit(graph.LogOp, _sum(x, axes, keep)),
    "ReduceLogSumExp": _by(graph.LogsumexpOp),
    "ReduceMax": _extreme(graph.MaxOp, graph.AnyOp),
    "ReduceMean": _by(graph.MeanOp),
    "ReduceMin": _extreme(graph.MinOp, graph.AllOp),
    "ReduceProd": _by(graph.ProdOp),
    "ReduceSum": _sum,
    "ReduceSumSquare": lambda x, axes, keep: _sum(multiply(x, x), axes, keep),
}


FRACTIONS = ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean")


def _whole(op: str, x: ir.Value, axes: Sequence[int], keep: bool) -> ir.Value:
    """What a reduction of integers to a fraction is, rounded to 0."""
    i64, f64 = ir.IntegerType.get_signless(64), ir.F64Type.get()
    integers = astype(x, i64)
    if op == "ReduceMean":
        count = symbol(product([dims_of(x)[axis] for axis in axes]), i64)
        return truncated_divide(_sum(integers, axes, keep), reshape(count, []))
    if op == "ReduceLogSumExp":
        return REDUCTIONS[op](astype(integers, f64), axes, keep)
    if op == "ReduceL2":
        integers = multiply(integers, integers)
    total = astype(_sum(integers, axes, keep), f64)
    return emit(graph.LogOp, total) if op == "ReduceLogSum" else _root(total)


def _root(x: ir.Value) -> ir.Value:
    return emit(graph.SqrtOp, x)


@operator(*REDUCTIONS)
def reduction(node: Node) -> object:
    """A reduction over axes, attributes of old and an operand of new versions; over all of none."""
    axes = node.attribute("axes")
    if node.value(1) is not None:
        axes = node.integers(1, "axes")
    if not axes and node.flag("noop_with_empty_axes"):
        if node.op in ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"):
            return node.value(0)
        axes = []
    elif not axes:
        axes = list(range(node.rank()))
    axes = [normalized(axis, node.rank()) for axis in axes]
    if node.op == "ReduceMean":
        node.dims(0)
    x = node.tensor(0)
    if not axes and node.op == "ReduceLogSumExp":
        return x
    if node.op in FRACTIONS and is_integer(element_of(x)):
        keep = not axes or node.flag("keepdims", default=True)
        return astype(_whole(node.op, x, axes, keep), element_of(x))
    if not axes:
        return REDUCTIONS[node.op](x, axes, True)
    return REDUCTIONS[node.op](x, axes, node.flag("keepdims", default=True))


@operator("ArgMax", "ArgMin")
def arg_extreme(node: Node) -> ir.Value:
    """The index of an extreme element, the first or the last of equal ones."""
    op = graph.ArgmaxOp if node.op == "ArgMax" else graph.ArgminOp
    axis, keep = node.axis(0), node.flag("keepdims", default=True)
    x = node.tensor(0)
    if not node.flag("select_last_index"):
        return _i64(emit(op, x, axis=axis, keepdims=keep))
    extent = node.dims(0)[axis]
    x = node.tensor(0)
    index = _i64(emit(op, emit(graph.FlipOp, x, axes=[axis]), axis=axis, keepdims=keep))
    last = symbol(extent - 1, element_of(index))
    if graph.TensorType.of(last).dims:
        last = emit(graph.ReshapeOp, last, shape=[])
    return subtract(last, index)


def _i64(value: ir.Value) -> ir.Value:
    return astype(value, ir.IntegerType.get_signless(64))


@operator("CumSum", "CumProd")
def cumulative(node: Node) -> ir.Value:
    """Running sums or products along an axis."""
    if node.value(1) is None:
        raise ModelError("has no axis")
    (axis,) = node.integers(1, "axis")
    op = graph.CumsumOp if node.op == "CumSum" else graph.CumprodOp
    exclusive, reverse = (node.flag(name) for name in ("exclusive", "reverse"))
    axis = normalized(axis, node.rank())
    return emit(op, node.tensor(0), axis=axis, exclusive=exclusive, reverse=reverse)
