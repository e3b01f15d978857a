"""Reductions of runs of slices: segment_reduce, embedding_bag."""

from collections.abc import Sequence
from typing import Any

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    arange,
    astype,
    binary,
    broadcast_to,
    concat,
    dims_of,
    divide,
    element_of,
    emit,
    expand_dims,
    greatest,
    least,
    less,
    maximum,
    multiply,
    reduce,
    scalar,
    subtract,
    where,
)
from relax_mlir.dialects import graph
from relax_mlir.symbolic import Expr, const

from ..call import Call
from ..registry import operator
from .shaping import sliced

REDUCTIONS = {"sum": "add", "mean": "add", "max": "max", "min": "min", "prod": "mul"}


def _i64() -> ir.Type:
    return ir.IntegerType.get_signless(64)


def _start(kind: str, element: ir.Type) -> float:
    """What a reduction makes of no elements."""
    return {"max": least(element), "min": greatest(element), "prod": 1}.get(kind, 0)


def _runs(offsets: ir.Value, count: Expr) -> ir.Value:
    """For each of so many positions the last run that begins there or before it, as i64."""
    lead = dims_of(offsets)[:-1]
    positions = broadcast_to(arange(0, count, 1, _i64()), [*lead, count])
    return subtract(emit(graph.SearchsortedOp, offsets, positions, right=True), 1)


def _reduced(data: ir.Value, runs: ir.Value, count: Expr, kind: str, start: Any) -> ir.Value:
    """Slices of the last axis of `runs` reduced, by the run of each; other runs are left out."""
    axis = len(dims_of(runs)) - 1
    dims = dims_of(data)
    outside = emit(graph.LogicalOrOp, less(runs, 0), emit(graph.GreaterEqualOp, runs, _at(count)))
    runs = where(outside, _at(count), runs)
    index = broadcast_to(expand_dims(runs, range(axis + 1, len(dims))), dims)
    base = broadcast_to(start, [*dims[:axis], count + 1, *dims[axis + 1 :]])
    settings = {"axis": axis, "reduction": REDUCTIONS[kind]}
    return sliced(
        emit(graph.ScatterElementsOp, base, index, data, **settings), axis, const(0), count
    )


def _at(value: Expr) -> ir.Value:
    return emit(graph.ArangeOp, bounds=[value, value + 1, 1], dtype=_i64())


@operator("segment_reduce")
def segment_reduce(
    call: Call,
    data: ir.Value,
    reduce: str,
    *,
    lengths: ir.Value | None = None,
    indices: ir.Value | None = None,
    offsets: ir.Value | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Any = None,
) -> ir.Value:
    """Runs of slices along an axis reduced, by the lengths of the runs, or by where they begin."""
    extent, element = dims_of(data)[axis], element_of(data)
    if lengths is not None:
        lengths = astype(lengths, _i64())
        if not unsafe:
            _check_lengths(lengths, extent)
        ends = emit(graph.CumsumOp, lengths, axis=axis, exclusive=False, reverse=False)
        zeros = broadcast_to(scalar(0, _i64()), [*dims_of(lengths)[:-1], 1])
        offsets = concat([zeros, ends], axis)
    assert offsets is not None
    offsets = astype(offsets, _i64())
    count = dims_of(offsets)[axis] - 1
    start = call.tensor(_start(reduce, element) if initial is None else initial, element)
    result = _reduced(data, _runs(offsets, extent), count, reduce, start)
    if reduce != "mean":
        return result
    ends, begins = (sliced(offsets, axis, const(i), count + i) for i in (1, 0))
    own = expand_dims(subtract(ends, begins), range(axis + 1, len(dims_of(data))))
    mean = divide(result, astype(maximum(own, 1), element))
    return where(binary(graph.GreaterOp, own, 0), mean, float("nan") if initial is None else start)


def _check_lengths(lengths: ir.Value, extent: Expr) -> None:
    """Ends the call unless runs cover an axis."""
    axes = list(range(len(dims_of(lengths))))
    positive = reduce(graph.AllOp, binary(graph.GreaterEqualOp, lengths, 0), axes)
    total = reduce(graph.SumOp, lengths, axes[-1:])
    whole = emit(graph.EqualOp, total, _at(extent))
    whole = reduce(graph.AllOp, whole, list(range(len(dims_of(whole)))))
    message = "segment_reduce has lengths that are negative, or do not add up to the axis"
    graph.AssertOp.build(emit(graph.LogicalAndOp, positive, whole), message)


BAGS = ("sum", "mean", "max")


@operator("_embedding_bag_forward_only", "_embedding_bag")
def embedding_bag(
    call: Call,
    weight: ir.Value,
    indices: ir.Value,
    offsets: ir.Value,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: ir.Value | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> Sequence[ir.Value | None]:
    """Rows of a table, reduced by bags of indices; an empty bag gives 0.

    The other results are for gradients alone.
    """
    kind, element = BAGS[mode], element_of(weight)
    rows = emit(graph.TakeOp, weight, indices, axis=0)
    if per_sample_weights is not None:
        rows = multiply(rows, expand_dims(per_sample_weights, [1]))
    count = dims_of(offsets)[0] - int(include_last_offset)
    runs = _runs(astype(offsets, _i64()), dims_of(indices)[0])
    if padding_idx >= 0:
        runs = where(binary(graph.EqualOp, indices, padding_idx), -1, runs)
    result = _reduced(rows, runs, count, kind, scalar(_start(kind, element), element))
    if kind == "sum":
        return result, None, None, None
    ones = broadcast_to(scalar(1, _i64()), dims_of(indices))
    sizes = _reduced(ones, runs, count, "sum", scalar(0, _i64()))
    sizes = expand_dims(sizes, [1])
    if kind == "mean":
        return divide(result, astype(maximum(sizes, 1), element)), None, None, None
    return where(binary(graph.GreaterOp, sizes, 0), result, 0), None, None, None
