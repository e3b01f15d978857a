"""Sums and products up to each element, in float64."""

import numpy as np
import pytest
from harness import FLOATS, INTEGERS, NUMPY, Program, assert_close, floats, integers, spec

from relax_mlir.dialects import graph

OPS = {graph.CumsumOp: (np.add, 0), graph.CumprodOp: (np.multiply, 1)}


def _scan(x: np.ndarray, op: type, axis: int, exclusive: bool, reverse: bool) -> np.ndarray:
    """Element by element; integers wrap."""
    combine, start = OPS[op]
    wide = x.astype(np.float64) if x.dtype.kind != "i" else x
    moved = np.moveaxis(wide, axis, 0)
    result, total = np.empty_like(moved), np.full(moved.shape[1:], start, moved.dtype)
    for i in range(len(moved))[:: -1 if reverse else 1]:
        after = combine(total, moved[i])
        result[i] = total if exclusive else after
        total = after
    return np.moveaxis(result, 0, axis)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("op", list(OPS), ids=lambda op: op.OPERATION_NAME)
def test_axes(op: type, axis: int, exclusive: bool, reverse: bool, route: str) -> None:
    settings = {"axis": axis, "exclusive": exclusive, "reverse": reverse}
    program = Program(op, spec("f32", "n", 3, "m"), route=route, **settings)
    for n, m in ((1, 1), (5, 7), (0, 2), (2, 0), (2, 67)):
        x = floats((n, 3, m), "f32", 0.5, 1.5)
        assert_close(program(x), _scan(x, op, **settings), 2)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("op", list(OPS), ids=lambda op: op.OPERATION_NAME)
def test_dtypes(op: type, dtype: str, route: str) -> None:
    settings = {"axis": 0, "exclusive": False, "reverse": False}
    program = Program(op, spec(dtype, "n"), route=route, **settings)
    x = floats((31,), dtype, 0.5, 1.5) if dtype in FLOATS else integers((31,), dtype)
    with np.errstate(over="ignore"):
        assert_close(program(x), _scan(x, op, **settings), 2)


def test_long_sums_are_rounded_once(route: str) -> None:
    """A sum in float32 would be off by tens of units."""
    program = Program(
        graph.CumsumOp, spec("f32", "n"), axis=0, exclusive=False, reverse=False, route=route
    )
    x = floats((400,), "f32", 0, 1) * np.float32(1.1)
    assert_close(program(x), np.cumsum(x.astype(np.float64)).astype(NUMPY["f32"]), 0)


def test_infinities_stay_where_they_are(route: str) -> None:
    program = Program(
        graph.CumsumOp, spec("f64", "n"), axis=0, exclusive=True, reverse=False, route=route
    )
    x = np.array([1, np.inf, 2, -np.inf, 3])
    np.testing.assert_array_equal(program(x), [0, 1, np.inf, np.inf, np.nan])


def test_a_static_dim_without_elements(route: str) -> None:
    for dims in ((0, 3), (3, 0)):
        program = Program(
            graph.CumsumOp, spec("f32", *dims), axis=0, exclusive=False, reverse=False, route=route
        )
        assert program(np.zeros(dims, np.float32)).shape == dims
