"""Distinct elements, of which there are as many as data says."""

from collections.abc import Sequence

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    astype,
    broadcast_to,
    concat,
    dims_of,
    emit,
    permute,
    reduce,
    reshape,
    scalar,
    subtract,
)
from relax_mlir.dialects import graph
from relax_mlir.symbolic import const, maximum, minimum, product

from ..call import Call
from ..registry import operator
from .shaping import sliced


def _distinct(x: ir.Value, axes: Sequence[int]) -> tuple[ir.Value, ir.Value, ir.Value]:
    op = graph.UniqueOp.build(x, axes=list(axes), sorted=True)
    values, _, inverse, counts = op.operation.results
    return values, inverse, counts


@operator("_unique2", "unique2")
def unique(
    call: Call,
    x: ir.Value,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> Sequence[ir.Value | None]:
    """The distinct elements in order; which of them each element is; how often there is each."""
    values, inverse, counts = _distinct(x, [])
    return (
        values,
        reshape(inverse, dims_of(x)) if return_inverse else None,
        counts if return_counts else None,
    )


@operator("unique_dim")
def unique_dim(
    call: Call,
    x: ir.Value,
    dim: int,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> Sequence[ir.Value | None]:
    """The distinct slices of an axis."""
    values, inverse, counts = _distinct(x, [call.axis(dim, call.rank(x))])
    return values, inverse if return_inverse else None, counts if return_counts else None


@operator("unique_consecutive")
def unique_consecutive(
    call: Call,
    x: ir.Value,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Sequence[ir.Value | None]:
    """What differs from the one before it, of elements or of slices of an axis.

    And which of them each is, and how often there is each in a row.
    """
    i1, i64 = (ir.IntegerType.get_signless(bits) for bits in (1, 64))
    axis = 0 if dim is None else call.axis(dim, call.rank(x))
    line = reshape(x, [product(dims_of(x))]) if dim is None else x
    count = dims_of(line)[axis]
    one = minimum(count, 1)
    after = sliced(line, axis, one, count)
    before = sliced(line, axis, const(0), maximum(count - 1, 0))
    others = [i for i in range(len(dims_of(line))) if i != axis]
    differs = emit(graph.NotEqualOp, after, before)
    differs = reduce(graph.AnyOp, differs, others) if others else differs
    begins = concat([broadcast_to(scalar(1, i1), [one]), differs], 0)
    order = [axis, *others]
    values = d.index_by_mask(permute(line, order), begins)
    sums = emit(graph.CumsumOp, astype(begins, i64), axis=0, exclusive=False, reverse=False)
    inverse = subtract(sums, 1)
    return (
        permute(values, [order.index(i) for i in range(len(order))]),
        reshape(inverse, dims_of(x) if dim is None else [count]) if return_inverse else None,
        _distinct(inverse, [])[2] if return_counts else None,
    )
