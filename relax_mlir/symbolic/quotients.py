"""Lower bounds of sums of quotients, without a linear program.

    64*((4*n + 63) floordiv 64) - 4*n >= (4*n + 63 - 63) - 4*n = 0
    128*n - 64*((n + 3) floordiv 4) >= 128*n - 64*n = 64*n

Offsets in memory are sums of rounded sizes, of which such a bound often shows the order.
"""

from collections.abc import Mapping
from math import gcd

from relax_mlir.symbolic.atoms import Atom, Monomial
from relax_mlir.symbolic.expr import Expr, SymbolicError
from relax_mlir.symbolic.intervals import Interval, interval_of

MAX_STEPS = 32

Term = tuple[Monomial, int]


def bounded_nonnegative(expr: Expr, ranges: Mapping[str, Interval]) -> bool:
    """Whether intervals show it after quotients that stand against negative terms are bounded.

    False if they do not, whether or not it holds.
    """
    return any(_is_bounded(expr, ranges, whole) for whole in (False, True))


def _is_bounded(expr: Expr, ranges: Mapping[str, Interval], whole: bool) -> bool:
    try:
        for _ in range(MAX_STEPS):
            low, _ = interval_of(expr, ranges)
            if low is not None and low >= 0:
                return True
            bounded = _bounded(expr, ranges, whole)
            if bounded is None:
                return False
            expr = bounded
    except SymbolicError:  # too many terms
        pass
    return False


def _bounded(expr: Expr, ranges: Mapping[str, Interval], whole: bool) -> Expr | None:
    """A positive multiple of a lower bound of `expr` with one quotient less; None without any.

    In negative terms, x floordiv d is at most x / d, or with `whole`, if x = p + r, at most p.
    """
    negative = {monomial for monomial, coefficient in expr.terms if monomial and coefficient < 0}
    for term in expr.terms:
        for quotient in _quotients(term, ranges) if term[1] > 0 else ():
            numerator = _numerator(term, quotient)
            if any(monomial in negative for monomial, _ in numerator.terms):
                # x floordiv d >= (x - d + 1) / d
                rest = _without(term[0], quotient)
                return _replace(
                    expr, term, quotient, numerator - Expr(((rest, _divisor(quotient) - 1),))
                )
    for term in expr.terms:
        for quotient in _quotients(term, ranges) if term[1] < 0 else ():
            numerator = _numerator(term, quotient)
            if whole and (part := _rounded_up(quotient, ranges)) is not None:
                numerator = part * Expr(((_without(term[0], quotient), _divisor(quotient)),))
            return _replace(expr, term, quotient, numerator)
    return None


def _quotients(term: Term, ranges: Mapping[str, Interval]) -> list[Atom]:
    """The quotients by constants in a product of which the other factors are not negative."""
    return [
        atom
        for atom in term[0]
        if atom.kind == "floordiv"
        and _divisor(atom) > 0
        and _is_natural(_without(term[0], atom), ranges)
    ]


def _rounded_up(quotient: Atom, ranges: Mapping[str, Interval]) -> Expr | None:
    """The p >= 0 of (p + r) floordiv d with 0 <= r < d, which is at most p: 1 for p = 1."""
    dividend = quotient.operands[0]
    part = dividend - dividend.constant
    low, _ = interval_of(part, ranges)
    is_one = low is not None and low >= 0 and 0 <= dividend.constant < _divisor(quotient)
    return part if is_one else None


def _is_natural(monomial: Monomial, ranges: Mapping[str, Interval]) -> bool:
    low, _ = interval_of(Expr(((monomial, 1),)), ranges)
    return low is not None and low >= 0


def _divisor(quotient: Atom) -> int:
    return quotient.operands[1].value or 0


def _without(monomial: Monomial, atom: Atom) -> Monomial:
    index = monomial.index(atom)
    return monomial[:index] + monomial[index + 1 :]


def _numerator(term: Term, quotient: Atom) -> Expr:
    """The product with the dividend in place of a quotient."""
    return quotient.operands[0] * Expr(((_without(term[0], quotient), 1),))


def _replace(expr: Expr, term: Term, quotient: Atom, bound: Expr) -> Expr:
    """`expr` with `bound / divisor` in place of the product, times what makes it whole."""
    divisor = _divisor(quotient)
    scale = divisor // gcd(divisor, term[1])
    return (expr - Expr((term,))) * scale + bound * (term[1] * scale // divisor)
