"""Lower bounds of expressions by linear programming.

Every product of atoms is relaxed to a variable. Rows, which are non-negative expressions, tighten
the relaxation: the constraints of the domain, `d*q <= x <= d*q + d - 1` for `q = x floordiv d`,
`min(a, b) <= a`, the envelope of each product (G. McCormick, "Computability of global solutions to
factorable nonconvex programs", 1976) and products of rows with atoms.
"""

from collections.abc import Iterable, Iterator
from itertools import combinations
from math import gcd, inf

from relax_mlir.symbolic.atoms import Atom, Monomial
from relax_mlir.symbolic.domain import Domain
from relax_mlir.symbolic.expr import Expr, single
from relax_mlir.symbolic.intervals import interval_of
from relax_mlir.symbolic.simplex import minimize

MAX_MONOMIALS = 32
MAX_ROWS = 64
MAX_CUTS = 24


def least(expr: Expr, domain: Domain) -> float:
    """A lower bound of `expr` on `domain`: -inf if there is none, +inf if `domain` is empty.

    `expr` must not have `mod`: `x mod d` is `x - d*(x floordiv d)`.
    """
    low, _ = interval_of(expr, domain.ranges)
    if domain.empty:
        return inf
    if expr.value is not None and not domain.constraints:
        return expr.value
    relaxation = Relaxation(domain, expr)
    bound = relaxation.least(expr)
    return bound if low is None else max(bound, low)


class Relaxation:
    """The linear program of a domain, with the atoms of one expression."""

    def __init__(self, domain: Domain, expr: Expr) -> None:
        self.ranges = domain.ranges
        self.rows: list[Expr] = []
        self.known: set[Monomial] = set()
        self.width = 0
        self.cover(expr)
        wanted = {m for m in self.known if len(m) > 1}
        constraints = _related(expr, domain.constraints)
        for constraint in constraints:
            self.cover(constraint)
            self.rows.append(constraint)
        self.multiply_rows(set(constraints), wanted)

    def cover(self, expr: Expr) -> None:
        """Adds the products of `expr`, and rows that relate them, until all are covered."""
        for monomial, _ in expr.terms:
            if not monomial or monomial in self.known or len(self.known) >= MAX_MONOMIALS:
                continue
            self.known.add(monomial)
            for row in self.envelope(monomial):
                self.cover(row)
                self.rows.append(row)
            for atom in monomial:
                self.cover(single(atom))
            if len(monomial) == 1:
                for row in _definition(monomial[0]):
                    self.cover(row)
                    self.rows.append(row)

    def envelope(self, monomial: Monomial) -> Iterator[Expr]:
        """Products of the distances of two factors of `monomial` from their bounds."""
        if len(monomial) < 2 or len(monomial) > 3:
            return
        if monomial == monomial[:1] * 2:
            # The product of consecutive integers is non-negative.
            yield Expr(((monomial, 1), (monomial[:1], -1)))
        for index, atom in enumerate(monomial):
            others = Expr(((monomial[:index] + monomial[index + 1 :], 1),))
            for left in self.distances(single(atom)):
                for right in self.distances(others):
                    row = left * right
                    if len(row.terms) > 1:
                        yield row
            if len(monomial) == 2:
                return

    def distances(self, factor: Expr) -> list[Expr]:
        """The distance of `factor` from each finite bound of its range."""
        low, high = interval_of(factor, self.ranges)
        below = [] if low is None else [factor - low]
        return below if high is None else [*below, -factor + high]

    def multiply_rows(self, constraints: set[Expr], wanted: set[Monomial]) -> None:
        """Adds products of rows with atoms whose monomials are all covered already.

        For a constraint, one wanted product suffices: given `a + b <= c`, `a*d <= c*d`
        needs `b*d`, of which only the range is known.
        """
        products = {m for m in self.known if len(m) > 1}
        factors = {atom for monomial in products for atom in monomial}
        for atom in sorted(factors):
            low, _ = interval_of(single(atom), self.ranges)
            if low is None or low < 0:
                continue
            for row in list(self.rows):
                product = row * single(atom)
                new = [m for m, _ in product.terms if len(m) > 1 and m not in products]
                if not new:
                    self.cover(product)
                    self.rows.append(product)
                elif row in constraints and any(m in wanted for m, _ in product.terms):
                    self.rows.append(product)

    def cut(self, expr: Expr) -> None:
        """Adds integer bounds of floor divisions of `expr`, alone and in pairs.

        A sum of quotients loses the fraction of each when it is relaxed as a whole; bounds of
        single quotients and of pairs are rounded up before they are added.
        """
        quotients = [t for t in expr.terms if any(a.kind == "floordiv" for a in t[0])]
        parts = [Expr((term,)) for term in quotients]
        parts += [Expr(pair) for pair in combinations(quotients, 2) if pair[0][1] * pair[1][1] < 0]
        for part in parts[:MAX_CUTS]:
            bound = self.least(part)
            if bound not in (inf, -inf):
                self.rows.append(part - int(bound))

    def least(self, expr: Expr) -> float:
        """The least value of `expr` over the relaxation, rounded up to a possible value."""
        content = gcd(*(c for m, c in expr.terms if m))
        if not content:
            content = 1
        rows = list(dict.fromkeys(self.rows))[-MAX_ROWS:]
        monomials = dict.fromkeys(m for e in (expr, *rows) for m, _ in e.terms if m)
        columns = self.columns(list(monomials))
        limits = [limit for m in monomials for limit in self.upper_limit(m)]
        table = [self.affine(row, columns) for row in (*rows, *limits)]
        table = [row for row in table if row[1] < 0 or any(entry < 0 for entry in row[0])]
        costs, constant = self.affine(expr - expr.constant, columns)
        bound = minimize([cost // content for cost in costs], table)
        return bound if bound in (inf, -inf) else bound * content + constant + expr.constant

    def columns(self, monomials: list[Monomial]) -> dict[Monomial, tuple[int, int | None]]:
        """The column and the lower bound of each product; one without a bound has two columns."""
        columns, width = {}, 0
        for monomial in monomials:
            low, _ = interval_of(Expr(((monomial, 1),)), self.ranges)
            columns[monomial] = width, low
            width += 1 if low is not None else 2
        self.width = width
        return columns

    def upper_limit(self, monomial: Monomial) -> list[Expr]:
        """The distance of a product from the upper bound of its range, if that is finite."""
        product = Expr(((monomial, 1),))
        _, high = interval_of(product, self.ranges)
        return [] if high is None else [-product + high]

    def affine(
        self, expr: Expr, columns: dict[Monomial, tuple[int, int | None]]
    ) -> tuple[list[int], int]:
        """Coefficients and constant of `expr` over columns relative to the lower bounds."""
        row, constant = [0] * self.width, 0
        for monomial, coefficient in expr.terms:
            if not monomial:
                constant += coefficient
                continue
            column, low = columns[monomial]
            row[column] = coefficient
            if low is None:
                row[column + 1] = -coefficient
            else:
                constant += coefficient * low
        return row, constant


def _definition(atom: Atom) -> list[Expr]:
    """The rows that define an operation by its operands."""
    result = single(atom)
    if atom.kind == "floordiv":
        dividend, divisor = atom.operands
        remainder = dividend - divisor * result
        return [remainder, divisor - 1 - remainder]
    if atom.kind == "min":
        return [operand - result for operand in atom.operands]
    if atom.kind == "max":
        return [result - operand for operand in atom.operands]
    return []


def _related(expr: Expr, constraints: Iterable[Expr]) -> list[Expr]:
    """The constraints on symbols of `expr`, and, transitively, on symbols that they relate to."""
    symbols, waiting = set(expr.symbols), list(constraints)
    related: list[Expr] = []
    while True:
        tied = [c for c in waiting if not symbols.isdisjoint(c.symbols)]
        if not tied:
            return related
        related.extend(tied)
        waiting = [c for c in waiting if symbols.isdisjoint(c.symbols)]
        symbols.update(*(c.symbols for c in tied))
