"""Three-valued verdicts on expressions under facts.

A claim is proved by canonical form, by ranges, by linear programming over a relaxation, or by a
case split into few cases; or it is refuted by a counterexample from a search. The work is bounded,
so some claims stay unknown.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import gcd, inf, lcm

from relax_mlir.symbolic import search
from relax_mlir.symbolic.atoms import Atom, Monomial
from relax_mlir.symbolic.domain import Domain, domain_of, symbolic_divisors
from relax_mlir.symbolic.expr import DivisorError, Expr, SymbolicError, rewrite, single
from relax_mlir.symbolic.facts import Fact, Facts
from relax_mlir.symbolic.folding import refine
from relax_mlir.symbolic.intervals import NATURAL
from relax_mlir.symbolic.parser import as_expr
from relax_mlir.symbolic.quotients import bounded_nonnegative
from relax_mlir.symbolic.relaxation import Relaxation, least
from relax_mlir.symbolic.search import Target

NO_FACTS = Facts()
MAX_SPLITS = 4
MANY_TERMS = 8
MAX_PARTNERS = 6
FEW_ATTEMPTS = 16
MANY_ATTEMPTS = 120
MAX_RESIDUES = 64

Claim = Callable[[Expr, Domain], bool]
Case = tuple[Expr, Domain]


@dataclass(frozen=True)
class Verdict:
    """Proved, refuted by a counterexample, or unknown; never simply true or false.

    If the facts allow no assignment, every claim may be proved.
    """

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


PROVED = Verdict(True)
UNKNOWN = Verdict()


def equal(lhs: Expr | int | str, rhs: Expr | int | str, facts: Facts = NO_FACTS) -> Verdict:
    """Whether both sides agree for every assignment that the facts allow."""
    a, b = as_expr(lhs), as_expr(rhs)
    return PROVED if a == b else _copy(_decide("equal", a, b, facts))


def at_most(lhs: Expr | int | str, rhs: Expr | int | str, facts: Facts = NO_FACTS) -> Verdict:
    """Whether `lhs <= rhs` for every assignment that the facts allow."""
    a, b = as_expr(lhs), as_expr(rhs)
    return PROVED if a == b else _copy(_decide("at_most", a, b, facts))


def differ(lhs: Expr | int | str, rhs: Expr | int | str, facts: Facts = NO_FACTS) -> Verdict:
    """Whether the sides differ for every assignment that the facts allow."""
    return _copy(_decide("differ", as_expr(lhs), as_expr(rhs), facts))


def holds(fact: Fact, facts: Facts = NO_FACTS) -> Verdict:
    """Whether `fact` follows from `facts`: a caller must prove this of its callee's facts."""
    if fact.op == "==":
        return equal(fact.lhs, fact.rhs, facts)
    if fact.op == "!=":
        return differ(fact.lhs, fact.rhs, facts)
    low, high = (fact.lhs, fact.rhs) if fact.op in ("<=", "<") else (fact.rhs, fact.lhs)
    return at_most(low + 1 if fact.op in ("<", ">") else low, high, facts)


def exceed(
    lhs: Expr | int | str, rhs: Expr | int | str, facts: Facts = NO_FACTS
) -> dict[str, int] | None:
    """An assignment that the facts allow with `lhs > rhs`, if a bounded search finds one.

    `at_most` without the attempt to prove: None shows nothing.
    """
    a, b = as_expr(lhs), as_expr(rhs)
    try:
        domain, gap = _prepare(b - a, (a, b), facts)
        if domain.empty:
            return None
        target = Target.of(domain, nonnegative=[-gap - 1])
        values = search.find(target, domain, MANY_ATTEMPTS)
    except SymbolicError:
        return None
    names = a.symbols | b.symbols | facts.symbols
    return None if values is None else _restore(values, names, domain)


def bounds(expr: Expr | int | str, facts: Facts = NO_FACTS) -> tuple[int | None, int | None]:
    """An interval of all values of `expr` under the facts; a bound of None is infinite.

    The lower bound exceeds the upper bound only if the facts allow no assignment.
    """
    return _bounds(as_expr(expr), facts)


def solve(expr: Expr | int | str, symbol: str) -> tuple[Expr, Expr] | None:
    """`(a, b)` with `expr = a*symbol + b`, `a` a positive constant and `b` free of `symbol`."""
    solution = solve_by_symbols(expr, symbol)
    return None if solution is None or solution[0].value is None else solution


def solve_by_symbols(expr: Expr | int | str, symbol: str) -> tuple[Expr, Expr] | None:
    """As `solve`, but `a` may have other symbols: it is not negative, and 0 solves nothing."""
    if (parts := linear_in(as_expr(expr), symbol)) is None:
        return None
    factor, low = parts[0], parts[0].range[0]
    is_simple = all(atom.kind == "symbol" for monomial, _ in factor.terms for atom in monomial)
    return parts if is_simple and low is not None and low >= 0 and factor.value != 0 else None


def linear_in(expr: Expr, symbol: str) -> tuple[Expr, Expr] | None:
    """`(a, b)` with `expr = a*symbol + b`, both free of `symbol`; None if there are none."""
    within = [(m, c) for m, c in expr.terms if any(atom.text == symbol for atom in m)]
    factor = Expr((_without(m, symbol), c) for m, c in within)
    rest = Expr(term for term in expr.terms if term not in within)
    return None if symbol in factor.symbols | rest.symbols else (factor, rest)


def _without(monomial: Monomial, symbol: str) -> Monomial:
    """The monomial divided by the symbol."""
    position = [atom.text for atom in monomial].index(symbol)
    return (*monomial[:position], *monomial[position + 1 :])


def _copy(verdict: Verdict) -> Verdict:
    # Verdicts are cached; their dictionaries must not be shared with callers.
    if verdict.counterexample is None:
        return verdict
    return Verdict(False, dict(verdict.counterexample))


@lru_cache(maxsize=8192)
def _decide(question: str, lhs: Expr, rhs: Expr, facts: Facts) -> Verdict:
    gap = rhs - lhs
    if question == "at_most" and (low := gap.range[0]) is not None and low >= 0:
        return PROVED  # whatever the facts
    try:
        domain, gap = _prepare(gap, (lhs, rhs), facts)
    except DivisorError:
        # A side has no value under the facts, so the claim holds vacuously.
        return PROVED
    claim, target = {
        "equal": (_is_zero, Target.of(domain, nonzero=[gap])),
        "at_most": (_is_nonnegative, Target.of(domain, nonnegative=[-gap - 1])),
        "differ": (_is_nonzero, Target.of(domain, nonnegative=[gap, -gap])),
    }[question]
    try:
        if domain.empty or claim(gap, domain):
            return PROVED
        outcome = _search_or_prove(claim, gap, domain, target)
    except SymbolicError:
        # The proof needs too many terms.
        return UNKNOWN
    if not isinstance(outcome, dict):
        return outcome
    names = lhs.symbols | rhs.symbols | facts.symbols
    return Verdict(False, _restore(outcome, names, domain))


def _prepare(expr: Expr, defined: tuple[Expr, ...], facts: Facts) -> tuple[Domain, Expr]:
    """The domain where `facts` hold and `defined` have values, and `expr` refined for it."""
    domain = domain_of(facts)
    divisors = [divisor for side in defined for divisor in symbolic_divisors(side)]
    domain = domain.assume(divisor.substitute(domain.solved) - 1 for divisor in divisors)
    return domain, refine(expr.substitute(domain.solved), domain)


def _search_or_prove(
    claim: Claim, gap: Expr, domain: Domain, target: Target
) -> Verdict | search.Assignment:
    """A verdict, or an assignment that contradicts the claim."""
    everything = search.assignments(target, domain)
    if everything is not None:
        return next((values for values in everything if target.accepts(values)), PROVED)
    # The first few assignments refute most wrong claims; case splits are tried next.
    assignment = search.find(target, domain, FEW_ATTEMPTS)
    if assignment is not None:
        return assignment
    if _by_cases(claim, gap, domain, MAX_SPLITS):
        return PROVED
    assignment = search.find(target, domain, MANY_ATTEMPTS)
    return UNKNOWN if assignment is None else assignment


def _restore(values: dict[str, int], names: frozenset[str], domain: Domain) -> dict[str, int]:
    """The assignment over the symbols of the question; irrelevant ones get their least value."""
    for expr in domain.solved.values():
        for name in expr.symbols - values.keys():
            values[name] = _least_value(name, domain)
    full = {}
    for name in sorted(names):
        if name in domain.solved:
            full[name] = domain.solved[name].evaluate(values)
        else:
            full[name] = values.get(name, _least_value(name, domain))
    return full


def _least_value(name: str, domain: Domain) -> int:
    low, _ = domain.ranges.get(name, NATURAL)
    return low or 0


def _is_nonnegative(gap: Expr, domain: Domain) -> bool:
    if bounded_nonnegative(gap, domain.ranges):
        return True
    if len(gap.terms) > MANY_TERMS and _is_nonnegative_by_terms(gap, domain):
        return True
    return least(gap, domain) >= 0 or _cut_least(gap, domain) >= 0


def _is_nonnegative_by_terms(gap: Expr, domain: Domain) -> bool:
    """Whether positive quotients compensate the negative ones, and the rest is non-negative.

    Offsets in an arena are sums of many rounded sizes, too many for one linear program.
    """
    quotients = [term for term in gap.terms if any(atom.kind == "floordiv" for atom in term[0])]
    above = [term for term in quotients if term[1] > 0]
    rest = gap
    for below in quotients:
        if below[1] > 0:
            continue
        above.sort(key=lambda term: (term[1] != -below[1], _outline(term) != _outline(below)))
        for partner in above[:MAX_PARTNERS]:
            pair = Expr((below, partner))
            if least(pair, domain) >= 0:
                above.remove(partner)
                rest = rest - pair
                break
    return least(rest, domain) >= 0


def _outline(term: tuple[Monomial, int]) -> list[list[int]]:
    """The coefficients in a product; equal for a size and the same size at another dim."""
    return [[c for o in atom.operands for _, c in o.terms] for atom in term[0]]


def _is_zero(gap: Expr, domain: Domain) -> bool:
    return not gap.terms or (_is_nonnegative(gap, domain) and _is_nonnegative(-gap, domain))


def _is_nonzero(gap: Expr, domain: Domain) -> bool:
    content = gcd(*(c for m, c in gap.terms if m))
    if (gap.constant % content if content else gap.constant) or domain.empty:
        return True
    if gap in domain.distinct or -gap in domain.distinct:
        return True
    return _is_nonnegative(gap - 1, domain) or _is_nonnegative(-gap - 1, domain)


def _cut_least(gap: Expr, domain: Domain) -> float:
    """As `least`, with the bounds of floor divisions rounded before they are added."""
    if not any(atom.kind == "floordiv" for monomial, _ in gap.terms for atom in monomial):
        return -inf
    relaxation = Relaxation(domain, gap)
    relaxation.cut(gap)
    return relaxation.least(gap)


def _by_cases(claim: Claim, gap: Expr, domain: Domain, splits: int) -> bool:
    """Whether the claim holds in each case of a minimum, maximum or remainder."""
    try:
        gap = refine(gap, domain)
    except DivisorError:
        # This case has no assignment with a value.
        return True
    if domain.empty or claim(gap, domain):
        return True
    if not splits:
        return False
    cases = _cases(gap, domain)
    return bool(cases) and all(_by_cases(claim, *case, splits - 1) for case in cases)


def _cases(gap: Expr, domain: Domain) -> list[Case]:
    """Cases that cover the domain and make `gap` simpler; none if no such split is known."""
    operations = _operations(gap)
    extremum = next((atom for atom in operations if atom.kind in ("min", "max")), None)
    if extremum is not None:
        return list(_operand_cases(gap, domain, extremum))
    for name in sorted(gap.symbols):
        steps = [_period(atom, name) for atom in operations if name in atom.symbols]
        periods = [step for step in steps if step is not None]
        if periods and len(periods) == len(steps) and lcm(*periods) <= MAX_RESIDUES:
            return list(_residue_cases(gap, domain, name, lcm(*periods)))
    return []


def _operand_cases(gap: Expr, domain: Domain, atom: Atom) -> Iterator[Case]:
    """One case for each operand that may be the minimum or maximum `atom`."""
    sign = 1 if atom.kind == "min" else -1
    for chosen in atom.operands:

        def choose(other: Atom, chosen: Expr = chosen) -> Expr:
            return chosen if other == atom else single(other)

        try:
            chosen_gap = rewrite(gap, choose)
        except DivisorError:
            continue
        yield chosen_gap, domain.assume((other - chosen) * sign for other in atom.operands)


def _residue_cases(gap: Expr, domain: Domain, name: str, period: int) -> Iterator[Case]:
    """One case for each remainder of a symbol, which removes constant divisors from under it."""
    # No parsed symbol has a "'", so the quotient is new.
    quotient = single(Atom("symbol", f"{name}'"))
    for residue in range(period):
        values = {name: quotient * period + residue}
        try:
            yield gap.substitute(values), domain.substitute(values)
        except DivisorError:
            continue


def _period(atom: Atom, name: str) -> int | None:
    """A step of symbol `name` that changes `atom` by an integer, if there is one."""
    if atom.kind != "floordiv" or atom.operands[1].value is None:
        return None
    dividend, divisor = atom.operands[0], atom.operands[1].value
    period = 1
    for monomial, coefficient in dividend.terms:
        if any(a.kind != "symbol" for a in monomial) and any(name in a.symbols for a in monomial):
            return None
        if any(a.text == name for a in monomial):
            period = lcm(period, divisor // gcd(divisor, coefficient))
    return period


def _operations(expr: Expr) -> list[Atom]:
    """The operations in `expr`, innermost first, without duplicates."""
    operations: dict[Atom, None] = {}

    def note(atom: Atom) -> Expr:
        operations[atom] = None
        return single(atom)

    rewrite(expr, note)
    return list(operations)


@lru_cache(maxsize=2048)
def _bounds(expr: Expr, facts: Facts) -> tuple[int | None, int | None]:
    try:
        domain, target = _prepare(expr, (expr,), facts)
    except DivisorError:
        return 0, -1
    if domain.empty:
        return 0, -1
    ends = [max(least(e, domain), _cut_least(e, domain)) for e in (target, -target)]
    if inf in ends:
        return 0, -1
    low, high = (None if end == -inf else int(end) for end in ends)
    return low, None if high is None else -high
