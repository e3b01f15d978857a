"""Offsets in one storage for memory of known lifetimes: what is live at once does not overlap.

Large memory is placed first, each piece at the least offset that is free for as long as it lives
(first fit, decreasing). Sizes are symbolic, and two pieces are apart only by proof; which piece
counts as large, and which offset as the least, is guessed at one assignment of the symbols.

Source: greedy by size for offsets, arXiv 2001.03288.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce

from relax_mlir.symbolic import Expr, Facts, at_most, const, maximum

from .liveness import Lifetime

SAMPLE = 1000
"""The value of each symbol at which sizes are compared before anything is proved."""
MAX_LIVE = 24
"""The most pieces that may be live at once: the work is quadratic in them."""
MAX_UNPROVED = 64
"""The most claims that may fail, each of which may take milliseconds, before no more are tried."""
MAX_ENDS = 4
"""The most sizes whose maximum the storage has, where none is proved to be the greatest."""


@dataclass(frozen=True)
class Packing:
    """An offset for each piece, and the size of the storage, in bytes."""

    offsets: Sequence[Expr]
    size: Expr


def pack(sizes: Sequence[Expr], lifetimes: Sequence[Lifetime], facts: Facts) -> Packing | None:
    """Packs pieces of memory of these sizes in bytes.

    None if too many are live at once, or too many may end last, or if no offset of a piece can be
    proved right under `facts`.
    """
    conflicts = _conflicts(lifetimes)
    if not sizes or conflicts is None:
        return None
    order = _Order(facts)
    offsets: dict[int, Expr] = {}
    for piece in sorted(range(len(sizes)), key=lambda i: (-order.estimate(sizes[i]), i)):
        placed = {(offsets[i], offsets[i] + sizes[i]) for i in conflicts[piece] if i in offsets}
        candidates = sorted({const(0), *(end for _, end in placed)}, key=order.estimate)
        for begin in candidates:
            end = begin + sizes[piece]
            if all(order.at_most(end, b) or order.at_most(e, begin) for b, e in placed):
                offsets[piece] = begin
                break
        else:
            return None
    size = order.greatest(offsets[piece] + size for piece, size in enumerate(sizes))
    if size is None:
        return None
    return Packing([offsets[piece] for piece in range(len(sizes))], size)


def _conflicts(lifetimes: Sequence[Lifetime]) -> list[list[int]] | None:
    """For each piece, those that are live at the same time; None if they are too many."""
    conflicts: list[list[int]] = [[] for _ in lifetimes]
    live: list[int] = []
    for piece in sorted(range(len(lifetimes)), key=lambda i: lifetimes[i].begin):
        live = [other for other in live if lifetimes[other].end >= lifetimes[piece].begin]
        if len(live) >= MAX_LIVE:
            return None
        for other in live:
            conflicts[other].append(piece)
        conflicts[piece] += live
        live.append(piece)
    return conflicts


@dataclass
class _Order:
    """Compares expressions under facts: first at an example, then by proof."""

    facts: Facts
    _estimates: dict[Expr, int] = field(default_factory=dict)
    _proofs: dict[tuple[Expr, Expr], bool] = field(default_factory=dict)
    _unproved: int = 0

    def estimate(self, expression: Expr) -> int:
        """The value at the example."""
        if expression not in self._estimates:
            values = dict.fromkeys(expression.symbols, SAMPLE)
            self._estimates[expression] = expression.evaluate(values)
        return self._estimates[expression]

    def at_most(self, a: Expr, b: Expr) -> bool:
        """Whether a <= b is proved; nothing is tried that the example contradicts."""
        if self.estimate(a) > self.estimate(b):
            return False
        if (a, b) not in self._proofs:
            if self._unproved >= MAX_UNPROVED:
                return False
            self._proofs[a, b] = at_most(a, b, self.facts).proved
            self._unproved += not self._proofs[a, b]
        return self._proofs[a, b]

    def greatest(self, ends: Iterable[Expr]) -> Expr | None:
        """The greatest of some, or the maximum of those that may be; None if they are too many."""
        tops: list[Expr] = []
        for end in sorted(set(ends), key=self.estimate, reverse=True):
            if not any(self.at_most(end, top) for top in tops):
                tops = [top for top in tops if not self.at_most(top, end)] + [end]
            if len(tops) > MAX_ENDS:
                return None
        return reduce(maximum, tops)
