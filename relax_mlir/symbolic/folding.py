"""Simplifies expressions under facts."""

from functools import lru_cache
from math import gcd

from relax_mlir.symbolic.atoms import Atom
from relax_mlir.symbolic.domain import Domain, Quotient, domain_of, expand_mod
from relax_mlir.symbolic.expr import DivisorError, Expr, apply, const, rewrite, single
from relax_mlir.symbolic.facts import Facts
from relax_mlir.symbolic.intervals import interval_of
from relax_mlir.symbolic.parser import as_expr
from relax_mlir.symbolic.relaxation import least


def simplify(expr: Expr | int | str, facts: Facts) -> Expr:
    """An expression that is equal under `facts`, with the operations folded that they decide.

    Symbols that the facts define are replaced: `m` by `2*n` under `m == 2*n`,
    `n floordiv 16 * 16` by `n` under `n mod 16 == 0`, `min(n, 8)` by `n` under `n <= 8`.
    """
    return _simplify(as_expr(expr), facts)


@lru_cache(maxsize=2048)
def _simplify(expr: Expr, facts: Facts) -> Expr:
    domain = domain_of(facts)
    if domain.empty:
        return expr
    try:
        folded = rewrite(expr.substitute(domain.solved), lambda atom: _fold(atom, domain))
    except DivisorError:
        return expr
    for quotient in reversed(domain.quotients):
        folded = _without_quotient(folded, quotient)
    return folded


def _without_quotient(expr: Expr, quotient: Quotient) -> Expr:
    """`expr` with the symbol of the quotient replaced by that of the dividend."""

    def replace_inside(atom: Atom) -> Expr:
        if atom.kind == "symbol":
            return single(atom)
        return apply(atom.kind, [_without_quotient(o, quotient) for o in atom.operands])

    if quotient.name not in expr.symbols:
        return expr
    result = const(0)
    for monomial, coefficient in expr.terms:
        count = sum(atom.text == quotient.name for atom in monomial)
        product = const(coefficient)
        for atom in monomial:
            if atom.text != quotient.name:
                product = product * replace_inside(atom)
        for _ in range(count):
            product = _times_quotient(product, quotient)
        result = result + product
    return result


def _times_quotient(factor: Expr, quotient: Quotient) -> Expr:
    symbol, divisor = single(Atom("symbol", quotient.symbol)), quotient.divisor
    if factor % divisor == 0:
        return factor // divisor * (symbol - quotient.remainder)
    if divisor.value is None or quotient.remainder:
        return factor * (symbol // divisor)
    # A factor of the divisor suffices: 8*(n / 16) is n floordiv 2.
    shared = gcd(divisor.value, *(c for _, c in factor.terms))
    scale = Expr((monomial, c // shared) for monomial, c in factor.terms)
    return scale * (symbol // (divisor.value // shared))


def refine(expr: Expr, domain: Domain) -> Expr:
    """`expr` with `mod` expanded, and the operations folded that the domain decides."""

    def fold(atom: Atom) -> Expr:
        folded = _fold(atom, domain)
        return rewrite(folded, expand_mod) if folded == single(atom) else folded

    return rewrite(expr, fold)


def _fold(atom: Atom, domain: Domain) -> Expr:
    """The operation, or a simpler expression that equals it on the whole domain."""
    if atom.kind in ("min", "max"):
        remaining: list[Expr] = []
        for operand in atom.operands:
            if any(_dominates(atom.kind, other, operand, domain) for other in remaining):
                continue
            remaining = [
                other for other in remaining if not _dominates(atom.kind, operand, other, domain)
            ]
            remaining.append(operand)
        return apply(atom.kind, remaining)
    dividend, divisor = atom.operands
    quotient = _quotient(dividend, divisor, domain)
    if quotient is None:
        return single(atom)
    return const(quotient) if atom.kind == "floordiv" else dividend - divisor * quotient


def _quotient(dividend: Expr, divisor: Expr, domain: Domain) -> int | None:
    low, high = interval_of(dividend, domain.ranges)
    if divisor.value is not None:
        if low is None or high is None or low // divisor.value != high // divisor.value:
            return None
        return low // divisor.value
    if low is None or low < 0 or least(_plain(divisor - 1 - dividend), domain) < 0:
        return None
    return 0


def _dominates(kind: str, lhs: Expr, rhs: Expr, domain: Domain) -> bool:
    return least(_plain(rhs - lhs if kind == "min" else lhs - rhs), domain) >= 0


def _plain(expr: Expr) -> Expr:
    return rewrite(expr, expand_mod)
