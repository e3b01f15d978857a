"""Searches: bucketize, histc."""

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError
from relax_mlir.symbolic import product

from .emit import (
    add,
    astype,
    binary,
    broadcast_to,
    dims_of,
    divide,
    element_of,
    emit,
    is_integer,
    maximum,
    minimum,
    multiply,
    rank_of,
    reduce,
    reshape,
    scalar,
    subtract,
    where,
    widen,
)


def bucketize(value: ir.Value, boundaries: ir.Value, right: bool = False) -> ir.Value:
    """For each element the index of the bucket between sorted boundaries that it is in, as i64.

    An element that is a boundary belongs to the bucket below, with `right` to that above. Source:
    ATen `bucketize`; TVM `relax.bucketize`.
    """
    if rank_of(boundaries) != 1:
        raise ShapeError(f"expects boundaries of rank 1, but got rank {rank_of(boundaries)}")
    return emit(graph.SearchsortedOp, boundaries, value, right=right)


def histc(x: ir.Value, bins: int = 100, low: float = 0, high: float = 0) -> ir.Value:
    """How many elements are in each of so many parts of equal width, from low to high, as x's type.

    Both ends belong to a part. Where low is high, they are the least and the greatest element, or 1
    below and above if these are equal too. Source: ATen `histc`.
    """
    if is_integer(element_of(x)) or bins < 1 or low > high:
        kind = f"{bins} parts from {low} to {high} of {element_of(x)}"
        raise ShapeError(f"expects floats, and a part at least, but got {kind}")
    values = reshape(widen(x), [product(dims_of(x))])
    element, i64 = element_of(values), ir.IntegerType.get_signless(64)
    ends = [scalar(low, element), scalar(high, element)]
    if low == high:
        ends = [reduce(op, values, [0]) for op in (graph.MinOp, graph.MaxOp)]
        is_same = binary(graph.EqualOp, *ends)
        ends = [where(is_same, add(end, by), end) for end, by in zip(ends, (-1, 1))]
    first, last = ends
    above = binary(graph.GreaterEqualOp, values, first)
    inside = emit(graph.LogicalAndOp, above, binary(graph.LessEqualOp, values, last))
    part = divide(
        multiply(subtract(where(inside, values, first), first), bins), subtract(last, first)
    )
    index = maximum(minimum(astype(part, i64), bins - 1), 0)
    ones, zeros = astype(inside, i64), broadcast_to(scalar(0, i64), [bins])
    counts = emit(graph.ScatterElementsOp, zeros, index, ones, axis=0, reduction="add")
    return astype(counts, element_of(x))
