"""Matrix multiplication against float64 NumPy."""

import numpy as np
import pytest
from harness import FLOATS, INTEGERS, Program, assert_close, numbers, spec, wide

from relax_mlir.dialects import graph

SIZES = ((1, 1, 1), (1, 7, 3), (2, 64, 33), (5, 0, 4), (0, 3, 4), (3, 5, 0), (17, 31, 65))


def assert_near(actual: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    """The error of a dot product is bounded by the product of magnitudes."""
    exact, scale = wide(x) @ wide(y), np.abs(wide(x)) @ np.abs(wide(y))
    assert actual.shape == exact.shape
    half = actual.dtype.itemsize == 2
    unit = np.finfo(np.float64 if actual.dtype.itemsize == 8 else np.float32).eps
    bound = unit * (4 + x.shape[-1]) * scale
    if half:
        bound += np.abs(exact) * (2.0**-10 if actual.dtype == np.float16 else 2.0**-8)
    assert (np.abs(wide(actual) - exact) <= bound).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_matmul(dtype: str, route: str) -> None:
    program = Program(graph.MatmulOp, spec(dtype, "m", "k"), spec(dtype, "k", "n"), route=route)
    for m, k, n in SIZES:
        x, y = numbers((m, k), dtype), numbers((k, n), dtype)
        assert_near(program(x, y), x, y)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_matmul_of_integers(dtype: str, route: str) -> None:
    program = Program(graph.MatmulOp, spec(dtype, "m", "k"), spec(dtype, "k", "n"), route=route)
    for m, k, n in SIZES:
        x, y = numbers((m, k), dtype), numbers((k, n), dtype)
        assert_close(program(x, y), x @ y)


@pytest.mark.parametrize(("k", "n"), [(64, 64), (48, 17), (1, 3), (33, 1)])
def test_matmul_by_static_weights(k: int, n: int, route: str) -> None:
    program = Program(graph.MatmulOp, spec("f32", "m", k), spec("f32", k, n), route=route)
    for m in (0, 1, 2, 7, 16, 33):
        x, y = numbers((m, k), "f32"), numbers((k, n), "f32")
        assert_near(program(x, y), x, y)


@pytest.mark.parametrize(
    ("lhs", "rhs", "symbols"),
    [
        (("b", "m", "k"), ("b", "k", "n"), {"b": 3, "m": 5, "k": 7, "n": 9}),
        (("b", "m", "k"), ("k", "n"), {"b": 3, "m": 5, "k": 7, "n": 9}),
        (("b", "m", "k"), (1, "k", "n"), {"b": 3, "m": 5, "k": 7, "n": 9}),
        ((1, "m", "k"), ("b", "k", "n"), {"b": 3, "m": 1, "k": 16, "n": 2}),
        (("m", "k"), ("b", "h", "k", "n"), {"b": 2, "h": 3, "m": 4, "k": 5, "n": 6}),
        (("b", 1, "m", "k"), (4, "k", "n"), {"b": 2, "m": 3, "k": 5, "n": 7}),
        (("b", "m", "k"), ("b", "k", "n"), {"b": 0, "m": 5, "k": 7, "n": 9}),
        ((2, 3, 4), (2, 4, 5), {}),
        (("m", "2*k"), ("2*k", "n"), {"m": 2, "k": 3, "n": 4}),
    ],
)
def test_batched_matmul(lhs, rhs, symbols, route: str) -> None:
    program = Program(graph.MatmulOp, spec("f32", *lhs), spec("f32", *rhs), route=route)
    x, y = (
        numbers([eval(str(dim), {}, dict(symbols)) for dim in dims], "f32") for dims in (lhs, rhs)
    )
    assert_near(program(x, y, **symbols), x, y)


def test_infinities_and_nans_reach_their_rows_and_columns(route: str) -> None:
    program = Program(graph.MatmulOp, spec("f32", "m", "k"), spec("f32", "k", "n"), route=route)
    x, y = np.ones((5, 9), np.float32), np.ones((9, 17), np.float32)
    x[1, 3], y[4, 2] = np.nan, np.inf
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(program(x, y), x @ y)
