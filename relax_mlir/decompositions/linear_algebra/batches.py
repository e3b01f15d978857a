"""Batches of matrices: any dims in front of the last two become one."""

from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import ShapeError, dims_differ
from relax_mlir.dialects.graph import TensorType as Annotation
from relax_mlir.symbolic import product

from ..emit import (
    arange,
    dims_of,
    element_of,
    expand_dims,
    is_integer,
    permute,
    rank_of,
    reshape,
    widen,
    with_dims,
)


def matrices(x: ir.Value) -> ir.Value:
    """tensor<b, rows, columns> of floats, half precision widened."""
    if rank_of(x) < 2 or is_integer(element_of(x)):
        raise ShapeError(f"expects matrices of floats, but got '{Annotation.of(x)}'")
    *lead, rows, columns = dims_of(x)
    return reshape(widen(x), [product(lead), rows, columns])


def square_matrices(x: ir.Value) -> ir.Value:
    """tensor<b, n, n> of floats, half precision widened."""
    batch = matrices(x)
    b, n, columns = dims_of(batch)
    if dims_differ(n, columns):
        raise ShapeError(f"expects square matrices, but got {n} by {columns}")
    return with_dims(batch, [b, n, n])


def require_one_batch(a: ir.Value, b: ir.Value) -> None:
    """Raises ShapeError unless element types and the dims in front of matrices agree."""
    if element_of(a) != element_of(b):
        raise ShapeError(f"expects one element type, but got {element_of(a)} and {element_of(b)}")
    ours, theirs = dims_of(a)[:-2], dims_of(b)[:-2]
    if len(ours) != len(theirs) or any(map(dims_differ, ours, theirs)):
        shapes = (f"[{', '.join(map(str, dims))}]" for dims in (ours, theirs))
        raise ShapeError(f"expects one batch of matrices, but got {' and '.join(shapes)}")


def transposed(batch: ir.Value) -> ir.Value:
    """The last two axes exchanged."""
    return permute(batch, [0, 2, 1])


def row_indices(batch: ir.Value) -> ir.Value:
    """tensor<1, n>, the indices of rows."""
    return expand_dims(arange(0, dims_of(batch)[1], 1, ir.IntegerType.get_signless(64)), [0])
