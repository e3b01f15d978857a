"""Contractions of any dims: dot_general, einsum, outer products, as permutations around matmul."""

from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError, dims_differ, normalize_axis
from relax_mlir.symbolic import Expr, product

from .emit import dims_of, emit, expand_dims, multiply, permute, rank_of, reshape


def dot_general(
    lhs: ir.Value,
    rhs: ir.Value,
    *,
    batch: tuple[Sequence[int], Sequence[int]] = ((), ()),
    contract: tuple[Sequence[int], Sequence[int]],
) -> ir.Value:
    """The sum of products over pairs of axes, for each index of the batch axes.

    `batch` and `contract` are axes of lhs and of rhs, in pairs. The result has the batch dims,
    the other dims of lhs, and those of rhs. Source: StableHLO `dot_general`.
    """
    shapes = dims_of(lhs), dims_of(rhs)
    for pair in (batch, contract):
        if len(pair[0]) != len(pair[1]):
            raise ShapeError(
                f"expects pairs of axes, but got {tuple(pair[0])} and {tuple(pair[1])}"
            )
    batches = [_axes(axes, dims) for axes, dims in zip(batch, shapes)]
    sums = [_axes(axes, dims) for axes, dims in zip(contract, shapes)]
    free = [
        [i for i in range(len(dims)) if i not in (*b, *c)]
        for dims, b, c in zip(shapes, batches, sums)
    ]
    for b, c in zip(batches, sums):
        if len({*b, *c}) != len(b) + len(c):
            raise ShapeError(f"expects distinct axes, but got {(*b, *c)}")
    for left, right in zip(*sums):
        if dims_differ(shapes[0][left], shapes[1][right]):
            raise ShapeError(f"contracts dim {shapes[0][left]} with dim {shapes[1][right]}")
    return _contract(lhs, rhs, batches, sums, free)


def _axes(axes: Sequence[int], dims: Sequence[Expr]) -> list[int]:
    return [normalize_axis(axis, len(dims)) for axis in axes]


def _contract(
    lhs: ir.Value,
    rhs: ir.Value,
    batches: Sequence[list[int]],
    sums: Sequence[list[int]],
    free: Sequence[list[int]],
) -> ir.Value:
    """Dims of one role become one; without a batch, those of lhs that come first stay."""
    rows, columns = ([dims_of(x)[i] for i in f] for x, f in zip((lhs, rhs), free))
    if not batches[0] and rows and [*free[0], *sums[0]] == list(range(rank_of(lhs))):
        left = reshape(lhs, [*rows, product([dims_of(lhs)[i] for i in sums[0]])])
    else:
        left = _matrices(lhs, batches[0], free[0], sums[0])
    result = emit(graph.MatmulOp, left, _matrices(rhs, batches[1], sums[1], free[1]))
    return reshape(result, [*dims_of(result)[: len(batches[0])], *rows, *columns])


def _matrices(
    value: ir.Value, batch: Sequence[int], rows: Sequence[int], columns: Sequence[int]
) -> ir.Value:
    """Matrices of the given axes; transposed ones where memory has them so."""
    if [*batch, *columns, *rows] == list(range(rank_of(value))):
        transposed, lead = _merged(value, len(batch), len(columns)), len(batch)
        return permute(transposed, [*range(lead), lead + 1, lead])
    return _merged(permute(value, [*batch, *rows, *columns]), len(batch), len(rows))


def _merged(value: ir.Value, lead: int, rows: int) -> ir.Value:
    """The leading dims, then the product of as many as there are rows, and of the others."""
    dims, end = dims_of(value), lead + rows
    return reshape(value, [*dims[:lead], product(dims[lead:end]), product(dims[end:])])


def matmul(lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    """The product of matrices or batches of them; a vector is a row on the left, else a column.

    The dim that a vector gets is dropped from the result. Source: array API 2023.12 `matmul`; ONNX
    `MatMul`.
    """
    ranks = rank_of(lhs), rank_of(rhs)
    if 0 in ranks:
        raise ShapeError(f"expects ranks of 1 at least, but got {ranks[0]} and {ranks[1]}")
    left = expand_dims(lhs, [0]) if ranks[0] == 1 else lhs
    right = expand_dims(rhs, [1]) if ranks[1] == 1 else rhs
    result = emit(graph.MatmulOp, left, right)
    dropped = [axis for axis, rank in ((-2, ranks[0]), (-1, ranks[1])) if rank == 1]
    return emit(graph.SqueezeOp, result, axes=dropped) if dropped else result


def outer(lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    """The product of each element of one vector with each of another. Source: TVM `relax.outer`."""
    if rank_of(lhs) != 1 or rank_of(rhs) != 1:
        raise ShapeError(f"expects vectors, but got ranks {rank_of(lhs)} and {rank_of(rhs)}")
    return multiply(expand_dims(lhs, [1]), expand_dims(rhs, [0]))
