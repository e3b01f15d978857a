"""Shrinks an input that fails, preserving the failure."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from relax_mlir.testing.mutate.trial import Input

Item = TypeVar("Item")
MAX_TRIALS = 150


def shrink(given: Input, fails: Callable[[Input], bool]) -> Input:
    """Removes passes, then lines of the text."""
    budget = [MAX_TRIALS]

    def still(candidate: Input) -> bool:
        budget[0] -= 1
        return budget[0] >= 0 and fails(candidate)

    if given.passes:
        remaining = reduce(given.passes, lambda passes: still(replace(given, passes=tuple(passes))))
        given = replace(given, passes=tuple(remaining))
    if isinstance(given.data, str):
        lines = given.data.splitlines(keepends=True)
        remaining = reduce(lines, lambda lines: still(replace(given, data="".join(lines))))
        given = replace(given, data="".join(remaining))
    return given


def reduce(items: Sequence[Item], fails: Callable[[list[Item]], bool]) -> list[Item]:
    """Delta debugging: removes runs of items, of decreasing length."""
    remaining, length = list(items), len(items) // 2
    while length:
        at = 0
        while at < len(remaining):
            rest = remaining[:at] + remaining[at + length :]
            if rest and fails(rest):
                remaining = rest
            else:
                at += length
        length //= 2
    return remaining
