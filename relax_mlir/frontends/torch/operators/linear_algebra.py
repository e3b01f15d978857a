"""Products of matrices."""

from typing import Any

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import add, dims_of, multiply, permute
from relax_mlir.errors import ModelError

from ..call import Call
from ..registry import operator


@operator("mm", "bmm", "matmul", "mv", "dot")
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


@operator("linalg_inv_ex")
def inverse(call: Call, x: ir.Value, check_errors: bool = False) -> Any:
    """The inverse, and 0, which says that there is one."""
    return d.inverse(x), None


@operator("linalg_cholesky_ex")
def cholesky(call: Call, x: ir.Value, upper: bool = False, check_errors: bool = False) -> Any:
    """The Cholesky factor, and 0."""
    return d.cholesky(x, lower=not upper), None
