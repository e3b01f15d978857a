"""Activations that are decompositions, against float64 NumPy over the whole range."""

import numpy as np
import pytest
from decomposed import Decomposed, module_of
from harness import FLOATS, NUMPY, assert_close, floats, integers, spec, wide

from relax_mlir import decompositions as d
from relax_mlir.dialects.graph import ShapeError


def _softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _silu(x, beta=1.0):
    return np.where(x * beta > -700, x / (1 + np.exp(-np.maximum(x * beta, -700))), 0)


def _mish(x):
    # tanh(log(1 + e)) = e * (e + 2) / (e * (e + 2) + 2), which does not cancel
    e = np.exp(np.minimum(x, 50))
    return np.where(x > 50, x, np.maximum(x, -1e30) * (e * (e + 2) / (e * (e + 2) + 2)))


ACTIVATIONS = {
    "relu6": (d.relu6, lambda x: np.clip(x, 0, 6), 0),
    "hardtanh": (lambda x: d.hardtanh(x, -2, 0.5), lambda x: np.clip(x, -2, 0.5), 0),
    "hardsigmoid": (
        lambda x: d.hardsigmoid(x, 0.25, 0.75), lambda x: np.clip(x * 0.25 + 0.75, 0, 1), 1
    ),
    "hardswish": (d.hardswish, lambda x: np.maximum(x, -9) * np.clip(x / 6 + 0.5, 0, 1), 2),
    "leaky_relu": (lambda x: d.leaky_relu(x, 0.125), lambda x: np.where(x < 0, x / 8, x), 0),
    "thresholded_relu": (lambda x: d.thresholded_relu(x, 2), lambda x: np.where(x > 2, x, 0), 0),
    "elu": (
        lambda x: d.elu(x, 0.5), lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0)) / 2), 2
    ),
    "selu": (
        lambda x: d.selu(x, 1.5, 2),
        lambda x: np.where(x > 0, 2 * x, 3 * np.expm1(np.minimum(x, 0))), 2,
    ),
    "celu": (
        lambda x: d.celu(x, 2), lambda x: np.where(x > 0, x, 2 * np.expm1(np.minimum(x, 0) / 2)), 2
    ),
    "softplus": (d.softplus, _softplus, 3),
    "softplus_2": (lambda x: d.softplus(x, 2), lambda x: _softplus(2 * x) / 2, 3),
    "log_sigmoid": (d.log_sigmoid, lambda x: -_softplus(-x), 3),
    "mish": (d.mish, _mish, 6),
    "softsign": (d.softsign, lambda x: np.where(np.isinf(x), np.sign(x), x / (1 + np.abs(x))), 2),
    "swish": (d.swish, _silu, 4),
    "swish_0": (lambda x: d.swish(x, 0), lambda x: x / 2, 0),
    "swish_2": (lambda x: d.swish(x, 2), lambda x: _silu(x, 2), 6),
    "shrink": (
        lambda x: d.shrink(x, 1, 0.5),
        lambda x: np.where(x > 1, x - 0.5, np.where(x < -1, x + 0.5, 0)), 0,
    ),
    "clip": (lambda x: d.clip(x, -1, 2), lambda x: np.clip(x, -1, 2), 0),
}  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", list(ACTIVATIONS))
def test_activations(name: str, dtype: str) -> None:
    build, reference, ulps = ACTIVATIONS[name]
    run = Decomposed(build, spec(dtype, "n", 3))
    special = [0.0, -0.0, np.inf, -np.inf, 1e-6, -1e-6, 0.3, -0.3]
    x = np.concatenate(
        [
            floats((96,), dtype, -9, 9),
            floats((90,), dtype, -80, 120),
            np.array([*special, *special[:4]], NUMPY[dtype]),
        ]
    ).reshape(-1, 3)
    with np.errstate(all="ignore"):
        assert_close(run(x), reference(wide(x)), ulps)
    assert run(np.zeros((0, 3), NUMPY[dtype])).shape == (0, 3)


OF_THRESHOLDS = ("shrink", "thresholded_relu")
"""What is 0 between thresholds, as a NaN is: ONNX."""


@pytest.mark.parametrize("name", [name for name in ACTIVATIONS if name not in OF_THRESHOLDS])
def test_nan_stays(name: str) -> None:
    run = Decomposed(ACTIVATIONS[name][0], spec("f32", 2))
    x = np.array([np.nan, 0.5], np.float32)
    assert np.isnan(run(x)).tolist() == [True, False]


def test_quick_gelu() -> None:
    x = floats((5, 7), "f64", -9, 9)
    found = Decomposed(d.quick_gelu, spec("f64", "n", "m"))(x)
    np.testing.assert_allclose(found, x / (1 + np.exp(-1.702 * x)), rtol=1e-12)


@pytest.mark.parametrize("dtype", FLOATS)
def test_prelu(dtype: str) -> None:
    run = Decomposed(d.prelu, spec(dtype, "n", 3, "m"), spec(dtype, 3, 1))
    x, slope = floats((2, 3, 5), dtype), floats((3, 1), dtype)
    assert_close(run(x, slope), np.where(x < 0, wide(x) * wide(slope), wide(x)), 0.5)


def test_clip_of_integers_by_tensors() -> None:
    run = Decomposed(d.clip, spec("i32", "n"), spec("i32"), spec("i32"))
    x = integers((17,), "i32")
    bounds = np.array(-3, np.int32), np.array(5, np.int32)
    np.testing.assert_array_equal(run(x, *bounds), np.clip(x, *bounds))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_hardmax(axis: int) -> None:
    run = Decomposed(lambda x: d.hardmax(x, axis), spec("f32", "n", 3, "m"))
    x = np.round(floats((5, 3, 7), "f32"))
    first = np.argmax(x, axis, keepdims=True)
    wanted = np.zeros_like(x)
    np.put_along_axis(wanted, first, 1, axis)
    np.testing.assert_array_equal(run(x), wanted)


@pytest.mark.parametrize("dims", [(5, 6), ("n", "2*m")])
def test_gates(dims) -> None:
    x = floats((5, 6), "f32")
    a, b = wide(x)[:, :3], wide(x)[:, 3:]
    found = Decomposed(lambda v: d.glu(v, 1), spec("f32", *dims))(x)
    np.testing.assert_allclose(found, a / (1 + np.exp(-b)), rtol=1e-6)
    found = Decomposed(d.swiglu, spec("f32", *dims))(x)
    np.testing.assert_allclose(found, a / (1 + np.exp(-a)) * b, rtol=1e-6)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda x: d.celu(x, 0), "expects a positive alpha, but got 0"),
        (lambda x: d.softplus(x, -1), "expects a positive beta, but got -1"),
        (lambda x: d.glu(x), "halves dim 1 of 7"),
        (lambda x: d.hardmax(x, 2), "has axis 2, but rank 2"),
    ],
)
def test_what_is_refused(build, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        module_of({"main": (build, [spec("f32", 5, 7)])})
