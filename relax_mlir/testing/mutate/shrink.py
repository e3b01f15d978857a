"""Makes an input that fails smaller, as long as it fails in the same way."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from relax_mlir.testing.mutate.trial import Input

Item = TypeVar("Item")
MAX_TRIALS = 150


def shrink(given: Input, fails: Callable[[Input], bool]) -> Input:
    """Leaves out passes, then lines of the text."""
    budget = [MAX_TRIALS]

    def still(candidate: Input) -> bool:
        budget[0] -= 1
        return budget[0] >= 0 and fails(candidate)

    if given.passes:
        kept = reduce(given.passes, lambda passes: still(replace(given, passes=tuple(passes))))
        given = replace(given, passes=tuple(kept))
    if isinstance(given.data, str):
        lines = given.data.splitlines(keepends=True)
        kept = reduce(lines, lambda lines: still(replace(given, data="".join(lines))))
        given = replace(given, data="".join(kept))
    return given


def reduce(items: Sequence[Item], fails: Callable[[list[Item]], bool]) -> list[Item]:
    """Delta debugging: leaves out runs of items, shorter and shorter ones."""
    kept, length = list(items), len(items) // 2
    while length:
        at = 0
        while at < len(kept):
            rest = kept[:at] + kept[at + length :]
            if rest and fails(rest):
                kept = rest
            else:
                at += length
        length //= 2
    return kept
