"""Byte ranges with symbolic bounds: whether one contains another, whether two overlap.

A question that the facts neither prove nor refute is tried on sample sizes that they allow.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from random import Random

from relax_mlir.symbolic import Expr, Fact, Facts, SymbolicError, as_expr, at_most, exceed

Sizes = dict[str, int]
"""A value for each symbol."""

ATTEMPTS, FEW = 300, 6
USUAL = (0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 64, 100, 127, 1000)


@dataclass(frozen=True)
class ByteRange:
    """`size` bytes from `offset` on; the facts hold whenever they are in use."""

    offset: Expr
    size: Expr
    facts: Facts

    @property
    def end(self) -> Expr:
        """The offset of the first byte after it."""
        return self.offset + self.size

    def __str__(self) -> str:
        return f"[{self.offset}, {self.end})"


def leaves(inner: ByteRange, size: Expr) -> Sizes | None:
    """Sizes with which a range is not within the first `size` bytes; None if there are none."""
    claims = ((as_expr(0), inner.offset), (inner.end, size))
    verdicts = [at_most(low, high, inner.facts) for low, high in claims]
    for verdict in verdicts:
        if verdict.refuted:
            return verdict.counterexample
    if all(verdict.proved for verdict in verdicts):
        return None
    symbols = inner.offset.symbols | inner.size.symbols | size.symbols
    for sizes in _samples(inner.facts, symbols):
        if any(low.evaluate(sizes) > high.evaluate(sizes) for low, high in claims):
            return sizes
    return None


@lru_cache(maxsize=8192)
def meet(a: ByteRange, b: ByteRange) -> Sizes | None:
    """Sizes with which two ranges have a byte in common; None if there are none."""
    facts = a.facts + b.facts
    zero = as_expr(0)
    relations = ((a.size, zero), (b.size, zero), (a.end, b.offset), (b.end, a.offset))
    symbols = frozenset().union(*(e.symbols for pair in relations for e in pair))
    # A few sizes show most ranges that meet, and which of two others is the first.
    known = symbols | facts.symbols
    above = [
        [high > low for high, low in zip(_at_few(high, facts, known), _at_few(low, facts, known))]
        for high, low in relations
    ]
    for sizes, *hold in zip(_few(facts, known), *above):
        if all(hold):
            return sizes
    ordered = [end for end, _ in sorted(zip(relations[2:], map(sum, above[2:])), key=itemgetter(1))]
    if any(at_most(*end, facts).proved for end in ordered):
        return None
    first = Facts(tuple(Fact(high, ">", low) for high, low in relations[:-1]))
    if (example := exceed(*relations[-1], facts + first)) is not None:
        return example
    return next((sizes for sizes in _samples(facts, symbols) if _hold(relations, sizes)), None)


def _hold(relations: Iterable[tuple[Expr, Expr]], sizes: Sizes) -> bool:
    """Whether the first of each pair is above the second."""
    return all(high.evaluate(sizes) > low.evaluate(sizes) for high, low in relations)


def _samples(facts: Facts, symbols: frozenset[str]) -> tuple[Sizes, ...]:
    """Values of the symbols that the facts allow, the same in every process."""
    return _allowed(facts, symbols | facts.symbols)


@lru_cache(maxsize=1024)
def _few(facts: Facts, symbols: frozenset[str]) -> list[Sizes]:
    return sorted(_allowed(facts, symbols)[:FEW], key=lambda sizes: sum(sizes.values()))


@lru_cache(maxsize=8192)
def _at_few(value: Expr, facts: Facts, symbols: frozenset[str]) -> list[int]:
    return [value.evaluate(sizes) for sizes in _few(facts, symbols)]


@lru_cache(maxsize=1024)
def _allowed(facts: Facts, symbols: frozenset[str]) -> tuple[Sizes, ...]:
    names, random, defined = sorted(symbols), Random(0), _definitions(facts)
    allowed: list[Sizes] = []
    for _ in range(ATTEMPTS):
        sizes = {name: random.choice(USUAL) for name in names}
        try:
            for name, value in defined:
                sizes[name] = value.evaluate(sizes)
            if facts.evaluate(sizes):
                allowed.append(sizes)
        except SymbolicError:  # of a divisor that is 0
            continue
    return tuple(allowed)


def _definitions(facts: Facts) -> list[tuple[str, Expr]]:
    """Symbols that are equal to an expression of others by a fact, which no guess would meet."""
    known: dict[str, Expr] = {}
    for fact in facts:
        for name, value in ((str(fact.lhs), fact.rhs), (str(fact.rhs), fact.lhs)):
            if fact.op == "==" and name in fact.symbols - value.symbols - known.keys():
                known[name] = value
                break
    return list(known.items())
