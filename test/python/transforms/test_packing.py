"""Offsets of memory in one storage: nothing that is live at once overlaps, whatever the sizes."""

import random
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest

import relax_mlir
from relax_mlir.analysis.liveness import Lifetime
from relax_mlir.analysis.packing import MAX_LIVE, pack
from relax_mlir.symbolic import Expr, Facts, const, parse

ASSIGNMENTS = [{"n": n, "m": m} for n in (0, 1, 7, 64, 1000, 4097) for m in (0, 3, 1024)]
FACTS = Facts.parse(["m <= n"])


def random_lifetimes(rng: random.Random, count: int) -> list[Lifetime]:
    begins = [rng.randrange(3 * count) for _ in range(count)]
    return [Lifetime(begin, begin + rng.randrange(6)) for begin in begins]


def random_size(rng: random.Random, symbols: str) -> Expr:
    scale = 64 * rng.randrange(1, 9)
    symbol = rng.choice(symbols)
    return const(scale) if symbol == "1" else parse(f"{scale}*{symbol}")


def check(sizes: list[Expr], lifetimes: list[Lifetime], facts: Facts) -> bool:
    """Whether the pieces were packed; checks each pair at each assignment that the facts allow."""
    packing = pack(sizes, lifetimes, facts)
    if packing is None:
        return False
    for values in filter(facts.evaluate, ASSIGNMENTS):
        begins = [offset.evaluate(values) for offset in packing.offsets]
        ends = [b + size.evaluate(values) for b, size in zip(begins, sizes, strict=True)]
        assert min(begins) >= 0
        assert packing.size.evaluate(values) == max(ends)
        for i, j in combinations(range(len(sizes)), 2):
            a, b = lifetimes[i], lifetimes[j]
            if a.begin <= b.end and b.begin <= a.end:
                assert ends[i] <= begins[j] or ends[j] <= begins[i], (i, j, values)
    return True


@pytest.mark.parametrize("symbols", ["1", "n", "nm", "1n", "1nm"])
@pytest.mark.parametrize("facts", [Facts(), FACTS])
def test_nothing_live_overlaps(symbols: str, facts: Facts) -> None:
    rng = random.Random()
    packed = 0
    for _ in range(40):
        lifetimes = random_lifetimes(rng, rng.randrange(1, 12))
        sizes = [random_size(rng, symbols) for _ in lifetimes]
        packed += check(sizes, lifetimes, facts)
    assert packed >= (40 if len(symbols) == 1 else 5)


def test_pieces_that_share_one_position_are_apart() -> None:
    size = const(64)
    packing = pack([size, size], [Lifetime(0, 3), Lifetime(3, 4)], Facts())
    assert packing is not None
    assert packing.size == const(128)


def test_the_greater_of_two_that_cannot_be_compared() -> None:
    sizes = [parse("64*n"), parse("64*m")]
    lifetimes = [Lifetime(0, 1), Lifetime(2, 3)]
    for facts, expected in ((Facts(), "64*max(m, n)"), (FACTS, "64*n")):
        packing = pack(sizes, lifetimes, facts)
        assert packing is not None
        assert packing.size == parse(expected)


def test_memory_of_many_that_are_live_at_once_is_not_packed() -> None:
    for count in (MAX_LIVE, MAX_LIVE + 1):
        packing = pack([const(64)] * count, [Lifetime(0, 1)] * count, Facts())
        assert (packing is None) == (count > MAX_LIVE)


def test_nothing() -> None:
    assert pack([], [], Facts()) is None


UNRELATED = """
!n = tensor<?x16xf32, #graph.shape<["n", 16]>>
!m = tensor<?x16xf32, #graph.shape<["m", 16]>>
!sum = tensor<16xf32>
func.func @main(%x: !n, %y: !m) -> (!sum, !sum) {
  %0 = "graph.exp"(%x) : (!n) -> !n
  %1 = "graph.cumsum"(%0) {axis = 0 : i64, exclusive = false, reverse = false} : (!n) -> !n
  %2 = "graph.sum"(%1) {axes = array<i64: 0>, keepdims = false} : (!n) -> !sum
  %3 = "graph.exp"(%y) : (!m) -> !m
  %4 = "graph.cumsum"(%3) {axis = 0 : i64, exclusive = false, reverse = false} : (!m) -> !m
  %5 = "graph.sum"(%4) {axes = array<i64: 0>, keepdims = false} : (!m) -> !sum
  return %2, %5 : !sum, !sum
}
"""


@pytest.mark.parametrize("run", [relax_mlir.interpret, relax_mlir.compile])
def test_a_storage_of_the_greater_size_holds_both(run: Callable) -> None:
    main = run(UNRELATED)["main"]
    rng = np.random.default_rng()
    for n, m in ((0, 0), (1, 0), (0, 33), (17, 5), (5, 64)):
        arrays = [rng.standard_normal((rows, 16)).astype(np.float32) for rows in (n, m)]
        for result, x in zip(main(*arrays), arrays, strict=True):
            expected = np.exp(x.astype(np.float64)).cumsum(0).sum(0)
            np.testing.assert_allclose(result, expected, rtol=1e-5)
