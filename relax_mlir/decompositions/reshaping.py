"""Reshapes that leave one dim to be computed."""

from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import ShapeError
from relax_mlir.symbolic import Expr, as_expr, product

from . import emit
from .emit import dims_of

REST = -1
"""A dim that holds all elements that the others leave."""


def reshape(value: ir.Value, dims: Sequence[Expr | int | str]) -> ir.Value:
    """The elements in row-major order under other dims, of which one may be -1: what is left.

    Factors of both shapes cancel: of [a, b], [b, -1] is [b, a], also where b is 0. Source: array
    API 2023.12 `reshape`; ONNX `Reshape` with `allowzero`; TVM `relax.reshape`.
    """
    extents = [as_expr(dim) for dim in dims]
    axes = [i for i, extent in enumerate(extents) if extent.value == REST]
    if len(axes) > 1:
        raise ShapeError(f"expects one dim of -1 at most, but got {len(axes)}")
    for axis in axes:
        others = [extent for i, extent in enumerate(extents) if i != axis]
        extents[axis] = _quotient(list(dims_of(value)), others)
    return emit.reshape(value, extents)


def _quotient(factors: list[Expr], divisors: Sequence[Expr]) -> Expr:
    """The product of factors, divided by that of divisors; those of both cancel."""
    left = []
    for divisor in divisors:
        if divisor in factors:
            factors.remove(divisor)
        else:
            left.append(divisor)
    divisor = product(left)
    if divisor.value == 0:
        raise ShapeError("cannot tell the dim of -1 next to a dim of 0")
    return product(factors) // divisor
