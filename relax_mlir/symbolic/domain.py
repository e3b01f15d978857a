"""Facts prepared for proofs: equalities substituted, inequalities, a range for each symbol.

n mod 16 == 0, m == 2*n, n <= 64    ->    n = 16*q, m = 32*q, 64 - 16*q >= 0, q in [0, 4]
"""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import gcd

from relax_mlir.symbolic import intervals
from relax_mlir.symbolic.atoms import Atom, Monomial
from relax_mlir.symbolic.expr import DivisorError, Expr, rewrite, single
from relax_mlir.symbolic.facts import Fact, Facts
from relax_mlir.symbolic.intervals import Interval, interval_of

ROUNDS = 4


@dataclass(frozen=True)
class Quotient:
    """A symbol `name` that is defined as `(symbol - remainder) / divisor`, which is exact."""

    name: str
    symbol: str
    divisor: Expr
    remainder: int


@dataclass(frozen=True)
class Domain:
    """The assignments under which a claim must hold.

    `solved` maps eliminated symbols to expressions over the remaining symbols; everything else is
    over remaining symbols: `constraints` are non-negative, `distinct` are nonzero, and each symbol
    is in its range, or only non-negative without one. `empty` means that there is provably no
    assignment. `quotients` are the symbols that occur in no fact, oldest first.
    """

    solved: Mapping[str, Expr]
    constraints: tuple[Expr, ...]
    distinct: tuple[Expr, ...]
    ranges: Mapping[str, Interval]
    quotients: tuple[Quotient, ...] = ()
    empty: bool = False

    @classmethod
    def nothing(cls) -> "Domain":
        """The domain without assignments."""
        return cls({}, (), (), {}, (), empty=True)

    def assume(self, constraints: Iterable[Expr]) -> "Domain":
        """The domain with more non-negative expressions."""
        new = [rewrite(c, expand_mod) for c in constraints]
        new = [c for c in new if c not in self.constraints and not self.implies(c)]
        if not new:
            return self
        together = (*self.constraints, *new)
        ranges = tighten(together, self.ranges)
        if ranges is None:
            return replace(self, constraints=together, empty=True)
        return replace(self, constraints=together, ranges=ranges)

    def substitute(self, values: Mapping[str, Expr]) -> "Domain":
        """The domain with remaining symbols replaced; raises DivisorError as Expr does."""
        distinct = tuple(gap.substitute(values) for gap in self.distinct)
        fresh = replace(self, constraints=(), distinct=distinct, ranges={})
        return fresh.assume(c.substitute(values) for c in self.constraints)

    def implies(self, constraint: Expr) -> bool:
        """Whether ranges alone prove that `constraint` is non-negative."""
        low, _ = interval_of(constraint, self.ranges)
        return low is not None and low >= 0


@lru_cache(maxsize=512)
def domain_of(facts: Facts) -> Domain:
    """The domain of the assignments that make all `facts` true."""
    try:
        return _domain_of(facts)
    except DivisorError:
        return Domain.nothing()


def _domain_of(facts: Facts) -> Domain:
    solver = _solver_of(facts.items)
    constraints, distinct = list(solver.constraints), []
    for fact in solver.waiting:
        gap = (fact.rhs - fact.lhs).substitute(solver.solved)
        constraints.extend(_inequalities(fact.op, gap))
        if fact.op == "!=":
            distinct.append(gap)
    for fact in facts:
        divisors = symbolic_divisors(fact.lhs) + symbolic_divisors(fact.rhs)
        constraints.extend(divisor - 1 for divisor in divisors)
    constraints = [c.substitute(solver.solved) for c in constraints]
    domain = Domain(solver.solved, (), tuple(distinct), {}, tuple(solver.quotients))
    return domain.assume(dict.fromkeys(constraints))


_solvers: dict[tuple[Fact, ...], "_Solver"] = {}
"""The latest solvers: facts are mostly those of an earlier query, and one more."""
_MAX_SOLVERS = 64
_solving = threading.Lock()


def _solver_of(facts: tuple[Fact, ...]) -> "_Solver":
    """The solver of some facts, added one by one."""
    with _solving:
        known = _solvers.get(facts[:-1])
        solver = _Solver() if known is None else known.copy()
        for fact in facts if known is None else facts[-1:]:
            solver.take(fact)
        if len(_solvers) >= _MAX_SOLVERS:
            del _solvers[next(iter(_solvers))]
        _solvers[facts] = solver
        return solver


def _inequalities(op: str, gap: Expr) -> list[Expr]:
    """The non-negative expressions that follow from a relation; `gap` is right minus left side."""
    table = {
        "<=": [gap],
        "<": [gap - 1],
        ">=": [-gap],
        ">": [-gap - 1],
        "==": [gap, -gap],
        "!=": [],
    }
    return table[op]


class _Solver:
    """Turns equalities into substitutions of symbols."""

    def __init__(self) -> None:
        self.solved: dict[str, Expr] = {}
        self.constraints: list[Expr] = []
        self.quotients: list[Quotient] = []
        self.waiting: list[Fact] = []

    def copy(self) -> "_Solver":
        """An independent copy."""
        other = _Solver()
        other.solved = dict(self.solved)
        other.constraints, other.quotients = list(self.constraints), list(self.quotients)
        other.waiting = list(self.waiting)
        return other

    def take(self, fact: Fact) -> None:
        """Adds a fact: it is solved now, or stays pending."""
        self.waiting.append(fact)
        tried = len(self.waiting) - 1
        while True:
            # A solved symbol may make another fact solvable.
            left = [f for f in self.waiting[tried:] if not self.solve(f.substitute(self.solved))]
            solved = len(left) < len(self.waiting) - tried
            self.waiting[tried:] = left
            if not solved or not self.waiting:
                return
            tried = 0

    def solve(self, fact: Fact) -> bool:
        """Tries to turn the fact into a substitution that is equivalent to it."""
        if fact.op != "==":
            return False
        gap = fact.lhs - fact.rhs
        return self.solve_mod(gap) or self.solve_linear(gap, fact.lhs.symbols)

    def solve_mod(self, gap: Expr) -> bool:
        """`c*((a*s + b) mod d) == r`: `s` is `d*q + r'` for a new symbol `q`."""
        varying = [term for term in gap.terms if term[0]]
        if len(varying) != 1 or len(varying[0][0]) != 1 or varying[0][0][0].kind != "mod":
            return False
        ((atom,), scale) = varying[0]
        numerator, divisor = atom.operands
        if gap.constant % scale:
            return False
        remainder = -gap.constant // scale
        linear = [term for term in numerator.terms if term[0]]
        if len(linear) != 1 or len(linear[0][0]) != 1 or linear[0][0][0].kind != "symbol":
            return False
        ((symbol,), factor) = linear[0]
        if divisor.value is None:
            plain = factor == 1 and not numerator.constant and not remainder
            if not plain or symbol.text in divisor.symbols:
                return False
            residue = 0
        elif 0 <= remainder < divisor.value and gcd(factor, divisor.value) == 1:
            residue = (remainder - numerator.constant) * pow(factor, -1, divisor.value)
            residue %= divisor.value
        else:
            return False
        # No parsed symbol has a "/", so the quotient is new.
        name = f"{symbol.text}/{len(self.solved)}"
        self.quotients.append(Quotient(name, symbol.text, divisor, residue))
        self.replace(symbol.text, single(Atom("symbol", name)) * divisor + residue)
        return True

    def solve_linear(self, gap: Expr, preferred: frozenset[str]) -> bool:
        """`s + rest == 0` or `-s + rest == 0`: substitutes `s`, preferably one of the left side.

        Prefers a symbol whose value is provably non-negative: `c` in `c == m + n`.
        """
        content = gcd(*(c for m, c in gap.terms if m))
        if not content or gap.constant % content:
            return False
        candidates = []
        for monomial, coefficient in gap.terms:
            if len(monomial) != 1 or monomial[0].kind != "symbol" or abs(coefficient) != content:
                continue
            symbol = single(monomial[0])
            rest = symbol * coefficient - gap
            value = Expr((m, c // coefficient) for m, c in rest.terms)
            if monomial[0].text not in value.symbols:
                low, name = value.range[0], monomial[0].text
                order = low is None or low < 0, name not in preferred, name
                candidates.append((order, name, value))
        if not candidates:
            return False
        _, name, value = min(candidates, key=lambda candidate: candidate[0])
        self.constraints.append(value)
        self.replace(name, value)
        return True

    def replace(self, name: str, value: Expr) -> None:
        for key, old in self.solved.items():
            if name in old.symbols:
                self.solved[key] = old.substitute({name: value})
        self.solved[name] = value


def expand_mod(atom: Atom) -> Expr:
    """`x mod d` as `x - d*(x floordiv d)`; any other operation unchanged."""
    if atom.kind != "mod":
        return single(atom)
    dividend, divisor = atom.operands
    return dividend - divisor * (dividend // divisor)


def symbolic_divisors(expr: Expr) -> list[Expr]:
    """The divisors in `expr` that are not constants, at any depth."""
    divisors = []
    for monomial, _ in expr.terms:
        for atom in monomial:
            for operand in atom.operands:
                divisors.extend(symbolic_divisors(operand))
            if atom.kind in ("floordiv", "mod") and atom.operands[1].value is None:
                divisors.append(atom.operands[1])
    return divisors


def tighten(
    constraints: Iterable[Expr], ranges: Mapping[str, Interval]
) -> Mapping[str, Interval] | None:
    """Narrows ranges by each constraint, in a few rounds; None if no assignment is left."""
    narrowed = dict(ranges)
    for _ in range(ROUNDS):
        before = dict(narrowed)
        for constraint in constraints:
            _, high = interval_of(constraint, narrowed)
            if high is not None and high < 0:
                return None
            for monomial, coefficient in constraint.terms:
                for atom in monomial:
                    if atom.kind == "symbol" and monomial.count(atom) == 1:
                        _narrow(constraint, monomial, coefficient, atom, narrowed)
        if any(
            low is not None and high is not None and low > high for low, high in narrowed.values()
        ):
            return None
        if narrowed == before:
            break
    return narrowed


def _narrow(
    constraint: Expr,
    monomial: Monomial,
    coefficient: int,
    symbol: Atom,
    ranges: dict[str, Interval],
) -> None:
    """Narrows the range of `symbol` by `coefficient*symbol*others + rest >= 0`."""
    rest = Expr(term for term in constraint.terms if term[0] is not monomial)
    _, most = interval_of(rest, ranges)
    others = Expr(((tuple(atom for atom in monomial if atom is not symbol), 1),))
    least_other, most_other = interval_of(others, ranges)
    if most is None or least_other is None or least_other < 0:
        return
    old = ranges.get(symbol.text, intervals.NATURAL)
    if coefficient < 0 and least_other >= 1:
        new: Interval = None, most // (-coefficient * least_other)
    elif coefficient > 0 and most < 0 and most_other:
        new = -(most // (coefficient * most_other)), None
    else:
        return
    ranges[symbol.text] = intervals.intersect(old, new)
