"""Orders."""

from collections.abc import Sequence
from typing import Any

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import astype, element_of, is_integer, reshape
from relax_mlir.dialects import graph

from ..call import Call
from ..registry import operator


def _i64(value: ir.Value) -> ir.Value:
    return astype(value, ir.IntegerType.get_signless(64))


@operator("sort")
def sort(call: Call, x: ir.Value, dim: int = -1, descending: bool = False) -> Sequence[ir.Value]:
    """Elements in order, and where they were."""
    if not call.rank(x):
        return x, d.emit.scalar(0, ir.IntegerType.get_signless(64))
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
        return x, d.emit.scalar(0, ir.IntegerType.get_signless(64))
    axis = call.axis(dim, call.rank(x))
    op = graph.TopkOp.build(x, k=[call.expr(k)], axis=axis, largest=largest)
    values, indices = op.operation.results
    return values, _i64(indices)


@operator("histc")
def histc(call: Call, x: ir.Value, bins: int = 100, low: Any = 0, high: Any = 0) -> ir.Value:
    """How many elements are in each of so many parts."""
    x = call.tensor(x, call.element)
    if is_integer(element_of(x)):
        x = astype(x, ir.F32Type.get())
    return astype(d.histc(x, bins, float(low), float(high)), call.element)


@operator("bucketize.Tensor")
def bucketize(
    call: Call, x: ir.Value, boundaries: ir.Value, out_int32: bool = False, right: bool = False
) -> ir.Value:
    """Between which boundaries elements are."""
    shape = graph.TensorType.of(x).dims
    result = d.bucketize(x, boundaries, right)
    return astype(reshape(result, list(shape or ())), call.element)
