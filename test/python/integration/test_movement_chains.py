"""Moved elements are exact, at every level, and nothing is touched outside of a tensor.

Every array ends, or begins, at a page without access: a load or store beyond ends the process.
"""

import random
from functools import cache

import numpy as np
import pytest
from levels import LEVELS
from movement_chains import EXTENTS, Chain

import relax_mlir
from relax_mlir.bindings import func, ir
from relax_mlir.dialects import graph, make_context
from relax_mlir.symbolic import const, sym
from relax_mlir.testing.guards import check_guards, guarded

pytestmark = pytest.mark.usefixtures("llvm_turns")

WIDTH = 18
PRODUCERS = {
    "floor": (lambda x: graph.FloorOp.build(x), np.floor),
    "cast": (lambda x: graph.AstypeOp.build(x, dtype=ir.F64Type.get()), np.float64),
    "permuted": (lambda x: graph.PermuteDimsOp.build(_permuted(x), axes=[1, 0]), lambda x: x),
    "row": (
        lambda x: graph.BroadcastToOp.build(
            graph.MaxOp.build(x, axes=[0], keepdims=True).result, shape=[sym("n"), const(WIDTH)]
        ),
        lambda x: np.broadcast_to(x.max(0), x.shape),
    ),
    "joined": (
        lambda x: graph.ConcatOp.build(graph.SquareOp.build(x).result, x, axis=0),
        lambda x: np.concatenate([x * x, x]),
    ),
}
PARTS = {
    "first": (lambda x: _columns(x, 0, 3, 1), lambda x: x[:, :3]),
    "middle": (lambda x: _columns(x, 1, 17, 1), lambda x: x[:, 1:17]),
    "every other": (lambda x: _columns(x, 0, 17, 2), lambda x: x[:, 0:17:2]),
    "split": (
        lambda x: graph.SplitOp.build(x, sizes=[1, WIDTH - 1], axis=1).results[0],
        lambda x: x[:, :1],
    ),
    "sum of first": (
        lambda x: graph.SumOp.build(_columns(x, 0, 16, 1), axes=[1], keepdims=False).result,
        lambda x: x[:, :16].sum(1),
    ),
}


def _permuted(x: ir.Value) -> ir.Value:
    return graph.PermuteDimsOp.build(x, axes=[1, 0]).result


def _columns(x: ir.Value, begin: int, end: int, stride: int) -> ir.Value:
    return graph.StridedSliceOp.build(
        x, axes=[1], begin=[begin], end=[end], strides=[stride]
    ).result


@cache
def parts_module() -> str:
    """A function for each producer and each way to take a part of what it produces."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        kind = graph.TensorType((sym("n"), const(WIDTH)), ir.F32Type.get()).to_mlir()
        for name, (producer, _), part, (take, _) in _pairs():
            with ir.InsertionPoint(module.body):
                function = func.FuncOp(f"{name}_{part.replace(' ', '_')}", ([kind], []))
                block = function.add_entry_block()
            with ir.InsertionPoint(block):
                result = take(producer(block.arguments[0]).result)
                func.ReturnOp([result])
            type_ = ir.FunctionType.get([kind], [result.type])
            function.attributes["function_type"] = ir.TypeAttr.get(type_)
        return str(module)


def _pairs() -> list:
    return [(a, PRODUCERS[a], b, PARTS[b]) for a in PRODUCERS for b in PARTS]


def run(main: "relax_mlir.Function", arrays: list, want: list, at_end: bool, threads: int) -> None:
    """Calls a function on guarded arrays and compares its results, bit by bit."""
    ins = [guarded(array, at_end) for array in arrays]
    outs = [guarded(np.full(expected.shape, 77, expected.dtype), at_end) for expected in want]
    main.bind(*ins, results=outs).run(threads)
    for out, expected in zip(outs, want, strict=True):
        np.testing.assert_array_equal(out, expected)
    for array in (*ins, *outs):
        check_guards(array)


@pytest.mark.rotate(2)
@pytest.mark.parametrize("level", LEVELS)
def test_parts_of_what_is_computed(level: int) -> None:
    executable = relax_mlir.compile(parts_module(), opt_level=level)
    for n in (1, 2, 16, 33):
        x = np.random.default_rng(n).integers(-9, 9, (n, WIDTH)).astype(np.float32)
        for name, (_, produce), part, (_, take) in _pairs():
            main = executable[f"{name}_{part.replace(' ', '_')}"]
            run(main, [x], [take(produce(x))], n % 2 == 0, 1 + n // 16)


@pytest.mark.parametrize("level", LEVELS)
def test_what_computes_with_indices_is_reshaped(level: int) -> None:
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            main = func.FuncOp("main", ([], []))
            block = main.add_entry_block()
        with ir.InsertionPoint(block):
            x = graph.ArangeOp.build(bounds=[0, 60, 1], dtype=ir.F32Type.get()).result
            split = graph.ReshapeOp.build(x, shape=[const(3), const(4), const(5)]).result
            split = graph.NegativeOp.build(split).result
            joined = graph.ReshapeOp.build(split, shape=[const(12), const(5)]).result
            results = [split, graph.SquareOp.build(joined).result]
            func.ReturnOp(results)
        kinds = ir.FunctionType.get([], [result.type for result in results])
        main.attributes["function_type"] = ir.TypeAttr.get(kinds)
        text = str(module)
    split, joined = relax_mlir.compile(text, opt_level=level)["main"]()
    np.testing.assert_array_equal(split, -np.arange(60.0).reshape(3, 4, 5))
    np.testing.assert_array_equal(joined, np.arange(60.0).reshape(12, 5) ** 2)


def check(seed: int, levels: tuple[int, ...], count: int) -> None:
    """Compiles a chain at each level and runs it at `count` sizes."""
    chain, choice = Chain(seed), random.Random(seed)
    sizes = [{"n": choice.choice(EXTENTS), "m": choice.choice(EXTENTS)} for _ in range(count)]
    for level in levels:
        main = relax_mlir.compile(chain.text, opt_level=level)["main"]
        for number, size in enumerate(sizes):
            if not chain.is_large(size):
                arrays = chain.arrays(size)
                want = chain.reference(arrays, size)
                run(main, arrays, want, number % 2 == 0, 1 + number // 2 % 2)


@pytest.mark.rotate(4)
@pytest.mark.parametrize("seed", range(8))
def test_chains(seed: int) -> None:
    check(seed, (0, 2), 4)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_many_chains(seed: int) -> None:
    check(seed, LEVELS, 8)
