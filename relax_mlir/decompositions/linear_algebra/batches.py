"""Batches of matrices: any dims in front of the last two become one."""

from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError, dims_differ
from relax_mlir.dialects.graph import TensorType as Annotation
from relax_mlir.symbolic import Expr, minimum, product

from ..emit import (
    add,
    arange,
    astype,
    broadcast_to,
    dims_of,
    dims_text,
    element_of,
    emit,
    expand_dims,
    is_integer,
    multiply,
    permute,
    rank_of,
    reduce,
    reshape,
    scalar,
    subtract,
    where,
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


def vectors(x: ir.Value, a: ir.Value, length: Expr, what: str) -> ir.Value:
    """tensor<b, length>, with the dims in front that the matrices have; `what` for messages."""
    wanted = [*dims_of(a)[:-2], length]
    own = dims_of(x)
    if len(own) != len(wanted) or any(map(dims_differ, own, wanted)):
        shape = f"[{', '.join(map(str, wanted))}]"
        raise ShapeError(f"expects {what} of shape {shape}, but got '{Annotation.of(x)}'")
    flat = reshape(with_dims(x, wanted), [product(wanted[:-1]), length])
    return flat if is_integer(element_of(x)) else widen(flat)


def unbatched(x: ir.Value, like: ir.Value, dims: Sequence[Expr] | None = None) -> ir.Value:
    """tensor<b, ...> in the batch of matrices, and in their element type if it is of floats."""
    lead = dims_of(like)[:-2]
    result = reshape(x, [*lead, *(dims_of(x)[1:] if dims is None else dims)])
    return result if is_integer(element_of(x)) else astype(result, element_of(like))


def require_one_batch(a: ir.Value, b: ir.Value) -> None:
    """Raises ShapeError unless element types and the dims in front of matrices agree."""
    if element_of(a) != element_of(b):
        raise ShapeError(f"expects one element type, but got {element_of(a)} and {element_of(b)}")
    ours, theirs = dims_of(a)[:-2], dims_of(b)[:-2]
    if len(ours) != len(theirs) or any(map(dims_differ, ours, theirs)):
        shapes = f"{dims_text(ours)} and {dims_text(theirs)}"
        raise ShapeError(f"expects one batch of matrices, but got {shapes}")


def transposed(batch: ir.Value) -> ir.Value:
    """The last two axes exchanged."""
    return permute(batch, [0, 2, 1])


def row_indices(batch: ir.Value) -> ir.Value:
    """tensor<1, n>, the indices of rows."""
    return indices(batch, 1)


def indices(batch: ir.Value, axis: int) -> ir.Value:
    """tensor<1, n>, the indices of an axis."""
    return expand_dims(arange(0, dims_of(batch)[axis], 1, ir.IntegerType.get_signless(64)), [0])


def eye(rows: Expr, columns: Expr, element: ir.Type) -> ir.Value:
    """tensor<rows, columns> with 1 on the diagonal."""
    return emit(graph.EyeOp, shape=[rows, columns], k=0, dtype=element)


def identities(batch: Expr, rows: Expr, columns: Expr, element: ir.Type) -> ir.Value:
    """tensor<b, rows, columns> with 1 on the diagonals."""
    return broadcast_to(eye(rows, columns, element), [batch, rows, columns])


def zeros(dims: Sequence[Expr], element: ir.Type) -> ir.Value:
    """A tensor of zeros."""
    return broadcast_to(scalar(0, element), dims)


def shorter(batch: ir.Value) -> Expr:
    """The smaller one of the counts of rows and columns: how long a diagonal is."""
    _, rows, columns = dims_of(batch)
    return minimum(rows, columns)


def diagonals(batch: ir.Value) -> ir.Value:
    """tensor<b, min(rows, columns)>, the elements on the diagonals."""
    _, rows, columns = dims_of(batch)
    is_diagonal = eye(rows, columns, ir.IntegerType.get_signless(1))
    of_rows = reduce(graph.SumOp, where(is_diagonal, batch, 0), [2])
    return first(of_rows, 1, shorter(batch))


def first(x: ir.Value, axis: int, count: Expr) -> ir.Value:
    """So many leading slices along an axis."""
    if dims_of(x)[axis] == count:
        return x
    bounds = {"begin": [0], "end": [count], "strides": [1]}
    return emit(graph.StridedSliceOp, x, axes=[axis], **bounds)


def sorted_rows(batch: ir.Value, order: ir.Value) -> ir.Value:
    """Rows of matrices in the orders that tensor<b, rows> says."""
    return emit(graph.GatherNdOp, batch, expand_dims(order, [2]), batch_dims=1)


def first_true(flags: ir.Value) -> ir.Value:
    """tensor<b>: from 1, the position of the first true one of tensor<b, n>, as i32; or 0."""
    i32 = ir.IntegerType.get_signless(32)
    is_false = astype(emit(graph.LogicalNotOp, flags), i32)
    leading = emit(graph.CumprodOp, is_false, axis=1, exclusive=False, reverse=False)
    position = add(reduce(graph.SumOp, leading, [1]), 1)
    return multiply(position, subtract(1, reduce(graph.ProdOp, is_false, [1])))
