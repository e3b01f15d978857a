"""The gradients of a transformer against differences of its loss, and its training, compiled."""

from pathlib import Path

import numpy as np
import pytest

import relax_mlir
from relax_mlir.training import Trainer, with_gradient

FOLDER = Path(__file__).resolve().parents[3] / "benchmarks"
STEP = 1e-6


@pytest.fixture
def model(monkeypatch):
    """That of the benchmark, smaller."""
    monkeypatch.syspath_prepend(str(FOLDER))
    from training_case import Transformer

    return Transformer(vocabulary=31, width=16, heads=2, context=16)


def test_gradients(model) -> None:
    functions = relax_mlir.interpret(with_gradient(model.module("f64")))
    parameters = model.parameters(np.float64)
    random = np.random.default_rng(2)
    for rows, length in ((1, 1), (2, 7)):
        batch = model.batch(rows, length)
        _, gradients = functions["main_adjoint"](*batch, *parameters.values())
        for name, gradient in zip(parameters, gradients, strict=True):
            direction = random.standard_normal(gradient.shape)
            ends = [
                functions["main"](*batch, *(parameters | {name: shifted}).values())
                for shifted in (parameters[name] + sign * STEP * direction for sign in (1, -1))
            ]
            expected = (ends[0] - ends[1]) / (2 * STEP)
            np.testing.assert_allclose(
                np.vdot(gradient, direction), expected, 1e-5, 1e-7, err_msg=name
            )


@pytest.mark.sweep
def test_training(model) -> None:
    parameters = model.parameters()
    trainer = Trainer(model.module(), parameters, "adamw", weight_decay=0.01, clip_norm=1)
    batches = [model.batch(2, 7), model.batch(3, 16)]
    losses = [float(trainer.step(*batches[i % 2], rate=0.01)) for i in range(60)]
    assert losses[0] > 3
    assert max(losses[-2:]) < 0.3
