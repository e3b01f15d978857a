"""The gradients of random programs against differences, in f64."""

import numpy as np
import pytest
from gradient_checks import Weighted, loss_of
from harness import spec
from random_gradients import RandomProgram

import relax_mlir

SIZES = ((0, 3), (1, 1), (5, 4))


def _loss(seed: int) -> Weighted:
    specs = [spec("f64", "n", "m"), spec("f64", "n", "m"), spec("f64", "m", "n")]
    return loss_of(RandomProgram(seed).build, specs)


def _arrays(seed: int, n: int, m: int) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [random.standard_normal(shape) for shape in ((n, m), (n, m), (m, n))]


def _check(seed: int) -> None:
    loss = _loss(seed)
    for n, m in SIZES:
        loss.check(*_arrays(seed, n, m), tolerance=1e-5)


@pytest.mark.parametrize("seed", range(24))
def test_random_program(seed: int) -> None:
    _check(seed)


@pytest.mark.rotate(8)
@pytest.mark.parametrize("opt_level", [0, 2])
@pytest.mark.parametrize("seed", [3, 11])
def test_compiled(seed: int, opt_level: int) -> None:
    loss = _loss(seed)
    compiled = relax_mlir.compile(loss.gradients.adjoint_text, opt_level=opt_level)
    for n, m in SIZES:
        arguments = loss.arguments(_arrays(seed, n, m), {"n": n, "m": m})
        got, want = compiled["main_adjoint"](*arguments), loss.gradients.adjoint(*arguments)
        for one, other in zip((got[0], *got[1]), (want[0], *want[1]), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9)


@pytest.mark.sweep
@pytest.mark.parametrize("first", range(0, 4000, 100))
def test_many_random_programs(first: int) -> None:
    for seed in range(first, first + 100):
        _check(seed)
