"""Products of matrices, and distances of their rows."""

from collections.abc import Sequence
from typing import Any

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    add,
    binary,
    broadcast_to,
    dims_of,
    emit,
    expand_dims,
    multiply,
    permute,
    reduce,
    scalar,
    subtract,
    with_dims,
)
from relax_mlir.dialects import graph
from relax_mlir.errors import ModelError

from ..adapters import bilinear
from ..call import Call
from ..registry import operator
from .reductions import norm_of


@operator("mm", "bmm", "matmul", "mv", "dot", pairs=bilinear)
def matmul(call: Call, a: ir.Value, b: ir.Value) -> ir.Value:
    """A product of matrices, in batches."""
    return d.matmul(a, b)


@operator("linear")
def linear(call: Call, x: ir.Value, weight: ir.Value, bias: ir.Value | None = None) -> ir.Value:
    """x W^T + b."""
    product = d.matmul(x, permute(weight, list(reversed(range(len(dims_of(weight)))))))
    return product if bias is None else add(product, bias)


@operator("addmm", "baddbmm", "addmv")
def addmm(
    call: Call, c: ir.Value, a: ir.Value, b: ir.Value, beta: Any = 1, alpha: Any = 1
) -> ir.Value:
    """beta * C + alpha * A B."""
    product = d.matmul(a, b)
    product = product if alpha == 1 else multiply(product, call.tensor(alpha, call.element))
    if beta == 0:
        return product
    return add(product, c if beta == 1 else multiply(c, call.tensor(beta, call.element)))


@operator("_grouped_mm", "transformers::grouped_mm_fallback")
def grouped_mm(
    call: Call, x: ir.Value, weights: ir.Value, ends: ir.Value | None = None, *args: Any
) -> ir.Value:
    """Products of rows with the matrix of their group."""
    if ends is None or args:
        raise ModelError("has no ends of groups, or a bias, which is not supported")
    return d.grouped_mm(x, weights, ends)


@operator("einsum")
def einsum(call: Call, equation: str, operands: Any, path: Any = None) -> ir.Value:
    """Sums of products, by an equation."""
    return d.einsum(equation.replace(" ", ""), *operands)


@operator("addbmm")
def addbmm(
    call: Call, c: ir.Value, a: ir.Value, b: ir.Value, beta: Any = 1, alpha: Any = 1
) -> ir.Value:
    """beta * C + alpha * the sum of A B over a batch."""
    product = reduce(graph.SumOp, d.matmul(a, b), [0])
    product = multiply(product, call.tensor(alpha, call.element))
    return add(product, multiply(c, call.tensor(beta, call.element))) if beta else product


@operator("_trilinear")
def trilinear(
    call: Call,
    a: ir.Value,
    b: ir.Value,
    c: ir.Value,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> ir.Value:
    """A sum of products of three tensors, with dims of extent 1 at given axes."""
    parts = zip((a, b, c), (expand1, expand2, expand3), strict=True)
    first, second, third = (expand_dims(x, sorted(axes)) for x, axes in parts)
    return reduce(graph.SumOp, multiply(multiply(first, third), second), sorted(sumdim))


@operator("_cdist_forward")
def cdist(call: Call, a: ir.Value, b: ir.Value, order: float, mode: int | None) -> ir.Value:
    """Distances of all pairs of rows."""
    rank = call.rank(a)
    pairs = subtract(expand_dims(a, [rank - 1]), expand_dims(b, [call.rank(b) - 2]))
    return norm_of(pairs, order, [call.rank(pairs) - 1], False)


@operator("dist")
def dist(call: Call, a: ir.Value, b: ir.Value, order: float = 2) -> ir.Value:
    """The norm of a difference."""
    difference = subtract(a, b)
    return norm_of(difference, order, list(range(call.rank(difference))), False)


@operator("_pdist_forward")
def pdist(call: Call, x: ir.Value, order: float = 2) -> ir.Value:
    """Distances of all pairs of different rows, in order."""
    n, _ = dims_of(x)
    pairs = norm_of(subtract(expand_dims(x, [1]), expand_dims(x, [0])), order, [2], False)
    ones = broadcast_to(scalar(1, ir.IntegerType.get_signless(8)), [n, n])
    later = binary(graph.NotEqualOp, emit(graph.TriuOp, ones, k=1), 0)
    return with_dims(d.masked_select(pairs, later), call.dims)
