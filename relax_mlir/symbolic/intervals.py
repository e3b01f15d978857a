"""Integer intervals and their arithmetic; a bound that is None is infinite."""

from collections.abc import Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING

from relax_mlir.symbolic.atoms import Atom

if TYPE_CHECKING:
    from relax_mlir.symbolic.expr import Expr

Interval = tuple[int | None, int | None]

EVERYTHING: Interval = (None, None)
NATURAL: Interval = (0, None)


def add(lhs: Interval, rhs: Interval) -> Interval:
    """The sums of a value of `lhs` and a value of `rhs`."""
    low = None if lhs[0] is None or rhs[0] is None else lhs[0] + rhs[0]
    high = None if lhs[1] is None or rhs[1] is None else lhs[1] + rhs[1]
    return low, high


def scale(interval: Interval, factor: int) -> Interval:
    """The values of `interval` times `factor`."""
    if factor == 0:
        return 0, 0
    low, high = interval if factor > 0 else (interval[1], interval[0])
    return (
        None if low is None else low * factor,
        None if high is None else high * factor,
    )


def multiply(lhs: Interval, rhs: Interval) -> Interval:
    """The products of a value of `lhs` and a value of `rhs`."""
    ends = [_product(a, b) for a in _extended(lhs) for b in _extended(rhs)]
    low, high = min(ends), max(ends)
    return None if low == -inf else int(low), None if high == inf else int(high)


def _extended(interval: Interval) -> tuple[float, float]:
    low, high = interval
    return -inf if low is None else low, inf if high is None else high


def _product(lhs: float, rhs: float) -> float:
    if lhs == 0 or rhs == 0:
        return 0
    if abs(lhs) == inf or abs(rhs) == inf:
        return inf if (lhs > 0) == (rhs > 0) else -inf
    return lhs * rhs


def floordiv(lhs: Interval, rhs: Interval) -> Interval:
    """The quotients, rounded down, of `lhs` and the positive values of `rhs`."""
    least = max(1, rhs[0] or 1)
    most = None if rhs[1] is None else max(1, rhs[1])
    low, high = lhs
    if low is not None:
        if low < 0:
            low = low // least
        else:
            low = 0 if most is None else low // most
    if high is not None:
        if high >= 0:
            high = high // least
        else:
            high = -1 if most is None else high // most
    return low, high


def modulo(lhs: Interval, rhs: Interval) -> Interval:
    """The remainders of `lhs` and the positive values of `rhs`."""
    high = None if rhs[1] is None else max(1, rhs[1]) - 1
    if lhs[0] is not None and lhs[0] >= 0 and lhs[1] is not None:
        high = lhs[1] if high is None else min(high, lhs[1])
    return 0, high


def minimum(intervals: Sequence[Interval]) -> Interval:
    """The least of one value from each interval."""
    lows = [low for low, _ in intervals if low is not None]
    highs = [high for _, high in intervals if high is not None]
    return min(lows) if len(lows) == len(intervals) else None, min(highs) if highs else None


def maximum(intervals: Sequence[Interval]) -> Interval:
    """The greatest of one value from each interval."""
    lows = [low for low, _ in intervals if low is not None]
    highs = [high for _, high in intervals if high is not None]
    return max(lows) if lows else None, max(highs) if len(highs) == len(intervals) else None


def intersect(lhs: Interval, rhs: Interval) -> Interval:
    """The values in both; the lower bound exceeds the upper bound if there are none."""
    return maximum([lhs, rhs])[0], minimum([lhs, rhs])[1]


def interval_of(expr: "Expr", ranges: Mapping[str, Interval]) -> Interval:
    """An interval of all values of `expr`, each symbol in its range, or non-negative."""
    total: Interval = (0, 0)
    for monomial, coefficient in expr.terms:
        product: Interval = (1, 1)
        for index, atom in enumerate(monomial):
            factor = _atom_interval(atom, ranges)
            product = multiply(product, factor)
            # A square is non-negative, which interval arithmetic does not see.
            if index and atom == monomial[index - 1] and len(monomial) == 2:
                product = intersect(product, NATURAL)
        total = add(total, scale(product, coefficient))
    return total


def _atom_interval(atom: Atom, ranges: Mapping[str, Interval]) -> Interval:
    if atom.kind == "symbol":
        return ranges.get(atom.text, NATURAL)
    operands = [interval_of(o, ranges) if ranges else o.range for o in atom.operands]
    if atom.kind == "floordiv":
        return floordiv(*operands)
    if atom.kind == "mod":
        return modulo(*operands)
    return minimum(operands) if atom.kind == "min" else maximum(operands)
