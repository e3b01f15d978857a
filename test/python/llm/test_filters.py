"""Min-p, typical, XTC, DRY and biases against plain definitions, and Transformers if installed."""

import math
import random

import numpy as np
import pytest

from relax_mlir.errors import ExecutionError, UsageError
from relax_mlir.llm.generation.filters import min_p_indices, typical_indices, xtc_indices
from relax_mlir.llm.generation.penalties import (
    add_bias,
    penalize_repeated_sequences,
    repeated_lengths,
)
from relax_mlir.llm.generation.sampling import Sampler

SIZES = (1, 2, 3, 31, 33, 97)


def random_logits(size: int, seed: int) -> np.ndarray:
    return 3 * np.random.default_rng([size, seed]).standard_normal(size)


def probabilities_of(logits: np.ndarray) -> list[float]:
    exponentials = [math.exp(x - max(logits)) for x in logits]
    return [x / math.fsum(exponentials) for x in exponentials]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("p", [0, 1e-9, 0.05, 0.4, 1])
def test_min_p(size, p):
    logits = random_logits(size, 0)
    probabilities = probabilities_of(logits)
    expected = [i for i, each in enumerate(probabilities) if each >= p * max(probabilities)]
    assert min_p_indices(logits, p).tolist() == expected


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("p", [0.01, 0.2, 0.9, 1])
def test_typical(size, p):
    logits = random_logits(size, 1)
    probabilities = probabilities_of(logits)
    entropy = -math.fsum(x * math.log(x) for x in probabilities)
    order = sorted(range(size), key=lambda i: abs(-math.log(probabilities[i]) - entropy))
    count = next(
        (n for n in range(1, size) if math.fsum(probabilities[i] for i in order[:n]) >= p), size
    )
    assert sorted(typical_indices(logits, p)) == sorted(order[:count])


def test_typical_ignores_impossible_tokens():
    logits = np.array([0.0, -np.inf, 0.0])
    assert typical_indices(logits, 0.9).tolist() == [0, 2]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("threshold", [0.01, 0.1, 0.6])
def test_xtc(size, threshold):
    logits = random_logits(size, 2)
    probabilities = probabilities_of(logits)
    top = [i for i in range(size) if probabilities[i] >= threshold]
    last = min(top, key=lambda i: probabilities[i], default=None)
    expected = [i for i in range(size) if i not in top or i == last]
    assert xtc_indices(logits, threshold).tolist() == expected


def test_xtc_applies_as_often_as_asked():
    """Applied, it draws the second token only; else the first or the second."""
    logits = np.log([0.5, 0.5])
    draws = [Sampler(1.0, xtc_probability=p, seed=5) for p in (0.5, 1.0)]
    counts = [np.bincount([s.sample(logits) for _ in range(2000)], minlength=2) for s in draws]
    assert abs(counts[0][1] - 1500) < 5 * math.sqrt(2000 * 0.75 * 0.25)
    assert counts[1].tolist() == [0, 2000]


@pytest.mark.parametrize("seed", range(30))
def test_repeated_sequences(seed):
    """The definition: every earlier end of the longest common sequence, token by token."""
    rng = random.Random(seed)
    history = rng.choices(range(4), k=rng.randint(0, 40))
    breakers = set(rng.sample(range(4), rng.randint(0, 1)))
    expected: dict[int, int] = {}
    for i in range(len(history) - 1):
        length = 0
        while length <= i and history[i - length] == history[-1 - length]:
            if history[i - length] in breakers:
                break
            length += 1
        if length:
            token = history[i + 1]
            expected[token] = max(expected.get(token, 0), length)
    assert repeated_lengths(history, breakers) == expected
    logits = random_logits(5, seed)
    found = penalize_repeated_sequences(logits, history, 0.8, 1.5, 3, breakers)
    for token in range(5):
        n = expected.get(token, 0)
        penalty = 0.8 * 1.5 ** (n - 3) if n >= 3 else 0
        assert found[token] == pytest.approx(logits[token] - penalty)


def test_long_repetitions_cost_linear_time_and_stay_finite():
    found = penalize_repeated_sequences(np.zeros(2, np.float32), [1] * 50_000, 1.0, 4.0)
    assert np.isfinite(found).all()
    assert found[1] == np.float32(-1e30)


def test_bias():
    logits = np.array([1.0, 2.0, 3.0], np.float32)
    assert add_bias(logits, {}) is logits
    assert add_bias(logits, {2: -np.inf, 0: 1.5}).tolist() == [2.5, 2.0, -np.inf]
    assert logits.tolist() == [1.0, 2.0, 3.0]
    assert Sampler(logit_bias={2: -np.inf}).sample(logits) == 1
    sampler = Sampler(2.0, seed=0, logit_bias={2: -np.inf, 1: -np.inf})
    assert {sampler.sample(logits) for _ in range(20)} == {0}
    with pytest.raises(ExecutionError, match="expects a finite number"):
        Sampler(logit_bias=dict.fromkeys(range(3), -np.inf)).sample(logits)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_p": 1.5}, "min_p is 1.5; expects a number >= 0 and <= 1"),
        ({"typical_p": 0.0}, "typical_p is 0.0; expects a number > 0 and <= 1"),
        ({"xtc_probability": -0.1}, "xtc_probability is -0.1"),
        ({"xtc_threshold": 0.0}, "xtc_threshold is 0.0"),
        ({"dry_multiplier": math.inf}, "dry_multiplier is inf; expects a finite value >= 0"),
        ({"dry_base": 0.5}, "dry_base is 0.5; expects a finite value >= 1"),
        ({"dry_allowed_length": 0}, "dry_allowed_length is 0; expects an integer >= 1"),
        ({"logit_bias": {3: math.nan}}, "logit_bias of token 3 is nan; expects a token >= 0"),
        ({"logit_bias": {-1: 1.0}}, "logit_bias of token -1 is 1.0"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(UsageError, match=message):
        Sampler(**options)


@pytest.mark.parametrize(
    ("indices", "warper", "p"),
    [
        (min_p_indices, "MinPLogitsWarper", 0.07),
        (typical_indices, "TypicalLogitsWarper", 0.6),
    ],
)
def test_as_transformers(indices, warper, p):
    torch = pytest.importorskip("torch")
    process = pytest.importorskip("transformers.generation.logits_process")
    for size in SIZES:
        logits = random_logits(size, 3)
        expected = getattr(process, warper)(p)(None, torch.from_numpy(logits[None].copy()))
        assert sorted(indices(logits, p)) == torch.isfinite(expected[0]).nonzero()[:, 0].tolist()
