"""Dataflow nodes against NumPy: interpreted in random orders, and compiled at every level."""

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from levels import LEVELS

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
from relax_mlir.errors import CompileError, ExecutionError, UsageError
from relax_mlir.interpreter.instances import instances_in

EXTENTS = (0, 1, 2, 3, 5, 7, 8, 9, 13, 15, 16, 17, 31, 32, 33)
Module = Callable[..., Any]


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng().standard_normal(shape).astype(np.float32)


def every_way(built: Any) -> list[Any]:
    return [
        relax_mlir.interpret(built),
        *(relax_mlir.compile(built, opt_level=o) for o in LEVELS),
    ]


@leaf(x="f32")
def twice(at: Instance, x: Scalar) -> Scalar:
    return x + x


@leaf(x="f32")
def shifted(at: Instance, x: Scalar) -> Scalar:
    return 1.25 * x - 0.5


def test_h01_leaf_and_internal_nodes_are_apart() -> None:
    @internal(x="f32[n]")
    def computes(x: Port) -> Any:
        return x  # an argument, which no node of it computes

    @graph(x="f32[n]")
    def main(x: Port) -> Any:
        return computes.over()(whole(x))

    with pytest.raises(CompileError, match="an argument, which no node of it computes"):
        relax_mlir.compile(module(main))


@leaf(x="f32[4]", scale="f32", table="f32[q]")
def element(at: Instance, x: Tensor, scale: Scalar, table: Tensor) -> Scalar:
    thread, tile, row = at.id(), at.id(level=1), at.id(level=2)
    return x[thread] * scale + table[(row * at.size(level=1) + tile) * 4 + thread]


@leaf(parts="f32[4]")
def total(at: Instance, parts: Tensor) -> Scalar:
    return at.loop(4, 0.0, lambda i, t: t + parts[i])


@internal(x="f32[4]", scales="f32[4]", table="f32[q]")
def tile(x: Port, scales: Port, table: Port) -> Any:
    return total.over()(whole(element.over(4)(whole(x), each(scales), whole(table))))


@internal(x="f32[m, 4]", scales="f32[4]", table="f32[q]")
def row(x: Port, scales: Port, table: Port) -> Any:
    return tile.over("m")(each(x), whole(scales), whole(table))


@graph(x="f32[n, m, 4]", scales="f32[4]", table="f32[q]")
def three_levels(x: Port, scales: Port, table: Port) -> Any:
    return row.over("n")(each(x), whole(scales), whole(table))


def test_h02_three_levels_compute_as_numpy() -> None:
    ways = every_way(module(three_levels))
    for n, m in ((0, 3), (1, 1), (3, 5), (7, 2), (2, 0)):
        x, scales, table = floats(n, m, 4), floats(4), floats(n * m * 4 + 1)
        want = (x.astype(float) * scales + table[: n * m * 4].reshape(n, m, 4)).sum(-1)
        for way in ways:
            np.testing.assert_allclose(
                way["three_levels"](x, scales, table), want, rtol=1e-4, atol=1e-5
            )


@leaf(x="i64")
def flat_1(at: Instance, x: Scalar) -> Scalar:
    return x + at.id().astype("i64")


@leaf(x="i64")
def flat_2(at: Instance, x: Scalar) -> Scalar:
    return x + (at.id(0) * at.size(1) + at.id(1)).astype("i64")


@leaf(x="i64")
def flat_3(at: Instance, x: Scalar) -> Scalar:
    i, j, k = at.ids(3)
    return x + ((i * at.size(1) + j) * at.size(2) + k).astype("i64")


@leaf(x="i64")
def flat_0(at: Instance, x: Scalar) -> Scalar:
    return x + 0


@graph(x="i64[]")
def grid_0(x: Port) -> Any:
    return flat_0.over()(each(x))


@graph(x="i64[n]")
def grid_1(x: Port) -> Any:
    return flat_1.over("n")(each(x))


@graph(x="i64[n, m]")
def grid_2(x: Port) -> Any:
    return flat_2.over("n", "m")(each(x))


@graph(x="i64[n, m, k]")
def grid_3(x: Port) -> Any:
    return flat_3.over("n", "m", "k")(each(x))


def test_h03_each_id_runs_exactly_once() -> None:
    """Of 200 random grids; each instance adds its flat index to what it gets."""
    compiled = relax_mlir.compile(module(grid_0, grid_1, grid_2, grid_3))
    draw = random.Random()
    for _ in range(200):
        shape = tuple(draw.choice(EXTENTS) for _ in range(draw.randrange(4)))
        got = compiled[f"grid_{len(shape)}"](np.zeros(shape, np.int64))
        np.testing.assert_array_equal(got, np.arange(np.prod(shape, dtype=int)).reshape(shape))


def test_h04_ids_of_ancestors() -> None:
    """The interpreter agrees; a dim that a node lacks is in test/Dialect/Graph."""
    way = relax_mlir.interpret(module(grid_0, grid_1, grid_2, grid_3))
    for shape in ((), (3,), (2, 5), (2, 3, 4), (0, 2), (3, 0, 1)):
        got = way[f"grid_{len(shape)}"](np.zeros(shape, np.int64))
        np.testing.assert_array_equal(got, np.arange(np.prod(shape, dtype=int)).reshape(shape))


def test_h05_fused_edges_give_the_same_bits() -> None:
    @graph(x="f32[4*n, m]")
    def main(x: Port) -> Any:
        return twice.over("n*4", "m")(each(shifted.over("4*n", "m")(each(x))))

    built = module(main)
    separate = relax_mlir.compile(built, opt_level=0)
    fused = relax_mlir.compile(built, opt_level=2)
    for n, m in ((0, 3), (1, 1), (3, 17), (8, 33)):
        x = floats(4 * n, m)
        np.testing.assert_array_equal(separate["main"](x), fused["main"](x))
        np.testing.assert_allclose(
            fused["main"](x), 2 * (1.25 * x.astype(float) - 0.5), rtol=1e-5, atol=1e-6
        )


def test_h05_grids_that_differ_are_refused_by_an_example() -> None:
    @graph(x="f32[n]", y="f32[m]")
    def main(x: Port, y: Port) -> Any:
        return twice.over("m")(each(x))

    with pytest.raises(UsageError, match=r"they differ for m = \d+, n = \d+"):
        module(main)


@leaf(x="f32[n]")
def partial(at: Instance, x: Tensor) -> Scalar:
    start = at.id() * 4
    return at.loop(4, 0.0, lambda i, t: t + where(start + i < x.extent(0), x[start + i], 0.0))


@leaf(parts="f32[k]")
def combined(at: Instance, parts: Tensor) -> Scalar:
    return at.loop(parts.extent(0), 0.0, lambda i, t: t + parts[i])


@graph(x="f32[n]")
def two_phases(x: Port) -> Any:
    return combined.over()(whole(partial.over("(n + 3) floordiv 4")(whole(x))))


def test_h06_no_order_of_instances_matters() -> None:
    built = module(two_phases)
    x = floats(29)
    meant = relax_mlir.interpret(built)["two_phases"]
    want = meant(x)
    np.testing.assert_allclose(want, x.sum(dtype=float), rtol=1e-4, atol=1e-5)
    for seed in range(1000):
        with instances_in(lambda count, seed=seed: np.random.default_rng(seed).permutation(count)):
            assert meant(x) == want
    for level in LEVELS:
        compiled = relax_mlir.compile(built, opt_level=level)
        for n in EXTENTS:
            x = floats(n)
            got = compiled["two_phases"](x)
            np.testing.assert_allclose(got, x.sum(dtype=float), rtol=1e-4, atol=1e-5)


def test_h07_binds_are_unique_and_typed() -> None:
    """Errors of the IR are in test/Dialect/Graph; these are those of the decorators."""

    @graph(x="f32[n]", y="i32[n]")
    def twofold(x: Port, y: Port) -> Any:
        return twice.over("n")(each(x), each(x))

    @graph(x="f32[n]", y="i32[n]")
    def ill_typed(x: Port, y: Port) -> Any:
        return twice.over("n")(each(y))

    @graph(x="f32[n]", y="i32[n]")
    def unbound(x: Port, y: Port) -> Any:
        return twice.over("n")(x)

    with pytest.raises(UsageError, match="has 1 parameters, not 2"):
        module(twofold)
    with pytest.raises(UsageError, match=r"takes each\(x\) or whole\(x\)"):
        module(unbound)
    with pytest.raises(CompileError, match="passes 'tensor<i32>' as operand 0 to '@twice'"):
        relax_mlir.compile(module(ill_typed))


def text_of_nodes(nodes: str) -> str:
    """A module of an internal node with nodes from and to values of these names."""
    node = """  {to} = "graph.node"({of}) {{callee = @{callee}, grid = #graph.shape<[]>,
      edges = ["one_to_one"], operandSegmentSizes = array<i32: 1{zeros}>,
      resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>}} : (!x) -> !x
"""
    rows = (
        node.format(zeros=", 0" * 31, **dict(zip(("to", "of", "callee"), row.split())))
        for row in nodes.split(";")
    )
    return (
        "!x = tensor<f32>\nfunc.func private @a(%x: f32) -> f32 attributes {tir.leaf} {\n"
        "  return %x : f32\n}\n"
        "func.func private @b(%x: !x) -> !x attributes {graph.internal_node} {\n"
        f"{''.join(rows)}  return %1 : !x\n}}\n"
        "func.func @main(%x: !x) -> !x {\n"
        + node.format(to="%0", of="%x", callee="b", zeros=", 0" * 31)
        + "  return %0 : !x\n}\n"
    )


@pytest.mark.parametrize(
    ("nodes", "error"),
    [
        ("%1 %x b", "contains itself: @b -> @b"),
        ("%0 %1 a;%1 %0 a", "does not dominate"),
        ("%1 %x a;%1 %x a", "redefinition of SSA value"),
    ],
    ids=["hierarchy", "values", "producers"],
)
def test_h08_cycles_and_second_producers_are_refused(nodes: str, error: str) -> None:
    """A cycle of the hierarchy has its path in the message; one of values is none in SSA."""
    with pytest.raises(CompileError, match=error):
        relax_mlir.compile(text_of_nodes(nodes))
    with pytest.raises((CompileError, ExecutionError)):
        relax_mlir.interpret(text_of_nodes(nodes))["main"](np.float32(1))


def test_h08_what_is_no_cycle_runs() -> None:
    """Two nodes of one leaf, and one value that two nodes use."""
    for way in every_way(text_of_nodes("%0 %x a;%2 %0 a;%1 %0 a")):
        assert way["main"](np.float32(3)) == 3


def test_indices_outside_are_clamped() -> None:
    """Whatever the input: indices that are data, of tensors that may be empty."""

    @leaf(i="i64", table="f32[k]")
    def look_up(at: Instance, i: Scalar, table: Tensor) -> Scalar:
        return table[i]

    @graph(i="i64[n]", table="f32[k]")
    def main(i: Port, table: Port) -> Any:
        return look_up.over("n")(each(i), whole(table))

    ways = every_way(module(main))
    edges = np.array([0, -1, 3, 4, 5, 2**63 - 1, -(2**63)], np.int64)
    for k in (0, 1, 4, 5):
        table = floats(k)
        want = table[np.clip(edges, 0, k - 1)] if k else np.zeros(len(edges), np.float32)
        for way in ways:
            np.testing.assert_array_equal(way["main"](edges, table), want)


def test_grids_that_no_memory_holds_are_refused() -> None:
    @graph(x="f32[n]")
    def main(x: Port) -> Any:
        return partial.over("n*n*n*n", "n*n*n")(whole(x))

    @graph(x="f32[n]")
    def negative(x: Port) -> Any:
        return partial.over("n - 5")(whole(x))

    compiled = relax_mlir.compile(module(main, negative))
    with pytest.raises(ExecutionError):
        compiled["main"](floats(100_003))
    with pytest.raises(ExecutionError):
        compiled["negative"](floats(3))
    assert compiled["negative"](floats(5)).shape == (0,)
    with pytest.raises(ExecutionError):
        relax_mlir.interpret(module(negative))["negative"](floats(3))


def test_h18_a_saved_graph_needs_no_source(tmp_path: Path) -> None:
    """Bytecode of the module, compiled by the tool in another process for an older machine."""
    path, out = tmp_path / "graph.mlirbc", tmp_path / "graph.so"
    with path.open("wb") as file:
        module(two_phases).operation.write_bytecode(file)
    code = "import sys; from relax_mlir.tools.relax_compile import main; sys.exit(main())"
    command = [sys.executable, "-c", code, str(path), "--target=x86-64-v2", "-o", str(out)]
    subprocess.run(command, check=True, timeout=120)
    x = floats(41)
    want = relax_mlir.compile(module(two_phases), target="x86-64-v2")["two_phases"](x)
    assert relax_mlir.load(out)["two_phases"](x) == want


def test_h18_fused_nodes_give_the_same_bits() -> None:
    """A chain whose second node reads its own table, and one inside of an internal node."""

    @leaf(x="f32", table="f32[k]")
    def picked(at: Instance, x: Scalar, table: Tensor) -> Scalar:
        return x * table[at.id() + at.size()] + 0.125

    @internal(x="f32[4]", table="f32[k]")
    def inner(x: Port, table: Port) -> Any:
        return picked.over(4)(each(twice.over(4)(each(x))), whole(table))

    @graph(x="f32[n, 4]", y="f32[n]", table="f32[k]")
    def main(x: Port, y: Port, table: Port) -> Any:
        chain = picked.over("n")(each(shifted.over("n")(each(y))), whole(table))
        return inner.over("n")(each(x), whole(table)), chain

    built, fused = module(main), module(main, passes="relax-dataflow-fuse")
    assert (str(built).count("graph.node"), str(fused).count("graph.node")) == (5, 3)
    pairs = [(relax_mlir.interpret(built), relax_mlir.interpret(fused))]
    for level in LEVELS:  # on a machine that rounds each product
        one, other = (
            relax_mlir.compile(each, opt_level=level, target="x86-64-v2") for each in (built, fused)
        )
        pairs.append((one, other))
    for n, k in ((0, 3), (1, 0), (5, 1), (7, 9), (33, 70)):
        arguments = floats(n, 4), floats(n), floats(k)
        x, y, table = (value.astype(float) for value in arguments)
        tiles, line = np.clip(np.arange(4) + 4, 0, k - 1), np.clip(np.arange(n) + n, 0, k - 1)
        read = (table[tiles], table[line]) if k else (0, 0)
        wants = (2 * x * read[0] + 0.125, (1.25 * y - 0.5) * read[1] + 0.125)
        for one, other in pairs:
            separate, got = one["main"](*arguments), other["main"](*arguments)
            for a, b, want in zip(separate, got, wants, strict=True):
                np.testing.assert_array_equal(a, b)
                np.testing.assert_allclose(a, want, rtol=1e-5, atol=1e-6)


def test_conversions_of_any_value() -> None:
    """Comparisons are 1 or 0; floats are truncated and clamped, NaN is 0, also as an index."""

    @leaf(x="f32", table="f32[k]")
    def converted(at: Instance, x: Scalar, table: Tensor) -> Any:
        is_more = x > 0.5
        kinds = [is_more.astype(kind) for kind in ("f32", "i8", "i64", "f16")]
        halves = x.astype("f16").astype("bf16").astype("f32")
        integers = [x.astype(kind) for kind in ("i8", "i32", "i64")]
        index = table[is_more.astype("index")]
        return (*kinds, *integers, halves, x.astype("i1").astype("i32"), index, table[x])

    @graph(x="f32[n]", table="f32[k]")
    def main(x: Port, table: Port) -> Any:
        return converted.over("n")(each(x), whole(table))

    special = [0, 0.25, 0.5, 1, 1.99, -1.99, 127.5, 128, -129, 1e30, -1e30, np.nan, np.inf, -np.inf]
    draw = np.random.default_rng()
    x = np.concatenate([special, draw.normal(scale=300, size=19)]).astype(np.float32)
    table = draw.standard_normal(5).astype(np.float32)
    is_more = (x > 0.5).astype(int)
    wide = np.nan_to_num(np.trunc(x.astype(float)), nan=0.0)
    at = np.clip(wide, 0, 4).astype(int)
    want: list[Any] = [is_more] * 4
    for kind in (np.int8, np.int32, np.int64):
        limits = np.iinfo(kind)
        clamped = [min(max(int(v), limits.min), limits.max) for v in np.clip(wide, -1e30, 1e30)]
        want.append(np.array(clamped))
    with np.errstate(over="ignore"):
        half = x.astype(np.float16).astype(np.float32)
    built = module(main)
    for run in (relax_mlir.interpret(built), relax_mlir.compile(built)):
        *kinds, halves, is_any, index, picked = run["main"](x, table)
        for got, expected in zip(kinds, want, strict=True):
            np.testing.assert_array_equal(np.asarray(got, dtype=None), expected)
        np.testing.assert_allclose(halves, half, rtol=2**-8)
        np.testing.assert_array_equal(is_any, x != 0)
        np.testing.assert_array_equal(index, table[is_more])
        np.testing.assert_array_equal(picked, table[at])
