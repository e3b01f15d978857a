"""Sizes for tests of a function: values of symbols that its facts allow, at corner cases.

valuations(["m", "n"], Facts.parse(["m <= n", "n <= 40"]))
-> [{"m": 0, "n": 0}, {"m": 1, "n": 1}, {"m": 5, "n": 7}, {"m": 16, "n": 17}, ...]
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import islice, product
from math import log2
from random import Random

from relax_mlir.symbolic import Facts

SMALL = (0, 1, 2, 3, 5, 7, 8, 9, 13, 15, 16, 17, 31, 33)
"""Zero, one, primes, and powers of two with their neighbours."""
TARGETS: tuple[Sequence[int], ...] = ((0,), (1,), (7, 5, 3, 13, 2), (16, 17, 15, 8), (33, 31, 9))
MAX_TRIED = 4000
_NUMBER = re.compile(r"\d+")


def valuations(
    symbols: Sequence[str],
    facts: Facts,
    accepts: Callable[[Mapping[str, int]], bool] = lambda values: True,
    count: int = 8,
) -> list[dict[str, int]]:
    """At most `count` assignments of the symbols that satisfy the facts and are accepted.

    Integers in the facts are bounds: they and their neighbours are tried too. There may be none if
    the facts allow only other values.
    """
    if not symbols:
        return [{}] if accepts({}) else []
    bounds = [int(text) for fact in facts for text in _NUMBER.findall(str(fact))]
    near = sorted({value for bound in bounds for value in (bound - 1, bound, bound + 1, 2 * bound)})
    candidates = sorted({*SMALL, *(value for value in near if value >= 0)})
    assignments = _assignments(symbols, candidates)

    @cache
    def is_allowed(index: int) -> bool:
        return facts.evaluate(assignments[index]) and accepts(assignments[index])

    targets = [
        *TARGETS,
        *([value] for bound in bounds if bound > 1 for value in (bound, bound - 1)),
    ]
    chosen: list[dict[str, int]] = []
    for target in targets:
        wanted = {name: target[i % len(target)] for i, name in enumerate(symbols)}
        distances = [_distance(values, wanted) for values in assignments]
        by_distance = sorted(range(len(assignments)), key=distances.__getitem__)
        nearest = next(filter(is_allowed, by_distance), None)
        if nearest is not None and assignments[nearest] not in chosen:
            chosen.append(assignments[nearest])
    return chosen[:count]


def _assignments(symbols: Sequence[str], candidates: Sequence[int]) -> list[dict[str, int]]:
    """All assignments, or, if there are too many, a sample and those with equal values."""
    if len(candidates) ** len(symbols) <= MAX_TRIED:
        return [dict(zip(symbols, values)) for values in product(candidates, repeat=len(symbols))]
    random = Random(0)
    same = [dict.fromkeys(symbols, value) for value in candidates]
    others = ({name: random.choice(candidates) for name in symbols} for _ in iter(int, 1))
    return [*same, *islice(others, MAX_TRIED)]


def _distance(values: Mapping[str, int], wanted: Mapping[str, int]) -> float:
    return sum(abs(_log(values[name] + 1) - _log(wanted[name] + 1)) for name in wanted)


_log = cache(log2)
