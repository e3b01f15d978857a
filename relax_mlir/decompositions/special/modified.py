"""Modified Bessel functions of the first kind, of the orders 0 and 1."""

import math

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph

from ..emit import add, astype, divide, element_of, emit, greater, multiply, scalar, where
from .chebyshev import as_double


def modified_bessel_i0(x: ir.Value, *, scaled: bool = False) -> ir.Value:
    """That of order 0, or that times e^-|x|. Source: SciPy `i0 i0e`; ATen `i0 special_i0e`."""
    return _bessel(x, 0, scaled)


def modified_bessel_i1(x: ir.Value, *, scaled: bool = False) -> ir.Value:
    """That of order 1, or that times e^-|x|. Source: SciPy `i1 i1e`; ATen `special_i1 i1e`."""
    return _bessel(x, 1, scaled)


def _bessel(x: ir.Value, order: int, scaled: bool) -> ir.Value:
    double = as_double(x)
    size = emit(graph.AbsOp, double)
    is_large = greater(size, 20)
    small, large = where(is_large, 0, size), where(is_large, size, 20)
    low, high = _series(small, order), _decaying(large, order)
    if scaled:
        low = multiply(low, emit(graph.ExpOp, emit(graph.NegativeOp, small)))
    else:
        half = emit(graph.ExpOp, multiply(large, 0.5))  # e^x alone overflows before the product
        high = multiply(multiply(high, half), half)
    result = where(is_large, high, low)
    limit = scalar(0.0 if scaled else math.inf, ir.F64Type.get())
    result = where(emit(graph.IsinfOp, size), limit, result)
    result = where(emit(graph.IsnanOp, double), double, result)
    return astype(emit(graph.CopysignOp, result, double) if order else result, element_of(x))


def _series(x: ir.Value, order: int) -> ir.Value:
    """By its power series, up to 20."""
    quarter = multiply(multiply(x, x), 0.25)
    term = scalar(1, ir.F64Type.get()) if order == 0 else multiply(x, 0.5)
    total = add(multiply(quarter, 0), term)
    for k in range(1, 60):
        term = multiply(multiply(quarter, 1 / (k * (k + order))), term)
        total = add(total, term)
    return total


def _decaying(x: ir.Value, order: int) -> ir.Value:
    """e^-x times the function, by its asymptotic series, from 20."""
    factor, total = 1.0, scalar(1, ir.F64Type.get())
    inverse, power = divide(1, multiply(x, 8)), scalar(1, ir.F64Type.get())
    for k in range(1, 24):
        factor *= -(4 * order * order - (2 * k - 1) ** 2) / k
        power = multiply(power, inverse)
        total = add(total, multiply(power, factor))
    return divide(total, emit(graph.SqrtOp, multiply(x, 2 * math.pi)))
