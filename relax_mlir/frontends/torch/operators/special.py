"""Functions of mathematics that have no operator of their own, element by element."""

import math
from collections.abc import Sequence
from typing import Any

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    add,
    astype,
    binary,
    divide,
    element_of,
    emit,
    greater,
    is_integer,
    less,
    maximum,
    multiply,
    reduce,
    scalar,
    subtract,
    where,
)
from relax_mlir.decompositions.loops import truth_of, while_loop
from relax_mlir.dialects import graph

from ..call import Call
from ..registry import operator

LANCZOS = (
    *(0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313),
    *(-176.61502916214059, 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6),
    1.5056327351493116e-7,
)
"""Coefficients of the gamma function, for g = 7 (Lanczos, SIAM J. Num. An. B 1, 1964)."""
SHIFT = 10


def _as_double(x: ir.Value) -> ir.Value:
    return astype(x, ir.F64Type.get())


def _log(x: ir.Value) -> ir.Value:
    return emit(graph.LogOp, x)


def _is(x: ir.Value, value: Any) -> ir.Value:
    return binary(graph.EqualOp, x, value)


@operator("lgamma", "special_gammaln")
def lgamma(call: Call, x: ir.Value) -> ir.Value:
    """The logarithm of the absolute value of the gamma function."""
    double = _as_double(x)
    is_low = less(double, 0.5)
    z = subtract(where(is_low, subtract(1, double), double), 1)
    total = scalar(LANCZOS[0], ir.F64Type.get())
    for index, coefficient in enumerate(LANCZOS[1:], 1):
        total = add(total, divide(coefficient, add(z, index)))
    t = add(z, len(LANCZOS) - 1.5)
    series = add(_log(total), math.log(2 * math.pi) / 2)
    result = add(series, subtract(multiply(add(z, 0.5), _log(t)), t))
    fraction = subtract(double, emit(graph.RoundOp, double))
    sine = emit(graph.AbsOp, emit(graph.SinOp, multiply(fraction, math.pi)))
    reflected = subtract(subtract(math.log(math.pi), _log(sine)), result)
    result = where(is_low, reflected, result)
    return astype(where(emit(graph.IsinfOp, double), math.inf, result), call.element)


@operator("digamma", "special_digamma", "special_psi")
def digamma(call: Call, x: ir.Value) -> ir.Value:
    """The derivative of the logarithm of the gamma function."""
    double = _as_double(x)
    is_low = less(double, 0)
    z = where(is_low, subtract(1, double), double)
    shifted = add(z, SHIFT)
    inverse = divide(1, multiply(shifted, shifted))
    series = scalar(-691 / 32760, ir.F64Type.get())
    for coefficient in (1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12):
        series = add(multiply(series, inverse), coefficient)
    result = subtract(_log(shifted), add(divide(0.5, shifted), multiply(series, inverse)))
    for index in range(SHIFT):
        result = subtract(result, divide(1, add(z, index)))
    fraction = subtract(double, emit(graph.RoundOp, double))
    tangent = emit(graph.TanOp, multiply(fraction, math.pi))
    reflected = subtract(result, divide(math.pi, tangent))
    reflected = where(_is(fraction, 0), math.nan, reflected)
    result = where(is_low, reflected, result)
    pole = emit(
        graph.CopysignOp, scalar(math.inf, ir.F64Type.get()), emit(graph.NegativeOp, double)
    )
    return astype(where(_is(double, 0), pole, result), call.element)


@operator("fmax")
def fmax(call: Call, a: ir.Value, b: ir.Value) -> ir.Value:
    """The greater element; of a NaN and another one that."""
    return _but_for_nan(call, graph.MaximumOp, a, b)


@operator("fmin")
def fmin(call: Call, a: ir.Value, b: ir.Value) -> ir.Value:
    """The smaller element; of a NaN and another one that."""
    return _but_for_nan(call, graph.MinimumOp, a, b)


def _but_for_nan(call: Call, op: type[graph.InferredOp], a: ir.Value, b: ir.Value) -> ir.Value:
    x, y = call.tensor(a, call.element), call.tensor(b, call.element)
    if is_integer(element_of(x)):
        return emit(op, x, y)
    result = where(emit(graph.IsnanOp, y), x, emit(op, x, y))
    return where(emit(graph.IsnanOp, x), y, result)


@operator("ldexp.Tensor")
def ldexp(call: Call, x: ir.Value, exponent: ir.Value) -> ir.Value:
    """x times a power of 2."""
    power = binary(graph.PowerOp, 2, call.tensor(exponent, call.element))
    return multiply(call.tensor(x, call.element), power)


@operator("round.decimals")
def round_decimals(call: Call, x: ir.Value, decimals: int = 0) -> ir.Value:
    """Elements with so many decimal digits."""
    if is_integer(element_of(x)):
        return x
    factor = 10.0 ** abs(decimals)
    if decimals >= 0:
        return divide(emit(graph.RoundOp, multiply(x, factor)), factor)
    return multiply(emit(graph.RoundOp, divide(x, factor)), factor)


def _common_divisor(call: Call, a: ir.Value, b: ir.Value) -> ir.Value:
    """The greatest common divisor, by rounds of Euclid's for all elements."""
    x, y = (emit(graph.AbsOp, call.tensor(each, call.element)) for each in (a, b))
    x, y = add(x, multiply(y, 0)), add(y, multiply(x, 0))
    axes = list(range(call.rank(x)))

    def goes_on(x: ir.Value, y: ir.Value) -> ir.Value:
        return truth_of(reduce(graph.AnyOp, binary(graph.NotEqualOp, y, 0), axes))

    def turn(x: ir.Value, y: ir.Value) -> Sequence[ir.Value]:
        is_done = _is(y, 0)
        rest = emit(graph.RemainderOp, x, where(is_done, 1, y))
        return [where(is_done, x, y), where(is_done, 0, rest)]

    return while_loop([x, y], goes_on, turn)[0]


@operator("gcd")
def gcd(call: Call, a: ir.Value, b: ir.Value) -> ir.Value:
    """The greatest common divisor."""
    return _common_divisor(call, a, b)


@operator("lcm")
def lcm(call: Call, a: ir.Value, b: ir.Value) -> ir.Value:
    """The least common multiple."""
    divisor = _common_divisor(call, a, b)
    x, y = call.tensor(a, call.element), call.tensor(b, call.element)
    part = emit(graph.FloorDivideOp, x, maximum(divisor, 1))
    return emit(graph.AbsOp, multiply(part, y))


@operator("frexp.Tensor")
def frexp(call: Call, x: ir.Value) -> Sequence[ir.Value]:
    """A fraction of at least 1/2 and less than 1, and the power of 2 that it is times."""
    double = _as_double(x)
    i64, i32 = (ir.IntegerType.get_signless(bits) for bits in (64, 32))
    is_tiny = less(emit(graph.AbsOp, double), 2.0**-1022)
    scaled = where(is_tiny, multiply(double, 2.0**54), double)
    bits = d.bitcast(scaled, i64)
    field = binary(graph.BitwiseAndOp, binary(graph.RightShiftOp, bits, 52), 0x7FF)
    exponent = subtract(field, where(is_tiny, scalar(1076, i64), scalar(1022, i64)))
    halves = binary(graph.BitwiseAndOp, bits, -(0x7FF << 52) - 1)
    mantissa = d.bitcast(binary(graph.BitwiseOrOp, halves, 1022 << 52), ir.F64Type.get())
    finite = emit(graph.IsfiniteOp, double)
    is_plain = emit(graph.LogicalAndOp, finite, binary(graph.NotEqualOp, double, 0))
    values = where(is_plain, mantissa, double)
    return astype(values, element_of(x)), astype(where(is_plain, exponent, 0), i32)


@operator("special_erfinv", "erfinv")
def erfinv(call: Call, x: ir.Value) -> ir.Value:
    """The inverse of the error function, by steps of Newton's from an estimate (Winitzki)."""
    double = _as_double(call.tensor(x, call.element))
    log = emit(graph.Log1pOp, emit(graph.NegativeOp, multiply(double, double)))
    half = add(multiply(log, 0.5), 2 / (math.pi * 0.147))
    root = emit(graph.SqrtOp, subtract(multiply(half, half), divide(log, 0.147)))
    y = emit(graph.CopysignOp, emit(graph.SqrtOp, maximum(subtract(root, half), 0)), double)
    for _ in range(3):
        slope = multiply(emit(graph.ExpOp, emit(graph.NegativeOp, multiply(y, y))), 2)
        missing = subtract(emit(graph.ErfOp, y), double)
        step = divide(multiply(missing, math.sqrt(math.pi)), slope)
        y = subtract(y, where(emit(graph.IsfiniteOp, step), step, 0))
    size = emit(graph.AbsOp, double)
    edge = emit(graph.CopysignOp, scalar(math.inf, ir.F64Type.get()), double)
    y = where(_is(size, 1), edge, y)
    inside = emit(graph.LogicalNotOp, greater(size, 1))
    return astype(where(inside, y, math.nan), call.element)


def _series(x: ir.Value, order: int) -> ir.Value:
    """The modified Bessel function of the first kind, by its power series, up to 20."""
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


def _bessel(call: Call, x: ir.Value, order: int, scaled: bool) -> ir.Value:
    double = _as_double(call.tensor(x, call.element))
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
    return astype(emit(graph.CopysignOp, result, double) if order else result, call.element)


@operator("i0", "special_i0")
def i0(call: Call, x: ir.Value) -> ir.Value:
    """The modified Bessel function of order 0."""
    return _bessel(call, x, 0, scaled=False)


@operator("special_i0e")
def i0e(call: Call, x: ir.Value) -> ir.Value:
    """The same times e^-|x|."""
    return _bessel(call, x, 0, scaled=True)


@operator("special_i1")
def i1(call: Call, x: ir.Value) -> ir.Value:
    """The modified Bessel function of order 1."""
    return _bessel(call, x, 1, scaled=False)


@operator("special_i1e")
def i1e(call: Call, x: ir.Value) -> ir.Value:
    """The same times e^-|x|."""
    return _bessel(call, x, 1, scaled=True)
