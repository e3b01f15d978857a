"""Solves linear equations for symbols, those too that no single one of them tells.

    m + n = a,  n - m = b       ->      2*n = a + b,  2*m = a - b

Coefficients of unknown symbols are constants; known ones may occur anywhere else. Gaussian
elimination over the rationals, equation by equation.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import TypeVar

from relax_mlir.symbolic.expr import Expr, const

T = TypeVar("T")

MOST_UNKNOWN = 32
"""Unknown symbols beyond which nothing is solved: annotations are text of users."""


@dataclass(frozen=True)
class JointSolution:
    """`divisor * symbol` is the sum of `weight * value` of equations, less `offset`.

    `weights` has pairs of the index of an equation and its weight.
    """

    symbol: str
    divisor: int
    weights: tuple[tuple[int, int], ...]
    offset: Expr


@dataclass
class _Row:
    """`sum(coefficient * symbol)` is the sum of `weight * value` of equations."""

    coefficients: dict[str, Fraction]
    weights: dict[int, Fraction]

    def subtract(self, other: "_Row", factor: Fraction) -> None:
        """Subtracts a multiple of another row."""
        _subtract(self.coefficients, other.coefficients, factor)
        _subtract(self.weights, other.weights, factor)


def _subtract(mine: dict[T, Fraction], its: Mapping[T, Fraction], factor: Fraction) -> None:
    for key, value in its.items():
        mine[key] = mine.get(key, Fraction()) - factor * value
        if not mine[key]:
            del mine[key]


def solve_jointly(sides: Sequence[Expr], known: Container[str]) -> list[JointSolution]:
    """The symbols, none of them known, that follow if all these expressions have values.

    Expressions that are not linear in what is unknown tell nothing.
    """
    split = {
        index: parts
        for index, side in enumerate(sides)
        if (parts := _split(side, known)) is not None
    }
    unknown = {name for coefficients, _ in split.values() for name in coefficients}
    if len(unknown) > MOST_UNKNOWN:
        return []
    pivots: dict[str, _Row] = {}
    for index, (coefficients, _) in split.items():
        row = _Row(coefficients, {index: Fraction(1)})
        for name, pivot in pivots.items():
            if name in row.coefficients:
                row.subtract(pivot, row.coefficients[name])
        if row.coefficients:
            _add(pivots, row)
    solved = {name: row for name, row in pivots.items() if len(row.coefficients) == 1}
    return [_solution(name, solved[name], split) for name in sorted(solved)]


def _split(side: Expr, known: Container[str]) -> tuple[dict[str, Fraction], Expr] | None:
    """The coefficients of unknown symbols and the rest, or None if it is not linear in them."""
    coefficients: dict[str, Fraction] = {}
    rest = []
    for monomial, coefficient in side.terms:
        if all(name in known for atom in monomial for name in atom.symbols):
            rest.append((monomial, coefficient))
        elif len(monomial) == 1 and monomial[0].kind == "symbol":
            coefficients[monomial[0].text] = Fraction(coefficient)
        else:
            return None
    return (coefficients, Expr(rest)) if coefficients else None


def _add(pivots: dict[str, _Row], row: _Row) -> None:
    """Adds a row that no pivot reduces, with a pivot of its own, and takes that out of others."""
    name = min(row.coefficients)
    lead = row.coefficients[name]
    row.coefficients = {key: value / lead for key, value in row.coefficients.items()}
    row.weights = {key: value / lead for key, value in row.weights.items()}
    for other in pivots.values():
        if name in other.coefficients:
            other.subtract(row, other.coefficients[name])
    pivots[name] = row


def _solution(
    name: str, row: _Row, split: dict[int, tuple[dict[str, Fraction], Expr]]
) -> JointSolution:
    divisor = lcm(*(weight.denominator for weight in row.weights.values()))
    weights = {index: int(weight * divisor) for index, weight in sorted(row.weights.items())}
    offset = sum((split[index][1] * weight for index, weight in weights.items()), const(0))
    return JointSolution(name, divisor, tuple(weights.items()), offset)
