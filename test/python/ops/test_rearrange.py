"""Operators that repeat elements or put them in another order, against NumPy."""

import numpy as np
import pytest
from harness import FLOATS, INTEGERS, Program, assert_close, numbers, spec, wide

from relax_mlir.dialects import graph

DTYPES = (*FLOATS, *INTEGERS, "i1")
SIZES = ((1, 1), (5, 7), (0, 2), (2, 0), (3, 17))


@pytest.mark.parametrize("axes", [(), (0,), (-1,), (0, 2), (2, 1, 0)])
def test_flip(axes, route: str) -> None:
    program = Program(graph.FlipOp, spec("f32", "n", 3, "m"), axes=axes, route=route)
    for n, m in SIZES:
        x = numbers((n, 3, m), "f32")
        assert_close(program(x), np.flip(x, axes), 0)


@pytest.mark.parametrize(
    ("shifts", "axes"),
    [((), ()), ((1,), (0,)), ((-4,), (-1,)), ((0, 100), (1, 2)), ((-7, 3), (2, 0))],
)
def test_roll(shifts, axes, route: str) -> None:
    settings = {"shifts": shifts, "axes": axes}
    program = Program(graph.RollOp, spec("f32", "n", 3, "m"), route=route, **settings)
    for n, m in SIZES:
        x = numbers((n, 3, m), "f32")
        assert_close(program(x), np.roll(x, shifts, axes) if axes else x, 0)


@pytest.mark.parametrize(
    "repeats", [(1, 1), (2, 3), ("k", 1), (2, "k", 1), (1, 0), (2, 1, 1, "m"), ("n + 1", "k")]
)
def test_tile(repeats, route: str) -> None:
    program = Program(graph.TileOp, spec("f32", "n", "m"), repeats=repeats, route=route)
    for n, m in SIZES:
        x = numbers((n, m), "f32")
        for k in (0, 1, 3) if "k" in repeats else (1,):
            free = {"k": k} if "k" in repeats else {}
            counts = [eval(str(count), {}, {"n": n, "m": m, "k": k}) for count in repeats]
            assert_close(program(x, **free), np.tile(x, counts), 0)


@pytest.mark.parametrize("repeats", [1, 3, "k", 0])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_repeat(repeats: int | str, axis: int, route: str) -> None:
    program = Program(
        graph.RepeatOp, spec("f32", "n", 3, "m"), repeats=(repeats,), axis=axis, route=route
    )
    for n, m in SIZES:
        x, free = numbers((n, 3, m), "f32"), {"k": 2} if repeats == "k" else {}
        assert_close(program(x, **free), np.repeat(x, free.get("k", repeats), axis), 0)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("count", [1, 3])
def test_stack(count: int, axis: int, route: str) -> None:
    program = Program(graph.StackOp, *[spec("f32", "n", "m")] * count, axis=axis, route=route)
    for n, m in SIZES:
        parts = [numbers((n, m), "f32") + i for i in range(count)]
        assert_close(program(*parts), np.stack(parts, axis), 0)


def test_stack_of_numbers(route: str) -> None:
    program = Program(graph.StackOp, spec("i64"), spec("i64"), axis=0, route=route)
    assert_close(program(np.array(3), np.array(5)), np.array([3, 5]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype: str, route: str) -> None:
    x, operand = numbers((5, 7), dtype), spec(dtype, "n", "m")
    for op, settings, want in (
        (graph.FlipOp, {"axes": (1,)}, x[:, ::-1]),
        (graph.RollOp, {"shifts": (2,), "axes": (1,)}, np.roll(x, 2, 1)),
        (graph.TileOp, {"repeats": (2, 3)}, np.tile(x, (2, 3))),
        (graph.RepeatOp, {"repeats": (3,), "axis": 1}, np.repeat(x, 3, 1)),
    ):
        assert_close(Program(op, operand, route=route, **settings)(x), wide(want), 0)
    program = Program(graph.StackOp, operand, operand, axis=1, route=route)
    assert_close(program(x, x), wide(np.stack([x, x], 1)), 0)
