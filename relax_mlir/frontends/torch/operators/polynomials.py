"""Orthogonal polynomials, by the recurrences between three of them.

Source: NIST Digital Library of Mathematical Functions, table 18.9.1.
"""

from collections.abc import Callable, Sequence
from typing import Any

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    add,
    astype,
    binary,
    broadcast_to,
    divide,
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

Next = Callable[[ir.Value, ir.Value, ir.Value, ir.Value], ir.Value]
"""From x, k, and the polynomials of degrees k and k - 1, the one of degree k + 1."""


def _chebyshev(x: ir.Value, k: ir.Value, now: ir.Value, before: ir.Value) -> ir.Value:
    return subtract(multiply(multiply(x, 2), now), before)


def _hermite(x: ir.Value, k: ir.Value, now: ir.Value, before: ir.Value) -> ir.Value:
    return multiply(_hermite_e(x, k, now, before), 2)


def _hermite_e(x: ir.Value, k: ir.Value, now: ir.Value, before: ir.Value) -> ir.Value:
    return subtract(multiply(x, now), multiply(k, before))


def _legendre(x: ir.Value, k: ir.Value, now: ir.Value, before: ir.Value) -> ir.Value:
    left = multiply(multiply(add(multiply(k, 2), 1), x), now)
    return divide(subtract(left, multiply(k, before)), add(k, 1))


def _laguerre(x: ir.Value, k: ir.Value, now: ir.Value, before: ir.Value) -> ir.Value:
    left = multiply(subtract(add(multiply(k, 2), 1), x), now)
    return divide(subtract(left, multiply(k, before)), add(k, 1))


FAMILIES: dict[str, tuple[float, float, Next]] = {
    "chebyshev_polynomial_t": (1, 0, _chebyshev),
    "chebyshev_polynomial_u": (2, 0, _chebyshev),
    "chebyshev_polynomial_v": (2, -1, _chebyshev),
    "chebyshev_polynomial_w": (2, 1, _chebyshev),
    "hermite_polynomial_h": (2, 0, _hermite),
    "hermite_polynomial_he": (1, 0, _hermite_e),
    "laguerre_polynomial_l": (-1, 1, _laguerre),
    "legendre_polynomial_p": (1, 0, _legendre),
}
"""Of each family the polynomial of degree 1, as factor and constant, and the next ones."""


def _polynomial(family: str, is_shifted: bool) -> Callable[..., ir.Value]:
    factor, constant, following = FAMILIES[family]

    def build(call: Call, x: Any, n: Any) -> ir.Value:
        i64 = ir.IntegerType.get_signless(64)
        x = broadcast_to(call.tensor(x, call.element), call.dims)
        n = broadcast_to(call.tensor(n, i64), call.dims)
        x = subtract(multiply(x, 2), 1) if is_shifted else x
        one = broadcast_to(scalar(1, call.element), call.dims)
        first = add(multiply(x, factor), constant)
        result = where(binary(graph.EqualOp, n, 0), one, 0)
        axes = list(range(call.rank(x)))

        def goes_on(k: ir.Value, *_: ir.Value) -> ir.Value:
            return truth_of(reduce(graph.AnyOp, binary(graph.GreaterEqualOp, n, k), axes))

        def turn(
            k: ir.Value, before: ir.Value, now: ir.Value, result: ir.Value
        ) -> Sequence[ir.Value]:
            result = where(binary(graph.EqualOp, n, k), now, result)
            degree = astype(k, call.element)
            return [add(k, 1), now, following(x, degree, now, before), result]

        return while_loop([scalar(1, i64), one, first, result], goes_on, turn)[3]

    return build


for _family in FAMILIES:
    for _prefix in ("", "shifted_"):
        _names = (f"special_{_prefix}{_family}{kind}" for kind in ("", ".x_scalar", ".n_scalar"))
        operator(*_names)(_polynomial(_family, bool(_prefix)))
