"""Fused kernels against NumPy in float64, and against the same module without fusion."""

from pathlib import Path

import numpy as np
import pytest

from relax_mlir.compiler import compile
from relax_mlir.executable import Executable

pytestmark = pytest.mark.usefixtures("llvm_turns")

PROGRAMS = Path(__file__).with_name("fused_programs.mlir")


@pytest.fixture(scope="module", params=[0, 2])
def module(request: pytest.FixtureRequest) -> Executable:
    return compile(PROGRAMS, opt_level=request.param)


@pytest.fixture
def draw(request: pytest.FixtureRequest):
    generator = np.random.default_rng(len(request.node.name))
    return lambda *shape: generator.standard_normal(shape).astype(np.float32)


def close(got: np.ndarray, want: np.ndarray) -> None:
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


@pytest.mark.rotate(3)
@pytest.mark.parametrize("n", [0, 1, 2, 7, 33])
def test_gated(module: Executable, draw, n: int) -> None:
    x, up, down = draw(n, 24), draw(66, 24), draw(24, 33)
    hidden = x.astype(np.float64) @ up.T.astype(np.float64)
    gate, value = hidden[:, :33], hidden[:, 33:]
    close(module["gated"](x, up, down), x + (gate / (1 + np.exp(-gate)) * value) @ down.T)


@pytest.mark.parametrize(("n", "m"), [(1, 0), (1, 5), (5, 0), (3, 7), (11, 0), (0, 4)])
def test_append(module: Executable, draw, n: int, m: int) -> None:
    q, cos, sin = draw(n, 48), draw(n, 4), draw(n, 4)
    caches = [draw(3, 11, 8), draw(3, 11, 8)]
    expected = [cache.copy() for cache in caches]
    key = q[:, :24].reshape(n, 3, 8)
    low, high = key[..., :4], key[..., 4:]
    c, s = cos[:, None], sin[:, None]
    key = np.concatenate([low * c - high * s, high * c + low * s], axis=-1)
    value = q[:, 24:].reshape(n, 3, 8)
    for cache, rows in zip(expected, (key, value)):
        cache[:, m : m + n] = rows.transpose(1, 0, 2)
    results = module["append"](q, cos, sin, *caches, np.array([m], np.int64))
    for result, cache, want in zip(results, caches, expected, strict=True):
        close(result, want)
        close(cache, want)


@pytest.mark.parametrize("n", [0, 1, 3, 17])
def test_normalised(module: Executable, draw, n: int) -> None:
    x, bias, scale = draw(n, 24), draw(24), draw(n, 1)
    softmax, squares = module["normalised"](x, bias, scale)
    logits = np.tanh(x.astype(np.float64) + bias) * scale
    powers = np.exp(logits - logits.max(axis=1, keepdims=True, initial=-np.inf))
    close(softmax, powers / powers.sum(axis=1, keepdims=True))
    close(squares, (x.astype(np.float64) ** 2).sum(axis=1))


@pytest.mark.parametrize(("k", "m"), [(0, 0), (1, 3), (6, 0), (12, 100)])
def test_positions(module: Executable, draw, k: int, m: int) -> None:
    y = draw(5) / 10
    got = module["positions"](np.array([k, m], np.int64), y)
    angles = np.arange(m, m + k + 1)[:, None] * y.astype(np.float64)
    np.testing.assert_allclose(got, np.cos(angles).ravel(), atol=1e-5)


@pytest.mark.parametrize("n", [0, 1, 5, 31])
def test_moved(module: Executable, draw, n: int) -> None:
    x = draw(n, 24)
    powers, negated = module["moved"](x)
    close(powers, np.exp(0.5 * x.T.astype(np.float64)))
    close(negated, -np.exp(0.5 * x.astype(np.float64)))


@pytest.mark.parametrize("n", [0, 1, 3, 9])
def test_half(module: Executable, draw, n: int) -> None:
    x, w, b, y = (a.astype(np.float16) for a in (draw(n, 40), draw(19, 40), draw(19), draw(n, 19)))
    wide = [a.astype(np.float64) for a in (x, w, b, y)]
    got = module["half"](x, w, b, y)
    assert got.dtype == np.float16
    # Four roundings to 11 bits of values of up to 32.
    want = np.maximum(wide[0] @ wide[1].T + wide[2], 0) + wide[3]
    np.testing.assert_allclose(got, want, rtol=2e-3, atol=4 * 32 * 2.0**-11)
