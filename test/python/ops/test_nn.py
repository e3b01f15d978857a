"""Operators of neural networks against float64 NumPy."""

import numpy as np
import pytest
from harness import FLOATS, NUMPY, Program, floats, spec, wide

from relax_mlir.dialects import graph

TOLERANCE = {"f64": 1e-13, "f32": 2e-6, "f16": 1.5e-3, "bf16": 1e-2}
SIZES = ((1, 1), (2, 7), (3, 64), (5, 33), (0, 4), (17, 129))


def _assert_near(actual: np.ndarray, expected: np.ndarray, dtype: str) -> None:
    assert actual.dtype == NUMPY[dtype]
    assert actual.shape == expected.shape
    tolerance = TOLERANCE[dtype]
    np.testing.assert_allclose(wide(actual), expected, rtol=tolerance, atol=tolerance)


def _softmax(x: np.ndarray, axis: int) -> np.ndarray:
    powers = np.exp(x - x.max(axis, keepdims=True, initial=-np.inf))
    return powers / powers.sum(axis, keepdims=True)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axis", [-1, 0])
def test_softmax(axis: int, dtype: str, route: str) -> None:
    program = Program(graph.SoftmaxOp, spec(dtype, "n", "m"), axis=axis, route=route)
    for n, m in SIZES:
        x = floats((n, m), dtype, -9, 9)
        _assert_near(program(x), _softmax(wide(x), axis), dtype)


def test_softmax_of_inner_axis(route: str) -> None:
    program = Program(graph.SoftmaxOp, spec("f32", 2, "n", "m"), axis=1, route=route)
    for n, m in SIZES:
        x = floats((2, n, m), "f32")
        _assert_near(program(x), _softmax(wide(x), 1), "f32")


def test_softmax_does_not_overflow_and_takes_masks(route: str) -> None:
    program = Program(graph.SoftmaxOp, spec("f32", "n", "m"), axis=1, route=route)
    x = np.array([[1e4, 1e4, -1e4], [3e38, 0, 1], [-np.inf, 2, 2]], np.float32)
    _assert_near(program(x), _softmax(wide(x), 1), "f32")


def _rms_norm(x: np.ndarray, weight: np.ndarray, epsilon: float) -> np.ndarray:
    return x / np.sqrt(np.mean(x * x, -1, keepdims=True) + epsilon) * weight


def _layer_norm(x, weight, bias, epsilon: float) -> np.ndarray:
    centred = x - x.mean(-1, keepdims=True)
    variance = np.mean(centred**2, -1, keepdims=True)
    return centred / np.sqrt(variance + epsilon) * weight + bias


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("columns", ["m", 48])
def test_rms_norm(columns, dtype: str, route: str) -> None:
    specs = spec(dtype, "n", columns), spec(dtype, columns)
    program = Program(graph.RmsNormOp, *specs, epsilon=1e-5, route=route)
    for n, m in SIZES:
        m = m if columns == "m" else columns
        x, weight = floats((n, m), dtype), floats((m,), dtype, 0.5, 2)
        _assert_near(program(x, weight), _rms_norm(wide(x), wide(weight), 1e-5), dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_layer_norm(dtype: str, route: str) -> None:
    specs = spec(dtype, "n", "m"), spec(dtype, "m"), spec(dtype, "m")
    program = Program(graph.LayerNormOp, *specs, epsilon=1e-3, route=route)
    for n, m in SIZES:
        x, weight = floats((n, m), dtype), floats((m,), dtype, 0.5, 2)
        bias = floats((m,), dtype)[::-1].copy()
        expected = _layer_norm(wide(x), wide(weight), wide(bias), 1e-3)
        _assert_near(program(x, weight, bias), expected, dtype)


@pytest.mark.parametrize("dims", [("b", "n", 8), (8,), (1, 1, 8)])
def test_norms_of_other_ranks(dims, route: str) -> None:
    x = floats([{"b": 2, "n": 5}.get(dim, dim) for dim in dims], "f32")
    weight, bias = floats((8,), "f32", 0.5, 2), floats((8,), "f32")
    rms = Program(graph.RmsNormOp, spec("f32", *dims), spec("f32", 8), epsilon=1e-6, route=route)
    _assert_near(rms(x, weight), _rms_norm(wide(x), wide(weight), 1e-6), "f32")
    specs = spec("f32", *dims), spec("f32", 8), spec("f32", 8)
    layer = Program(graph.LayerNormOp, *specs, epsilon=1e-6, route=route)
    expected = _layer_norm(wide(x), wide(weight), wide(bias), 1e-6)
    _assert_near(layer(x, weight, bias), expected, "f32")


def test_norms_are_stable_far_from_zero(route: str) -> None:
    specs = spec("f32", "n", "m"), spec("f32", "m"), spec("f32", "m")
    program = Program(graph.LayerNormOp, *specs, epsilon=1e-5, route=route)
    x = (floats((3, 64), "f32") + 4096).astype(np.float32)
    weight, bias = np.ones(64, np.float32), np.zeros(64, np.float32)
    expected = _layer_norm(wide(x), wide(weight), wide(bias), 1e-5)
    np.testing.assert_allclose(program(x, weight, bias), expected, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axis", [-1, 0])
def test_log_softmax(axis: int, dtype: str, route: str) -> None:
    program = Program(graph.LogSoftmaxOp, spec(dtype, "n", "m"), axis=axis, route=route)
    for n, m in SIZES:
        x = floats((n, m), dtype, -9, 9)
        moved = wide(x) - wide(x).max(axis, keepdims=True, initial=-np.inf)
        with np.errstate(divide="ignore"):
            expected = moved - np.log(np.exp(moved).sum(axis, keepdims=True))
        _assert_near(program(x), expected, dtype)


def test_log_softmax_does_not_underflow(route: str) -> None:
    program = Program(graph.LogSoftmaxOp, spec("f32", "n", "m"), axis=1, route=route)
    x = np.array([[1e4, 0, -1e4], [-np.inf, 2, 2]], np.float32)
    expected = np.array([[0, -1e4, -2e4], [-np.inf, -np.log(2), -np.log(2)]])
    _assert_near(program(x), expected, "f32")
