"""Bounded search for an assignment that contradicts a claim."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product

from relax_mlir.symbolic.domain import Domain
from relax_mlir.symbolic.expr import Expr, SymbolicError

REPAIRS = 12
MAX_CHANGED = 16
"""Symbols that a repair tries to change: trying each of many is quadratic."""
MAX_ASSIGNMENTS = 512
STEPS = (1, 2, 4, 16, 64, 512)

Assignment = dict[str, int]


@dataclass(frozen=True)
class Target:
    """Expressions that an accepted assignment makes non-negative, or nonzero."""

    nonnegative: tuple[Expr, ...]
    nonzero: tuple[Expr, ...]

    @classmethod
    def of(
        cls, domain: Domain, nonnegative: Sequence[Expr] = (), nonzero: Sequence[Expr] = ()
    ) -> "Target":
        """A target within `domain`."""
        return cls((*domain.constraints, *nonnegative), (*domain.distinct, *nonzero))

    @property
    def symbols(self) -> list[str]:
        """The symbols of an assignment, sorted."""
        return sorted(frozenset().union(*(e.symbols for e in (*self.nonnegative, *self.nonzero))))

    def accepts(self, values: Assignment) -> bool:
        """Whether an assignment satisfies the target."""
        try:
            return self.violation(values) is None
        except SymbolicError:
            return False

    def violation(self, values: Assignment) -> Expr | None:
        """The first violated expression."""
        for expr in self.nonnegative:
            if expr.evaluate(values) < 0:
                return expr
        for expr in self.nonzero:
            if expr.evaluate(values) == 0:
                return expr
        return None


def find(target: Target, domain: Domain, attempts: int) -> Assignment | None:
    """An assignment that `target` accepts, if one of `attempts` attempts succeeds.

    Each starts from small, extreme or boundary values and is repaired one symbol at a time. The
    search is deterministic across processes.
    """
    names = target.symbols
    choices = [_choices(name, target, domain) for name in names]
    for start in islice(_starts(names, choices), attempts):
        repaired = _repair(start, target, domain)
        if repaired is not None:
            return repaired
    return None


def assignments(target: Target, domain: Domain) -> list[Assignment] | None:
    """All assignments of the symbols in their ranges, or None if they are too many."""
    count, spans = 1, []
    for name in target.symbols:
        low, high = domain.ranges.get(name, (0, None))
        if low is None or high is None:
            return None
        count *= max(0, high - low + 1)
        if count > MAX_ASSIGNMENTS:
            return None
        spans.append(range(low, high + 1))
    return [dict(zip(target.symbols, values, strict=True)) for values in product(*spans)]


def _choices(name: str, target: Target, domain: Domain) -> list[int]:
    low, high = domain.ranges.get(name, (0, None))
    low = low or 0
    values = {low, low + 1, low + 2, low + 3, low + 5, low + 7, low + 16, low + 100, low + 5000}
    for expr in (*target.nonnegative, *target.nonzero):
        for constant in _constants(expr):
            values.update((constant - 1, constant, constant + 1))
    if high is not None:
        values.update((high, high - 1, (low + high) // 2))
    return sorted(v for v in values if v >= low and (high is None or v <= high)) or [low]


def _constants(expr: Expr) -> Iterator[int]:
    for monomial, coefficient in expr.terms:
        if not monomial:
            yield abs(coefficient)
        for atom in monomial:
            for operand in atom.operands:
                yield from _constants(operand)


def _starts(names: Sequence[str], choices: Sequence[Sequence[int]]) -> Iterator[Assignment]:
    # Distinct small values distinguish most expressions.
    yield {
        n: c[min(i + 1, len(c) - 1)] for i, (n, c) in enumerate(zip(names, choices, strict=True))
    }
    for index in (0, -1, 1, len(names) and -2):
        yield {
            n: c[index if -len(c) <= index < len(c) else 0]
            for n, c in zip(names, choices, strict=True)
        }
    state = 1
    while True:
        values = {}
        for name, choice in zip(names, choices, strict=True):
            # A linear congruential generator: D. Knuth's MMIX constants.
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            values[name] = choice[(state >> 33) % len(choice)]
        yield values


def _repair(values: Assignment, target: Target, domain: Domain) -> Assignment | None:
    names = sorted(values)
    try:
        for turn in range(REPAIRS):
            violated = target.violation(values)
            if violated is None:
                return values
            own = [name for name in names if name in violated.symbols]
            if not own:
                return None
            own = own[turn % len(own) :] + own[: turn % len(own)]
            if not any(_improve(values, violated, name, domain) for name in own[:MAX_CHANGED]):
                return None
    except SymbolicError:
        # A divisor is not positive for these values: they are invalid.
        return None
    return None


def _improve(values: Assignment, violated: Expr, name: str, domain: Domain) -> bool:
    """Changes one symbol, within its range, by a step along the slope of `violated`."""
    low, high = domain.ranges.get(name, (0, None))
    old, before = values[name], violated.evaluate(values)
    for step in STEPS:
        slope = violated.evaluate({**values, name: old + step}) - before
        if not slope:
            continue
        # One step leaves zero; a negative value takes as many steps as reach zero.
        moves = -(before // abs(slope)) if before else 1
        new = old + (step * moves if slope > 0 else -step * moves)
        new = max(low or 0, new if high is None else min(new, high))
        if new != old:
            values[name] = new
            return True
    return False
