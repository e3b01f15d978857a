"""Positions in sorted lines, against NumPy's."""

import numpy as np
import pytest
from decomposed import Decomposed, module_of
from harness import FLOATS, INTEGERS, NUMPY, Program, integers, numbers, spec, wide

from relax_mlir.decompositions import bucketize
from relax_mlir.dialects import graph


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_one_line(dtype: str, right: bool, route: str) -> None:
    program = Program(
        graph.SearchsortedOp, spec(dtype, "n"), spec(dtype, "k", 2), right=right, route=route
    )
    for n in (0, 1, 2, 7, 8, 17):
        line = np.sort(np.round(numbers((n,), dtype)) if dtype in FLOATS else integers((n,), dtype))
        values = np.round(numbers((3, 2), dtype)) if dtype in FLOATS else integers((3, 2), dtype)
        line, values = line.astype(NUMPY[dtype]), values.astype(NUMPY[dtype])
        wanted = np.searchsorted(wide(line), wide(values), "right" if right else "left")
        np.testing.assert_array_equal(program(line, values), wanted)


@pytest.mark.parametrize("right", [False, True])
def test_a_line_for_each_row(right: bool, route: str) -> None:
    program = Program(
        graph.SearchsortedOp,
        spec("f32", "n", 2, "m"),
        spec("f32", "n", 2, "k"),
        right=right,
        route=route,
    )
    for n, m, k in ((1, 1, 1), (2, 5, 67), (0, 2, 2), (2, 0, 3), (2, 3, 0)):
        lines = np.sort(np.round(numbers((n, 2, m), "f32")), -1)
        values = np.round(numbers((n, 2, k), "f32"))
        found = program(lines, values)
        for at in np.ndindex(n, 2):
            wanted = np.searchsorted(lines[at], values[at], "right" if right else "left")
            np.testing.assert_array_equal(found[at], wanted)


def test_nan_comes_last(route: str) -> None:
    line = np.array([-np.inf, -0.0, 0.0, 2, np.inf, np.nan, np.nan], np.float32)
    values = np.array([np.nan, np.inf, 0.0, -0.0, -np.inf, 1], np.float32)
    for right, wanted in ((False, [5, 4, 1, 1, 0, 3]), (True, [7, 5, 3, 3, 1, 3])):
        program = Program(
            graph.SearchsortedOp, spec("f32", 7), spec("f32", 6), right=right, route=route
        )
        assert program(line, values).tolist() == wanted


def test_one_value_in_a_long_line(route: str) -> None:
    program = Program(graph.SearchsortedOp, spec("i32", "n"), spec("i32"), right=False, route=route)
    for n in (255, 256, 257):
        line = np.arange(0, 2 * n, 2, dtype=np.int32)
        for value in (-1, 0, 2 * n - 3, 2 * n):
            assert program(line, np.array(value, np.int32)) == np.searchsorted(line, value)


def test_buckets() -> None:
    for right in (False, True):
        run = Decomposed(
            lambda x, e, r=right: bucketize(x, e, r), spec("f32", "n", 2), spec("f32", 3)
        )
        x = np.array([[0, 1], [2, 5], [9, 10], [np.inf, -np.inf]], np.float32)
        edges = np.array([1, 5, 9], np.float32)
        np.testing.assert_array_equal(run(x, edges), np.digitize(x, edges, right=not right))


def test_buckets_refuse_boundaries_of_rank_2() -> None:
    with pytest.raises(graph.ShapeError, match="expects boundaries of rank 1, but got rank 2"):
        module_of({"main": (lambda x: bucketize(x, x), [spec("f32", 2, 3)])})
