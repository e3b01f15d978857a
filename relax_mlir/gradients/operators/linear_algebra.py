"""Gradients of matrix products: products with the other side transposed."""

from relax_mlir.bindings import ir
from relax_mlir.decompositions import dot_general
from relax_mlir.decompositions.emit import emit, permute, rank_of
from relax_mlir.dialects import graph
from relax_mlir.gradients.reverse import Adjoint, Contributions


def transposed(matrices: ir.Value) -> ir.Value:
    """The last two dims exchanged."""
    *batch, rows, columns = range(rank_of(matrices))
    return permute(matrices, [*batch, columns, rows])


def matmul(op: graph.MatmulOp, adjoint: Adjoint) -> Contributions:
    """g b^T and a^T g; of one matrix for a batch, the latter is one product over all rows."""
    a, b, seed = op.lhs, op.rhs, adjoint.seed
    if adjoint.wants(a):
        yield a, emit(graph.MatmulOp, seed, transposed(b))
    if adjoint.wants(b) and rank_of(b) == 2:
        rows = range(rank_of(a) - 1)
        yield b, dot_general(a, seed, contract=(rows, rows))
    elif adjoint.wants(b):
        yield b, emit(graph.MatmulOp, transposed(a), seed)
