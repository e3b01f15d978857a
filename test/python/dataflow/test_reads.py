"""Reads of leaves at indices that are proved to be inside, that data decide, or that wrap."""

from typing import Any

import numpy as np
import pytest

import relax_mlir
from relax_mlir.dataflow import (
    Instance,
    Port,
    Scalar,
    Tensor,
    each,
    graph,
    leaf,
    maximum,
    minimum,
    module,
    where,
    whole,
)

SIZES = [(0, 3, 2), (1, 1, 1), (2, 1, 3), (5, 0, 4), (3, 7, 11), (31, 33, 64)]


@leaf(x="f32[m]", at="i32[d, h, w]")
def gathered(instance: Instance, x: Tensor, at: Tensor) -> Tensor:
    """An element that data choose, and the instance's indices."""
    z, y, i = instance.ids(3)
    made = instance.filled(0, 4).set(0, x[at[z, y, i]])
    return made.set(1, z.astype("f32")).set(2, y.astype("f32")).set(3, i.astype("f32"))


@leaf(x="f32[n + 1]", ends="i32[n]")
def runs(instance: Instance, x: Tensor, ends: Tensor) -> Scalar:
    """Sums of x from an instance's index to an end, which there may not be."""
    i = instance.id()
    end = minimum(ends[i].astype("index"), x.extent(0))

    def add(p: Scalar, total: Scalar) -> Scalar:
        return total * 0.5 + x[p]

    ahead = x[i + 1] * 2 + x[i + 2] * 4  # the second may be outside
    far = x[minimum(i + (2**63 - 1), x.extent(0) - 1)]  # the sum wraps for i > 0
    return instance.loop(where(end > 3, end, i), ahead + far, add, first=i)


@leaf(x="f32[d, h]")
def around(instance: Instance, x: Tensor) -> Scalar:
    """Sums over neighbours that there are, of those that are not negative."""
    z, y = instance.ids(2)

    def near(a: Scalar, b: Scalar, total: Scalar) -> Scalar:
        row, column = z + a - 1, y + b - 1
        rows = (row >= 0) & (row < x.extent(0))
        columns = (column >= 0) & (column < x.extent(1))
        value = x[row, column]
        return total + where(rows & columns & (value >= 0.0), value, 0.0)

    def above(a: Scalar, b: Scalar, total: Scalar) -> Scalar:
        row = z + a - 1
        value = x[row, b] * (y - 2).astype("f32")
        inside = (row >= 0) & (row < x.extent(0)) & (b < x.extent(1))
        return total + where((value >= 0.0) & inside, value, 0.0)

    return instance.loops((3, 3), 0.0, near) + instance.loops((3, 2), 0.0, above)


@leaf(x="f32[m]", at="i64")
def entangled(instance: Instance, x: Tensor, at: Scalar) -> Scalar:
    """An index of long chains of ops, each of which uses one twice."""
    index, near = at.astype("index"), at >= 0
    for step in range(60):
        index = maximum(minimum(index, index + 0), index)
        near = (near & (at > -step - 1)) & (near & (at < step + 100))
    for step in range(1100):
        index = minimum(index, 1200 - step)

    def add(p: Scalar, total: Scalar) -> Scalar:
        return total + where(near & (x[p] > 0.0), x[p], 0.0)

    return instance.loop(x.extent(0), 0.0, add) + x[index]


@graph(x="f32[m]", at="i64[n]")
def entanglements(x: Port, at: Port) -> Any:
    return entangled.over("n")(whole(x), each(at))


@graph(x="f32[m]", at="i32[d, h, w]")
def gathers(x: Port, at: Port) -> Any:
    return gathered.over("d", "h", "w")(whole(x), whole(at))


@graph(x="f32[n + 1]", ends="i32[n]")
def sums(x: Port, ends: Port) -> Any:
    return runs.over("n")(whole(x), whole(ends))


@graph(x="f32[d, h]")
def neighbours(x: Port) -> Any:
    return around.over("d", "h")(whole(x))


@pytest.fixture(scope="module")
def ways() -> list[Any]:
    built = module(gathers, sums, neighbours)
    return [relax_mlir.interpret(built), relax_mlir.compile(built)]


def test_indices_that_data_decide(ways: list[Any]) -> None:
    """Those outside are clamped, of no elements there is 0; instances know where they are."""
    draw = np.random.default_rng()
    extremes = np.array([-(2**31), -1, 0, 1, 2**31 - 1], np.int32)
    for dims in SIZES:
        for m in (0, 1, 5):
            x = draw.standard_normal(m).astype(np.float32)
            at = draw.choice(np.concatenate([extremes, np.arange(m, dtype=np.int32)]), dims)
            at = at.astype(np.int32)
            expected = np.zeros((*dims, 4), np.float32)
            if m:
                expected[..., 0] = x[np.clip(at.astype(np.int64), 0, m - 1)]
            expected[..., 1:] = np.moveaxis(np.indices(dims), 0, -1)
            for way in ways if np.prod(dims) < 1000 else ways[1:]:
                np.testing.assert_array_equal(way["gathers"](x, at), expected)


def test_indices_that_are_proved(ways: list[Any]) -> None:
    """A constant ahead of an index, where a loop that has no round begins, a sum that wraps."""
    draw = np.random.default_rng()
    for n in (0, 1, 2, 7, 64):
        x = draw.standard_normal(n + 1).astype(np.float32)
        ends = draw.integers(-3, n + 5, n).astype(np.int32)
        expected = np.zeros(n, np.float32)
        for i in range(n):
            far = n if i == 0 else 0  # clamped to 0 once it has wrapped
            total = x[i + 1] * np.float32(2) + x[min(i + 2, n)] * np.float32(4) + x[far]
            end = min(int(ends[i]), n + 1)
            for p in range(i, end if end > 3 else i):
                total = total * np.float32(0.5) + x[p]
            expected[i] = total
        for way in ways:
            np.testing.assert_allclose(way["sums"](x, ends), expected, rtol=1e-5, atol=1e-6)


def test_rounds_that_a_condition_skips(ways: list[Any]) -> None:
    """A sum is the same whether its loops are skipped or add 0, NaN and -0.0 included."""
    draw = np.random.default_rng()
    for d, h in ((0, 2), (1, 1), (2, 1), (1, 17), (3, 16), (5, 33)):
        x = draw.standard_normal((d, h)).astype(np.float32)
        x[draw.random((d, h)) < 0.2] = -0.0
        x[draw.random((d, h)) < 0.1] = np.nan
        padded = np.pad(np.where(x >= 0, x, 0), 1)
        expected = sum(padded[a : a + d, b : b + h] for a in range(3) for b in range(3))
        first = np.pad(x[:, :2], ((1, 1), (0, 0)))[..., None] * (np.arange(h) - 2)
        first = np.where(first >= 0, first, 0).sum(1)
        expected = expected + first[:-2] + first[1:-1] + first[2:]
        for way in ways:
            result = way["neighbours"](x)
            np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)
            assert not np.signbit(result).any()


def test_chains_of_indices_take_no_long_time() -> None:
    """What is proved of a value, or asked, is so once, however many use it."""
    compiled = relax_mlir.compile(module(entanglements))
    x = np.random.default_rng().standard_normal(200).astype(np.float32)
    at = np.array([-7, 0, 50, 10**15])
    expected = x[np.clip(at, 0, 101)]
    expected[1:3] += x[x > 0].sum()
    np.testing.assert_allclose(compiled["entanglements"](x, at), expected, rtol=1e-5)
