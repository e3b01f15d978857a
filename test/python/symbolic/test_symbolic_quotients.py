"""Bounds of quotients: what they show, and that they show nothing wrong."""

import random

import pytest

from relax_mlir.symbolic import Expr, as_expr, const
from relax_mlir.symbolic.quotients import bounded_nonnegative

ANY = {name: (0, None) for name in "mn"}


@pytest.mark.parametrize(
    "claim",
    [
        "64*((4*n + 63) floordiv 64) - 4*n",
        "128*((m*n + 15) floordiv 16) - 8*m*n",
        "n*n + 64*((n + 15) floordiv 16) - 4*n",
        "n - 3*(n floordiv 3)",
        "m*n - 2*m*(n floordiv 2)",
        "128*n - 64*((n + 3) floordiv 4)",
        "64*m*n - m*((16*n + 7) floordiv 8) - 2*((m*n + 15) floordiv 16)",
        # The rounded size of a split dim, with what is divided without rest outside.
        "64*((((m + 2*(m floordiv 3) + 2) floordiv 3)*m + 15*m*(m floordiv 3) + 15) floordiv 16)"
        " - 64*m*(m floordiv 3)",
    ],
)
def test_shows(claim: str) -> None:
    assert bounded_nonnegative(as_expr(claim), ANY)


@pytest.mark.parametrize(
    "claim",
    [
        "64*((4*n + 59) floordiv 64) - 4*n",
        "3*(n floordiv 3) - n",
        "8*(n floordiv 8) - n + 6",
        "m*n - 2*m*(n floordiv 2) - 1",
        "63*n - 64*((n + 3) floordiv 4)",
        "128*n - 64*((n + 4) floordiv 4)",
    ],
)
def test_shows_nothing_wrong(claim: str) -> None:
    assert not bounded_nonnegative(as_expr(claim), ANY)


def _random(chance: random.Random) -> Expr:
    """Sums of products and rounded quotients of both signs, near 0."""
    total = const(chance.randint(0, 40))
    for _ in range(chance.randint(2, 5)):
        m, n = as_expr("m"), as_expr("n")
        size = chance.choice([m, n, m * n, n * n, m + n, n // 2, (m + 3) // 4])
        size = size * chance.choice([1, 2, 3, 5]) + chance.randint(0, 3)
        by = chance.choice([2, 3, 4, 16])
        rounded = ((size + chance.choice([0, by - 1, by - 2])) // by) * by
        total = total + chance.choice([1, 2]) * rounded - chance.choice([0, 1, 1, 2]) * size
        total = total - chance.choice([0, 0, 1]) * ((size + chance.choice([0, 1, by - 1])) // by)
    return total


def test_what_random_sums_are_shown_holds() -> None:
    chance, shown = random.Random(7), 0
    for _ in range(600):
        total = _random(chance)
        if bounded_nonnegative(total, ANY):
            shown += 1
            for _ in range(60):
                sizes = {name: chance.choice([*range(9), 15, 16, 17, 63, 64, 97]) for name in "mn"}
                assert total.evaluate(sizes) >= 0, (str(total), sizes)
    assert shown > 150
