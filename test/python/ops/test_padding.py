"""Padding, against NumPy."""

import numpy as np
import pytest
from harness import FLOATS, INTEGERS, Program, assert_close, numbers, spec, wide

from relax_mlir.dialects import graph

DTYPES = (*FLOATS, *INTEGERS, "i1")
CONSTANTS = [
    # low, high, interior
    ((1, 0), (2, 3), (0, 0)),
    ((0, 0), (0, 0), (0, 0)),
    (("p", 2), (1, "q"), (0, 0)),
    ((1, 2), (0, 1), (2, 1)),
    ((-1, 2), (0, -1), (0, 0)),
    ((-3, -1), (5, 0), (1, 2)),
    (("0 - p", -1), ("q + 2", "p"), (2, 0)),
    ((5, -2), (-4, -1), (0, 1)),
]


def _padded(x: np.ndarray, value, low, high, interior) -> np.ndarray:
    """Each element on its own."""
    spread = [n + max(n - 1, 0) * gap for n, gap in zip(x.shape, interior)]
    shape = [a + n + b for n, a, b in zip(spread, low, high)]
    result = np.full(shape, value)
    for at in np.ndindex(*x.shape):
        place = tuple(i * (gap + 1) + a for i, gap, a in zip(at, interior, low))
        if all(0 <= i < n for i, n in zip(place, shape)):
            result[place] = x[at]
    return result


@pytest.mark.parametrize(("low", "high", "interior"), CONSTANTS)
def test_constants(low, high, interior, route: str) -> None:
    program = Program(
        graph.PadOp,
        spec("f32", "n", "m"),
        spec("f32"),
        low=low,
        high=high,
        interior=interior,
        mode="constant",
        route=route,
    )
    for n, m in ((4, 5), (3, 3), (7, 17)):
        x, value = numbers((n, m), "f32"), numbers((), "f32")
        symbols = {"p": 1, "q": 2}
        free = {name: symbols[name] for name in symbols if name in f"{low}{high}"}
        bounds = [[eval(str(i), {}, symbols) for i in part] for part in (low, high)]
        wanted = _padded(x, value, *bounds, interior)
        assert_close(program(x, value, **free), wanted, 0)


def test_constants_around_nothing(route: str) -> None:
    for interior in (0, 2):
        program = Program(
            graph.PadOp,
            spec("f64", "n"),
            spec("f64"),
            low=(-1,),
            high=(3,),
            interior=(interior,),
            mode="constant",
            route=route,
        )
        for n in (0, 1, 2):
            x, value = numbers((n,), "f64"), np.array(9.0)
            assert_close(program(x, value), _padded(x, value, (-1,), (3,), (interior,)), 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype: str, route: str) -> None:
    attributes = {"low": (1, 2), "high": (0, 3), "interior": (0, 0), "route": route}
    x, value = numbers((3, 5), dtype), numbers((), dtype)
    widths = [(1, 0), (2, 3)]
    operand = spec(dtype, "n", "m")
    program = Program(graph.PadOp, operand, spec(dtype), mode="constant", **attributes)
    wanted = np.full((4, 10), wide(value))
    wanted[1:, 2:7] = wide(x)
    assert_close(program(x, value), wanted, 0)
    program = Program(graph.PadOp, operand, mode="edge", **attributes)
    assert_close(program(x), np.pad(wide(x), widths, "edge"), 0)


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
@pytest.mark.parametrize(
    ("low", "high"),
    [
        ((1, 0), (0, 1)),
        ((0, 0), (0, 0)),
        (("p", 1), (0, "p")),
        ((-1, 1), (1, -2)),
        ((2, 2), (2, 2)),
    ],
)
def test_repeated(mode: str, low, high, route: str) -> None:
    program = Program(
        graph.PadOp,
        spec("f32", "n", "m"),
        low=low,
        high=high,
        interior=(0, 0),
        mode=mode,
        route=route,
    )
    for n, m, p in ((3, 5, 2), (7, 3, 0), (17, 4, 1)):
        x = numbers((n, m), "f32")
        first, last = ([p if i == "p" else i for i in part] for part in (low, high))
        padded = np.pad(x, [(max(a, 0), max(b, 0)) for a, b in zip(first, last)], mode)
        ends = [k - max(-b, 0) for k, b in zip(padded.shape, last)]
        wanted = padded[max(-first[0], 0) : ends[0], max(-first[1], 0) : ends[1]]
        free = {"p": p} if "p" in (*low, *high) else {}
        assert_close(program(x, **free), wanted, 0)


def test_as_many_as_there_are(route: str) -> None:
    for mode, low, high in (("wrap", "n", "n"), ("reflect", "n - 1", 0), ("edge", 9, "n")):
        program = Program(
            graph.PadOp,
            spec("i32", "n"),
            low=(low,),
            high=(high,),
            interior=(0,),
            mode=mode,
            route=route,
        )
        for n in (1, 2, 5):
            widths = [eval(str(width), {}, {"n": n}) for width in (low, high)]
            x = numbers((n,), "i32")
            assert_close(program(x), np.pad(x, widths, mode))


def test_a_tensor_without_dims(route: str) -> None:
    settings = {"low": (), "high": (), "interior": (), "mode": "constant"}
    program = Program(graph.PadOp, spec("f32"), spec("f32"), route=route, **settings)
    assert program(np.float32(3).reshape(()), np.float32(4).reshape(())) == 3
