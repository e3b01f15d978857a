"""Memory that all instances update, and barriers, against NumPy: in random orders, and compiled."""

from functools import cache
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
    internal,
    leaf,
    module,
    where,
    whole,
)
from relax_mlir.errors import CompileError, ExecutionError
from relax_mlir.interpreter.instances import instances_in

pytestmark = pytest.mark.usefixtures("llvm_turns")
KINDS = ("add", "sub", "min", "max", "and", "or", "xor")
SIZES = ((0, 3), (1, 1), (7, 0), (5, 4), (129, 2), (1000, 7), (4099, 16), (300, 257))


def updater(kind: str) -> Any:
    @leaf(table="shared i32[k]", at="i64", x="i32")
    def update(instance: Instance, table: Tensor, at: Scalar, x: Scalar) -> Tensor:
        return table.atomic(kind, at, x)

    @graph(table="i32[k]", at="i64[n]", x="i32[n]")
    def updated(table: Port, at: Port, x: Port) -> Any:
        return update.over("n")(whole(table), each(at), each(x))

    for function in (update.function, updated.function):
        function.__name__ += f"_{kind}"
    return updated


@leaf(counts="shared i64[k, 2]", x="i16")
def parities(at: Instance, counts: Tensor, x: Scalar) -> Tensor:
    """One more in the row `x`, and as many in its other column as the instance has rows above."""
    return at.loop(
        at.id(0), counts.atomic("add", (x, 0), 1), lambda i, t: t.atomic("add", (x, 1), 1)
    )


@graph(counts="i64[k, 2]", x="i16[n, m]")
def of_two_dims(counts: Port, x: Port) -> Any:
    return parities.over("n", "m")(whole(counts), each(x))


@leaf(sum="shared i8[]", least="shared i64[]", x="i64")
def reduced(at: Instance, sum: Tensor, least: Tensor, x: Scalar) -> Any:
    return sum.atomic("add", (), x.astype("i8")), least.atomic("min", (), x)


@graph(sum="i8[]", least="i64[]", x="i64[n]")
def to_scalars(sum: Port, least: Port, x: Port) -> Any:
    return reduced.over("n")(whole(sum), whole(least), each(x))


@leaf(level="shared i32[k]", at="i64", depth="i32")
def reach(instance: Instance, level: Tensor, at: Scalar, depth: Scalar) -> Tensor:
    return level.atomic("exchange", at, depth + 1)


@graph(level="i32[k]", at="i64[n]", depth="i32[]")
def reached(level: Port, at: Port, depth: Port) -> Any:
    return reach.over("n")(whole(level), each(at), whole(depth))


@internal(bins="i32[k]", row="i64[m]", depth="i32[]")
def of_row(bins: Port, row: Port, depth: Port) -> Any:
    counted = count.over("m")(whole(bins), each(row))
    return reach.over("m")(whole(counted), each(row), whole(depth))


@leaf(bins="shared i32[k]", x="i64")
def count(at: Instance, bins: Tensor, x: Scalar) -> Tensor:
    return bins.atomic("add", x, 1)


@graph(bins="i32[n, k]", rows="i64[n, m]", depth="i32[]")
def of_rows(bins: Port, rows: Port, depth: Port) -> Any:
    return of_row.over("n")(each(bins), each(rows), whole(depth))


@graph(bins="i32[k]", rows="i64[n, m]", depth="i32[]")
def of_rows_from_one(bins: Port, rows: Port, depth: Port) -> Any:
    return of_row.over("n")(whole(bins), each(rows), whole(depth))


@leaf(bins="shared i32[k]", most="shared i32[]", x="i64")
def ranked(at: Instance, bins: Tensor, most: Tensor, x: Scalar) -> Any:
    """Three phases: counts, the greatest of them, and what an element's count lacks to it."""
    bins, most = at.barrier(bins.atomic("add", x, 1), most)
    own = bins[x]
    bins, most = at.barrier(bins, most.atomic("max", (), own))
    return bins, most, most[()] - own


@graph(bins="i32[k]", most="i32[]", x="i64[n]")
def in_phases(bins: Port, most: Port, x: Port) -> Any:
    return ranked.over("n")(whole(bins), whole(most), each(x))


GRAPHS = (*map(updater, KINDS), of_two_dims, to_scalars, reached, of_rows, of_rows_from_one)


@cache
def ways(*targets: str) -> list[Any]:
    built = module(*GRAPHS, in_phases)
    return [relax_mlir.interpret(built), *(relax_mlir.compile(built, each) for each in targets)]


def integers(low: int, high: int, *shape: int, dtype: Any = np.int32) -> np.ndarray:
    return np.random.default_rng().integers(low, high, shape, dtype)


def update_in_numpy(kind: str, table: np.ndarray, at: np.ndarray, x: np.ndarray) -> np.ndarray:
    ufuncs = {"add": np.add, "sub": np.subtract, "min": np.minimum, "max": np.maximum}
    ufunc = ufuncs.get(kind) or getattr(np, f"bitwise_{kind}")
    result, is_inside = table.copy(), (at >= 0) & (at < len(table))
    ufunc.at(result, at[is_inside], x[is_inside])
    return result


@pytest.mark.parametrize("kind", KINDS)
def test_h15_updates_of_each_kind(kind: str) -> None:
    """Sums wrap, and an index outside changes nothing."""
    for n, k in SIZES:
        table, x = integers(-(2**31), 2**31 - 1, k), integers(-(2**31), 2**31 - 1, n)
        at = integers(-1, k + 1, n, dtype=np.int64)
        at[: n // 8] = np.random.default_rng().choice([2**63 - 1, -(2**63)], n // 8)
        want, before = update_in_numpy(kind, table, at, x), table.copy()
        for way in ways("native")[n > 200 :]:
            np.testing.assert_array_equal(way[f"updated_{kind}"](table, at, x), want)
            np.testing.assert_array_equal(table, before)


def test_h15_no_order_matters() -> None:
    meant = ways("native")[0]
    table, at, x = integers(-9, 9, 5), integers(-1, 6, 12, dtype=np.int64), integers(-9, 9, 12)
    for kind in KINDS:
        want = update_in_numpy(kind, table, at, x)
        for seed in range(20):
            shuffled = np.random.default_rng(seed)
            with instances_in(shuffled.permutation):
                np.testing.assert_array_equal(meant[f"updated_{kind}"](table, at, x), want)
                phases = meant["in_phases"](table, np.int32(0), at)
        counts = table + np.bincount(at[(at >= 0) & (at < 5)], minlength=5)
        np.testing.assert_array_equal(phases[0], counts)


def test_h15_several_dims_and_tensors() -> None:
    for n, m, k in ((0, 2, 3), (1, 1, 1), (3, 5, 4), (40, 31, 3)):
        counts, x = integers(0, 9, k, 2, dtype=np.int64), integers(-1, k + 1, n, m, dtype=np.int16)
        want = counts.copy()
        for (i, _), value in np.ndenumerate(x) if n else ():
            if 0 <= value < k:
                want[value] += [1, i]
        for way in ways("native"):
            np.testing.assert_array_equal(way["of_two_dims"](counts, x), want)
    for n in (0, 1, 200, 1001):
        x = integers(-(2**63), 2**63 - 1, n, dtype=np.int64)
        want_sum = np.int8(7) + x.astype(np.int8).sum(dtype=np.int8)
        for way in ways("native"):
            got, least = way["to_scalars"](np.array(7, np.int8), np.array(2**62), x)
            assert got == want_sum.astype(np.int8)
            assert least == min(2**62, *x, 2**62)


def test_h15_what_instances_exchange_is_the_same() -> None:
    for n, k in SIZES[:6]:
        level, at = integers(-9, 9, k), integers(-1, k + 1, n, dtype=np.int64)
        want = level.copy()
        want[at[(at >= 0) & (at < k)]] = 6
        for way in ways("native"):
            np.testing.assert_array_equal(way["reached"](level, at, np.int32(5)), want)


def test_h15_inside_of_internal_nodes() -> None:
    """Each instance of the node around has a tensor of its own."""
    for n, m, k in ((0, 2, 3), (3, 0, 2), (4, 9, 3), (17, 5, 1)):
        bins, rows = integers(0, 9, n, k), integers(-1, k + 1, n, m, dtype=np.int64)
        for name, given in (("of_rows", bins), ("of_rows_from_one", integers(0, 9, k))):
            want = np.broadcast_to(given, (n, k)).copy()
            for i, row in enumerate(rows):
                inside = row[(row >= 0) & (row < k)]
                want[i] += np.bincount(inside, minlength=k).astype(np.int32)
                want[i][inside] = 3
            for way in ways("native"):
                got = way[name](given, rows, np.int32(2))
                np.testing.assert_array_equal(got, want)


def test_h15_a_barrier_divides_phases() -> None:
    for n, k in ((0, 2), (1, 1), (9, 3), (700, 5)):
        x = integers(0, k, n, dtype=np.int64)
        counts = np.bincount(x, minlength=k).astype(np.int32)
        most = max(counts[x], default=0)
        for way in ways("native")[n > 200 :]:
            got = way["in_phases"](np.zeros(k, np.int32), np.int32(0), x)
            for one, want in zip(got, (counts, most, most - counts[x]), strict=True):
                np.testing.assert_array_equal(one, want)


def test_h15_on_a_device() -> None:
    _, device = ways("gpu")
    for n, k in ((0, 3), (9, 3), (150, 2)):
        table, at = integers(0, 9, k), integers(-1, k + 1, n, dtype=np.int64)
        x = integers(-99, 99, n)
        for kind in KINDS:
            want = update_in_numpy(kind, table, at, x)
            np.testing.assert_array_equal(device[f"updated_{kind}"](table, at, x), want)
        meant = ways("gpu")[0]["in_phases"](table, np.int32(0), at)
        for got, want in zip(device["in_phases"](table, np.int32(0), at), meant, strict=True):
            np.testing.assert_array_equal(got, want)


def test_h15_a_barrier_in_divergent_code_is_refused() -> None:
    @leaf(bins="shared i32[k]", x="i64")
    def diverges(at: Instance, bins: Tensor, x: Scalar) -> Tensor:
        return at.loop(x, bins, lambda i, t: at.barrier(t.atomic("add", i, 1)))

    @leaf(bins="shared i32[k]", x="i64")
    def reads(at: Instance, bins: Tensor, x: Scalar) -> Tensor:
        made = bins.atomic("add", x, 1)
        return made.atomic("add", made[x], 1)

    @leaf(bins="shared i32[k]", x="i64")
    def exchanges(at: Instance, bins: Tensor, x: Scalar) -> Tensor:
        return bins.atomic("exchange", x, at.id().astype("i32"))

    for wrong, says in (
        (diverges, "'tir.barrier' op is in a branch or a loop, which instances may run diff"),
        (reads, "'tensor.extract' op reads what instances update; expects a barrier"),
        (exchanges, "'tir.atomic' op exchanges an element for a value that instances may not"),
    ):

        @graph(bins="i32[k]", x="i64[n]")
        def main(bins: Port, x: Port, wrong: Any = wrong) -> Any:
            return wrong.over("n")(whole(bins), each(x))

        with pytest.raises(CompileError, match=says):
            relax_mlir.compile(module(main))


def test_h15_grids_that_are_negative_are_refused() -> None:
    @leaf(bins="shared i32[k]", x="i64[n]")
    def last(at: Instance, bins: Tensor, x: Tensor) -> Tensor:
        return bins.atomic("add", x[at.id()], where(x[at.id()] > 0, at.size().astype("i32"), 0))

    @graph(bins="i32[k]", x="i64[n]")
    def main(bins: Port, x: Port) -> Any:
        return last.over("n - 5")(whole(bins), whole(x))

    built = module(main)
    for way in (relax_mlir.interpret(built), relax_mlir.compile(built)):
        with pytest.raises(ExecutionError):
            way["main"](np.zeros(3, np.int32), np.zeros(4, np.int64))
        got = way["main"](np.zeros(3, np.int32), np.array([2] * 7))
        np.testing.assert_array_equal(got, [0, 0, 4])
