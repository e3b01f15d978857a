"""Functions of mathematics, element by element."""

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
from ..registry import Function, operator

ELEMENTWISE = {
    "airy_ai": ("special_airy_ai",),
    "bessel_j0": ("special_bessel_j0",),
    "bessel_j1": ("special_bessel_j1",),
    "bessel_y0": ("special_bessel_y0",),
    "bessel_y1": ("special_bessel_y1",),
    "digamma": ("digamma", "special_digamma", "special_psi"),
    "erfc": ("erfc", "special_erfc"),
    "erfcx": ("special_erfcx",),
    "erfinv": ("erfinv", "special_erfinv"),
    "lgamma": ("lgamma", "special_gammaln"),
    "modified_bessel_i0": ("i0", "special_i0", "special_modified_bessel_i0"),
    "modified_bessel_i1": ("special_i1", "special_modified_bessel_i1"),
    "modified_bessel_k0": ("special_modified_bessel_k0",),
    "modified_bessel_k1": ("special_modified_bessel_k1",),
    "ndtri": ("special_ndtri",),
    "spherical_bessel_j0": ("special_spherical_bessel_j0",),
}
"""Functions of one operand, by the names that decompositions have, and their operators."""
SCALED = {
    "modified_bessel_i0": ("special_i0e",),
    "modified_bessel_i1": ("special_i1e",),
    "modified_bessel_k0": ("special_scaled_modified_bessel_k0",),
    "modified_bessel_k1": ("special_scaled_modified_bessel_k1",),
}
"""The same, without what lets them grow or fall exponentially."""


def _elementwise(name: str, **settings: bool) -> Function:
    def function(call: Call, x: ir.Value) -> ir.Value:
        result: ir.Value = getattr(d, name)(call.tensor(x, call.element), **settings)
        return result

    return function


for _name, _operators in ELEMENTWISE.items():
    operator(*_operators)(_elementwise(_name))
for _name, _operators in SCALED.items():
    operator(*_operators)(_elementwise(_name, scaled=True))


@operator("polygamma", "special_polygamma")
def polygamma(call: Call, n: int, x: ir.Value) -> ir.Value:
    """A derivative of the logarithm of the gamma function."""
    return d.polygamma(n, call.tensor(x, call.element))


@operator("special_zeta", "special_zeta.other_scalar", "special_zeta.self_scalar")
def zeta(call: Call, s: Any, q: Any) -> ir.Value:
    """Hurwitz' zeta function."""
    return d.zeta(call.tensor(s, call.element), call.tensor(q, call.element))


@operator("igamma", "special_gammainc")
def igamma(call: Call, a: ir.Value, x: ir.Value) -> ir.Value:
    """The lower incomplete gamma function, regularized."""
    return d.igamma(call.tensor(a, call.element), call.tensor(x, call.element))


@operator("igammac", "special_gammaincc")
def igammac(call: Call, a: ir.Value, x: ir.Value) -> ir.Value:
    """The upper one."""
    return d.igammac(call.tensor(a, call.element), call.tensor(x, call.element))


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
        is_done = binary(graph.EqualOp, y, 0)
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
    double = astype(x, ir.F64Type.get())
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
