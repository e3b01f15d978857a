"""Products of matrices, einsum, determinants."""

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import add, multiply, permute

from ..node import Node
from ..registry import operator


@operator("MatMul")
def matmul(node: Node) -> ir.Value:
    """Products of matrices, in batches that broadcast."""
    return d.matmul(node.tensor(0), node.tensor(1))


@operator("Gemm", since=7)
def gemm(node: Node) -> ir.Value:
    """alpha * A B + beta * C."""
    a, b = node.tensor(0), node.tensor(1)
    a = permute(a, [1, 0]) if node.flag("transA") else a
    b = permute(b, [1, 0]) if node.flag("transB") else b
    result, alpha, beta = d.matmul(a, b), node.attribute("alpha", 1.0), node.attribute("beta", 1.0)
    result = result if alpha == 1 else multiply(result, alpha)
    if node.value(2) is None or beta == 0:
        return result
    c = node.tensor(2)
    return add(result, c if beta == 1 else multiply(c, beta))


@operator("FusedMatMul", domain="com.microsoft")
def fused_matmul(node: Node) -> ir.Value:
    """A product of matrices that may be transposed."""
    sides = []
    for i, name in enumerate(("transA", "transB")):
        x, rank = node.tensor(i), node.rank(i)
        if node.flag(name) and rank > 1:
            x = permute(x, [*range(rank - 2), rank - 1, rank - 2])
        sides.append(x)
    alpha = node.attribute("alpha", 1.0)
    result = d.matmul(*sides)
    return result if alpha == 1 else multiply(result, alpha)


@operator("Einsum")
def einsum(node: Node) -> ir.Value:
    """Sums of products, by an equation."""
    return d.einsum(node.required("equation"), *node.tensors())


@operator("Det")
def det(node: Node) -> ir.Value:
    """Determinants."""
    return d.det(node.tensor(0))
