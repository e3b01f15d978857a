"""Functions on intervals as Chebyshev's series, in f64."""

from collections.abc import Sequence

from relax_mlir.bindings import ir

from ..emit import add, astype, multiply, scalar, subtract, where
from .tables import Series


def as_double(x: ir.Value) -> ir.Value:
    """The elements as f64, in which special functions are computed."""
    return astype(x, ir.F64Type.get())


def evaluate(series: Series, x: ir.Value) -> ir.Value:
    """The series at x, by Clenshaw's recurrence; of no use outside of its interval."""
    return piecewise([], [series], x)


def piecewise(inside: Sequence[ir.Value], pieces: Sequence[Series], x: ir.Value) -> ir.Value:
    """The first series whose condition `inside` holds, else the last one, at x."""
    count = max(len(each.coefficients) for each in pieces)
    rows = [[*each.coefficients, *[0.0] * (count - len(each.coefficients))] for each in pieces]

    def chosen(values: Sequence[float]) -> ir.Value:
        result = scalar(values[-1], ir.F64Type.get())
        for condition, value in reversed(list(zip(inside, values))):
            result = where(condition, scalar(value, ir.F64Type.get()), result)
        return result

    steps = chosen([4 / (each.high - each.low) for each in pieces])
    centre = chosen([(each.high + each.low) / 2 for each in pieces])
    double = multiply(subtract(x, centre), steps)
    first, second = chosen([row[count - 1] for row in rows]), scalar(0, ir.F64Type.get())
    for index in reversed(range(1, count - 1)):
        following = add(subtract(multiply(double, first), second), chosen([r[index] for r in rows]))
        first, second = following, first
    half = multiply(multiply(double, 0.5), first)
    return add(subtract(half, second), chosen([row[0] for row in rows]))


def polynomial(x: ir.Value, coefficients: Sequence[float]) -> ir.Value:
    """The polynomial whose coefficients begin with that of 1, by Horner's scheme."""
    total = scalar(coefficients[-1], ir.F64Type.get())
    for coefficient in reversed(coefficients[:-1]):
        total = add(multiply(total, x), coefficient)
    return total
