"""Leaves over tiles compute what they compute over the grid: any sizes, guards or none."""

import random
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
    exp,
    graph,
    internal,
    leaf,
    module,
    where,
    whole,
)
from relax_mlir.errors import CompileError
from relax_mlir.interpreter.instances import instances_in

TILE = "relax-tile-node{sizes=4,8}"
EXTENTS = (0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31)


@leaf(a="f32[n, k]", b="f32[k, m]")
def product(at: Instance, a: Tensor, b: Tensor) -> Scalar:
    i, j = at.ids(2)
    return at.loop(a.extent(1), 0.0, lambda k, t: t * 0.5 + a[i, k] * b[k, j])


@leaf(x="f32", row="f32[m]", factor="f32", table="f32[q]")
def asks(at: Instance, x: Scalar, row: Tensor, factor: Scalar, table: Tensor) -> Scalar:
    """Its indices and extents, those of the node around it, and loops after and in each other."""
    i, j = at.ids(2)
    flat = (at.id(level=1) * at.size(0) + i) * at.size(1) + j
    weight = exp(x * factor)
    uneven = at.loop(i, 0.0, lambda k, t: t + table[k])
    steps = at.loop(i, at.size(1), lambda k, t: t + 1)

    def inner(k: Scalar, t: Scalar) -> Scalar:
        picked = table[flat + k + steps - i - at.size(1)]
        return at.loop(2, t, lambda q, s: s * 0.5 + weight * picked + table[flat - q])

    first = at.loop(row.extent(0), 0.0, lambda k, t: t * 0.5 + row[k] * (weight + uneven))
    return where(j < at.size(1) - 1, at.loop(3, first, inner) - steps.astype("f32"), x)


@internal(x="f32[n, m]", row="f32[m]", factor="f32", table="f32[q]")
def around(x: Port, row: Port, factor: Port, table: Port) -> Any:
    return asks.over("n", "m")(each(x), whole(row), whole(factor), whole(table))


@leaf(row="inout f32[3]", at_="i64", x="f32")
def updates(at: Instance, row: Tensor, at_: Scalar, x: Scalar) -> tuple[Tensor, Scalar]:
    return row.set(at_, x), row[at_] + x


@graph(a="f32[n, k]", b="f32[k, m]")
def products(a: Port, b: Port) -> Any:
    return product.over("n", "m")(whole(a), whole(b))


@graph(x="f32[l, n, m]", row="f32[m]", factor="f32", table="f32[q]")
def asked(x: Port, row: Port, factor: Port, table: Port) -> Any:
    return around.over("l")(each(x), whole(row), whole(factor), whole(table))


@graph(rows="f32[n, m, 3]", at_="i64[n, m]", x="f32[n, m]")
def updated(rows: Port, at_: Port, x: Port) -> Any:
    return updates.over("n", "m")(each(rows), each(at_), each(x))


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng().standard_normal(shape).astype(np.float32)


def decayed_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The leaf `product`: no sum, whose loop another schedule would be for."""
    return (a * 0.5 ** np.arange(a.shape[1])[::-1].astype(float)) @ b.astype(float)


def asked_by_numpy(x: np.ndarray, row: Any, factor: Any, table: Any) -> np.ndarray:
    x, row, table = (array.astype(float) for array in (x, row, table))
    if not x.size:
        return x
    weight = np.exp(x * factor)
    flat = np.arange(x.size).reshape(x.shape)
    before = [sum(table[min(k, len(table) - 1)] for k in range(i)) for i in range(x.shape[1])]
    result = np.zeros(x.shape)
    for element in row:
        result = result * 0.5 + element * (weight + np.array(before)[:, None])
    for k in range(3):
        for q in range(2):
            result = result * 0.5 + weight * table[np.clip(flat + k, 0, len(table) - 1)]
            result += table[np.clip(flat - q, 0, len(table) - 1)]
    result -= x.shape[2] + np.arange(x.shape[1])[:, None]
    result[..., -1] = x[..., -1]
    return result


def test_h17_tiles_compute_as_numpy() -> None:
    built = module(products, asked, updated, passes=TILE)
    assert str(built).count("graph.extents") == 3
    draw = random.Random()
    meant = relax_mlir.interpret(built)
    compiled = relax_mlir.compile(built, opt_level=draw.choice([0, 2]))
    for index in range(8):
        n, m, k = (draw.choice(EXTENTS if index else (2, 5)) for _ in range(3))
        layers = draw.choice([0, 1, 3])
        a, b = floats(n, k), floats(k, m)
        x, row, factor, table = floats(layers, n, m), floats(m), floats(), floats(n * m + 5)
        rows, at_ = floats(n, m, 3), np.array(draw.choices([0, 1, 2, 3, -1], k=n * m), np.int64)
        stored, added = rows.copy(), rows[..., 0].copy()
        for i, j in np.ndindex(n, m):
            to = at_[i * m + j]
            added[i, j] = rows[i, j, min(max(to, 0), 2)] + x[0, i, j] if layers else 0
            if 0 <= to < 3 and layers:
                stored[i, j, to] = x[0, i, j]
        for way in (compiled,) if index else (meant, compiled):
            np.testing.assert_allclose(
                way["products"](a, b), decayed_product(a, b), rtol=1e-4, atol=1e-4
            )
            np.testing.assert_allclose(
                way["asked"](x, row, factor, table),
                asked_by_numpy(x, row, factor, table),
                rtol=1e-3,
                atol=1e-3,
            )
            if layers:
                got = way["updated"](rows, at_.reshape(n, m), x[0])
                np.testing.assert_array_equal(got[0], stored)
                np.testing.assert_allclose(got[1], added, rtol=1e-6, atol=1e-6)


def test_loops_after_loops_that_sum() -> None:
    """Untiled: a loop is a reduction, and others take what it gives."""
    compiled = relax_mlir.compile(module(asked))
    for n, m in ((0, 3), (1, 1), (5, 17)):
        arrays = floats(2, n, m), floats(m), floats(), floats(2 * n * m + 1)
        want = asked_by_numpy(*arrays)
        np.testing.assert_allclose(compiled["asked"](*arrays), want, rtol=1e-3, atol=1e-3)


def test_h17_no_order_of_tiles_matters() -> None:
    built = relax_mlir.interpret(module(asked, passes="relax-tile-node{sizes=2,3}"))
    arrays = floats(2, 3, 4), floats(4), floats(), floats(23)
    want = built["asked"](*arrays)
    np.testing.assert_allclose(want, asked_by_numpy(*arrays), rtol=1e-3, atol=1e-3)
    for seed in range(5):
        with instances_in(lambda count, seed=seed: np.random.default_rng(seed).permutation(count)):
            np.testing.assert_array_equal(built["asked"](*arrays), want)


@pytest.mark.parametrize("rank", [1, 3])
def test_h17_grids_of_other_ranks(rank: int) -> None:
    """Tiles longer than the grid too; nodes over another count of dims stay as they are."""
    dims = ("n", "m", "k")[:rank]

    @leaf(x="f32", table="f32[q]")
    def shifted(at: Instance, x: Scalar, table: Tensor) -> Scalar:
        flat = at.id(0)
        for dim in range(1, rank):
            flat = flat * at.size(dim) + at.id(dim)
        return x + at.loop(table.extent(0), 0.0, lambda i, t: t * 0.5 + table[i - flat])

    @graph(x=f"f32[{', '.join(dims)}]", table="f32[q]")
    def main(x: Port, table: Port) -> Any:
        return shifted.over(*dims)(each(x), whole(table))

    sizes = {1: "5", 3: "2,3,50"}[rank]
    compiled = relax_mlir.compile(module(main, passes=f"relax-tile-node{{sizes={sizes}}}"))
    for _ in range(4):
        shape = [random.choice(EXTENTS) for _ in range(rank)]
        x, table = floats(*shape), floats(7)
        flat = np.arange(x.size).reshape(shape)
        terms = (0.5 ** (6 - i) * table[np.clip(i - flat, 0, 6)].astype(float) for i in range(7))
        want = x + sum(terms)
        np.testing.assert_allclose(compiled["main"](x, table), want, rtol=1e-4, atol=1e-4)


def test_h17_guards_are_where_sizes_do_not_divide() -> None:
    """By a fact on the calls, which refuses others, or by the form of an extent."""
    passes = f"{TILE},relax-lower-dataflow"
    text = str(module(products, passes=passes, facts=["n mod 4 == 0"]))
    assert "tir.whole_tiles = array<i1: true, false>" in text

    @graph(a="f32[n, k]", b="f32[k, 16*m]")
    def main(a: Port, b: Port) -> Any:
        return product.over("n", "16*m")(whole(a), whole(b))

    built = module(main, passes=TILE, facts=["n mod 4 == 0"])
    assert 'grid = #graph.shape<["n floordiv 4", "2*m"]>' in str(built)
    compiled = relax_mlir.compile(built)
    for n, m in ((0, 1), (4, 0), (4, 1), (12, 2)):
        a, b = floats(n, 5), floats(5, 16 * m)
        np.testing.assert_allclose(
            compiled["main"](a, b), decayed_product(a, b), rtol=1e-4, atol=1e-5
        )
    with pytest.raises(relax_mlir.errors.ExecutionError, match="n mod 4 == 0"):
        compiled["main"](floats(3, 5), floats(5, 16))


def test_h17_what_leaves_ask_outside_of_tiles_is_refused() -> None:
    text = str(module(products, passes=TILE)).replace(
        'graph.extents = #graph.shape<["n", "m"]>, ', ""
    )
    with pytest.raises(CompileError, match="result 0 of"):
        relax_mlir.compile(text)
