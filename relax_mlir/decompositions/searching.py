"""Searches: bucketize."""

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError

from .emit import emit, rank_of


def bucketize(value: ir.Value, boundaries: ir.Value, right: bool = False) -> ir.Value:
    """For each element the index of the bucket between sorted boundaries that it is in, as i64.

    An element that is a boundary belongs to the bucket below, with `right` to that above. Source:
    ATen `bucketize`; TVM `relax.bucketize`.
    """
    if rank_of(boundaries) != 1:
        raise ShapeError(f"expects boundaries of rank 1, but got rank {rank_of(boundaries)}")
    return emit(graph.SearchsortedOp, boundaries, value, right=right)
