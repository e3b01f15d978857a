"""What rules take for granted about dims: neither refused nor plain to see."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

from relax_mlir.symbolic import Expr, Fact, as_expr, const


@dataclass(frozen=True)
class Broadcast:
    """Dims that broadcast at run time: each is 1 or `extent`, which is not known before.

    The same holds of `parts`, which tell the dims.
    """

    dims: tuple[Expr, ...]
    extent: Expr
    parts: tuple[Expr, ...]

    @property
    def requirements(self) -> list[tuple[Fact, ...]]:
        """What has to hold: of each tuple one fact."""
        one = const(1)
        if len(self.parts) == 1:
            return [(Fact(self.parts[0], "==", self.extent), Fact(self.parts[0], "==", one))]
        return [
            tuple(Fact(x, "==", y) for x, y in ((a, b), (a, one), (b, one)))
            for a, b in combinations(self.parts, 2)
        ]


Assumption: TypeAlias = Fact | Broadcast

_ASSUMED: ContextVar[list[Assumption] | None] = ContextVar("assumed", default=None)


@contextmanager
def assumptions() -> Iterator[list[Assumption]]:
    """Collects what rules within the block take for granted: neither refused nor plain to see.

    A kernel reads beyond its operands if such a fact does not hold when it runs. Dims that a
    result is declared finer than do not broadcast at run time: they have to agree.
    """
    with _collecting() as assumed:
        yield assumed
    assumed[:] = _declared(assumed)


@contextmanager
def noted() -> Iterator[list[Assumption]]:
    """Collects what rules within the block note, which is noted outside of it as well."""
    assumed: list[Assumption] = []
    try:
        with _collecting() as assumed:
            yield assumed
    finally:
        note(assumed)


@contextmanager
def _collecting() -> Iterator[list[Assumption]]:
    """Has rules within the block note what they assume in a list of its own."""
    assumed: list[Assumption] = []
    token = _ASSUMED.set(assumed)
    try:
        yield assumed
    finally:
        _ASSUMED.reset(token)


def note(assumed: Sequence[Assumption]) -> None:
    """Notes what was noted before, where a rule is not applied again."""
    outer = _ASSUMED.get()
    if outer is not None:
        outer += assumed


def _declared(found: Sequence[Assumption]) -> Iterator[Assumption]:
    """Replaces what says that a broadcast dim is declared as another: all its dims are that."""
    declared = {fact.lhs: fact.rhs for fact in found if isinstance(fact, Fact) and fact.op == "=="}
    undecided = {item.extent for item in found if isinstance(item, Broadcast)} & declared.keys()
    for item in found:
        if isinstance(item, Broadcast) and item.extent in undecided:
            first, *others = item.dims
            if declared[item.extent] not in item.dims:
                others.append(declared[item.extent])
            yield from (Fact(first, "==", other) for other in others)
        elif isinstance(item, Broadcast) or item.lhs not in undecided:
            yield item


def assume(lhs: Expr | int | None, relation: str, rhs: Expr | None) -> None:
    """Notes that a rule takes a relation of two dims for granted; unknown dims are let pass."""
    found = _ASSUMED.get()
    if found is None or lhs is None or rhs is None or lhs == rhs:
        return
    found.append(Fact(as_expr(lhs), relation, rhs))


def assume_broadcast(dims: Sequence[Expr], extent: Expr, parts: Sequence[Expr]) -> None:
    """Notes that dims broadcast at run time."""
    found = _ASSUMED.get()
    if found is not None:
        found.append(Broadcast(tuple(dims), extent, tuple(parts)))
