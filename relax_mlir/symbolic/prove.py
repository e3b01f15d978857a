"""Three-valued verdicts on expressions under facts."""

from dataclasses import dataclass

from relax_mlir.symbolic.expr import Expr
from relax_mlir.symbolic.facts import Facts
from relax_mlir.symbolic.parser import as_expr

NO_FACTS = Facts()


@dataclass(frozen=True)
class Verdict:
    """Proved, refuted by a counterexample, or unknown; never simply true or false."""

    proved: bool = False
    counterexample: dict[str, int] | None = None

    @property
    def refuted(self) -> bool:
        """Whether an assignment that the facts allow contradicts the claim."""
        return self.counterexample is not None

    @property
    def unknown(self) -> bool:
        """Whether the claim was neither proved nor refuted."""
        return not self.proved and self.counterexample is None

    def __bool__(self) -> bool:
        raise TypeError("a verdict has three values; ask .proved, .refuted or .unknown")


def equal(lhs: Expr | int | str, rhs: Expr | int | str, facts: Facts = NO_FACTS) -> Verdict:
    """Whether both sides agree for every assignment that the facts allow."""
    gap = as_expr(lhs) - as_expr(rhs)
    if gap.value is not None:
        return Verdict(True) if gap.value == 0 else Verdict(False, {})
    return Verdict()


def at_most(lhs: Expr | int | str, rhs: Expr | int | str, facts: Facts = NO_FACTS) -> Verdict:
    """Whether `lhs <= rhs` for every assignment that the facts allow."""
    low, _ = (as_expr(rhs) - as_expr(lhs)).range
    if low is not None and low >= 0:
        return Verdict(True)
    return Verdict()


def differ(lhs: Expr | int | str, rhs: Expr | int | str, facts: Facts = NO_FACTS) -> Verdict:
    """Whether the sides differ for every assignment that the facts allow."""
    gap = as_expr(lhs) - as_expr(rhs)
    low, high = gap.range
    if (low is not None and low > 0) or (high is not None and high < 0):
        return Verdict(True)
    return Verdict(False, {}) if gap == 0 else Verdict()


def bounds(expr: Expr | int | str, facts: Facts = NO_FACTS) -> tuple[int | None, int | None]:
    """An interval of all values under the facts; None is an infinite end."""
    return as_expr(expr).range


def solve(expr: Expr | int | str, symbol: str) -> tuple[Expr, Expr] | None:
    """`(a, b)` with `expr = a*symbol + b`, `a` a positive constant and `b` free of `symbol`."""
    target = as_expr(expr)
    linear = [c for m, c in target.terms if len(m) == 1 and m[0].text == symbol]
    rest = target.substitute({symbol: 0})
    if not linear or linear[0] <= 0:
        return None
    if any(
        symbol in a.symbols
        for m, _ in target.terms
        if len(m) != 1 or m[0].text != symbol
        for a in m
    ):
        return None
    return as_expr(linear[0]), rest
