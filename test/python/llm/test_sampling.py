"""Filters against their definitions, and draws against their probabilities."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relax_mlir.errors import ExecutionError, UsageError
from relax_mlir.llm.generation.filters import softmax, top_k_indices, top_p_indices
from relax_mlir.llm.generation.penalties import penalize_answer, penalize_repetition
from relax_mlir.llm.generation.sampling import Sampler, draw

# Few distinct values, so that ties are common.
LOGITS = st.lists(st.integers(-6, 6), min_size=1, max_size=40).map(
    lambda values: np.array(values, np.float64) / 2
)


def ranked(logits: np.ndarray) -> list[int]:
    """Ids, largest logit first, lower id first among equals."""
    return sorted(range(len(logits)), key=lambda i: (-logits[i], i))


def test_greedy_takes_the_largest_and_the_first_of_equals():
    assert Sampler().sample(np.array([1, 5, 3, 5], np.float32)) == 1
    assert Sampler().sample(np.array([7], np.float32)) == 0


@given(LOGITS, st.integers(0, 45))
def test_top_k(logits, k):
    assert top_k_indices(logits, k).tolist() == sorted(ranked(logits)[: k or len(logits)])


@pytest.mark.parametrize("size", [127, 128, 129, 4095, 4097, 20011])
@pytest.mark.parametrize("values", [2, 7, 10**6])
def test_top_k_of_many_logits(size, values):
    """Ties among them, and tokens that a grammar forbids."""
    random = np.random.default_rng()
    logits = random.integers(0, values, size).astype(np.float32)
    logits[random.random(size) < 0.5] = -np.inf
    for k in (1, 2, 3, 40, size - 1):
        assert top_k_indices(logits, k).tolist() == sorted(ranked(logits)[:k])


@given(LOGITS, st.floats(0.01, 1.0))
def test_top_p(logits, p):
    """The kept tokens are the shortest run of the ranking that reaches p."""
    order = ranked(logits)
    exponentials = [math.exp(x - max(logits)) for x in logits]
    total = math.fsum(exponentials)
    tokens = top_p_indices(logits, p).tolist()
    assert tokens == (order[: len(tokens)] if p < 1 else sorted(order))
    reached = math.fsum(exponentials[i] for i in tokens) / total
    without_last = reached - exponentials[order[len(tokens) - 1]] / total
    assert reached >= p - 1e-9
    assert p == 1 or without_last < p + 1e-9


def test_top_p_of_one_likely_token():
    assert top_p_indices(np.array([0.0, 10.0, 0.0]), 0.9).tolist() == [1]
    assert top_p_indices(np.array([0.0, 0.0, 0.0, 0.0]), 0.5).tolist() == [0, 1]
    assert top_p_indices(np.array([0.0, -np.inf, 1.0]), 1.0).tolist() == [0, 1, 2]


def test_top_p_after_top_k_sees_renormalised_probabilities():
    """0.4 of 0.4 + 0.3 reaches 0.55, 0.4 of 1 does not."""
    logits = np.log(np.array([0.4, 0.3, 0.2, 0.1]))

    def drawn(top_k):
        sampler = Sampler(temperature=1.0, top_k=top_k, top_p=0.55, seed=0)
        return {sampler.sample(logits) for _ in range(60)}

    assert drawn(2) == {0}
    assert drawn(0) == {0, 1}


def test_top_p_sees_the_temperature():
    """Probabilities 0.8 and 0.2 become 2/3 and 1/3 at temperature 2."""
    logits = np.log(np.array([0.8, 0.2]))
    for temperature, expected in ((1.0, {0}), (2.0, {0, 1})):
        sampler = Sampler(temperature=temperature, top_p=0.7, seed=0)
        assert {sampler.sample(logits) for _ in range(60)} == expected


def test_repetition_penalty():
    logits = np.array([2.0, -2.0, 0.0, 3.0])
    np.testing.assert_array_equal(
        penalize_repetition(logits, [0, 1, 1, 2], 2.0), [1.0, -4.0, 0.0, 3.0]
    )
    np.testing.assert_array_equal(logits, [2.0, -2.0, 0.0, 3.0])
    assert penalize_repetition(logits, [], 2.0) is logits
    assert Sampler(repetition_penalty=2.0).sample(np.array([3.0, 2.0]), [0, 0]) == 1


@given(
    LOGITS,
    st.lists(st.integers(0, 39), max_size=12),
    st.sampled_from([-2.0, 0.0, 0.5]),
    st.sampled_from([-1.0, 0.0, 0.25]),
    st.integers(0, 12),
)
def test_penalties_of_the_answer(logits, history, presence, frequency, start):
    history = [token % len(logits) for token in history]
    answer = history[start:]
    expected = [
        logit - (presence if token in answer else 0) - frequency * answer.count(token)
        for token, logit in enumerate(logits)
    ]
    np.testing.assert_allclose(penalize_answer(logits, answer, presence, frequency), expected)
    sampler = Sampler(presence_penalty=presence, frequency_penalty=frequency)
    assert sampler.sample(logits, history, start) == int(np.argmax(expected))


@given(LOGITS)
def test_softmax(logits):
    probabilities = softmax(logits)
    assert probabilities.sum() == pytest.approx(1)
    for i, j in zip(range(len(logits)), range(1, len(logits)), strict=False):
        ratio = probabilities[i] / probabilities[j]
        assert ratio == pytest.approx(math.exp(logits[i] - logits[j]))


def test_draw_inverts_the_cumulative_sum():
    probabilities = np.array([0.0, 0.25, 0.0, 0.5, 0.25, 0.0])
    uniforms = [0.0, 0.24, 0.25, 0.5, 0.74, 0.75, 1 - 2**-53]
    assert [draw(probabilities, u) for u in uniforms] == [1, 1, 3, 3, 3, 4, 4]


def test_frequencies_follow_probabilities():
    """4000 draws: each count is within 5 standard deviations of its mean."""
    probabilities = np.array([0.5, 0.3, 0.15, 0.05])
    sampler = Sampler(temperature=2.0, seed=11)
    logits = 2.0 * np.log(probabilities)
    counts = np.bincount([sampler.sample(logits) for _ in range(4000)], minlength=4)
    deviations = np.sqrt(4000 * probabilities * (1 - probabilities))
    assert (np.abs(counts - 4000 * probabilities) < 5 * deviations).all()


def test_equal_seeds_draw_equally():
    logits = np.random.default_rng(3).standard_normal((50, 97)).astype(np.float32)

    def drawn(seed):
        sampler = Sampler(temperature=0.8, top_k=50, top_p=0.9, seed=seed)
        return [sampler.sample(row) for row in logits]

    assert drawn(5) == drawn(5)
    assert drawn(5) != drawn(6)


@settings(max_examples=50)
@given(LOGITS, st.integers(1, 5), st.floats(0.1, 1.0), st.floats(0.05, 3.0))
def test_draws_stay_within_the_filters(logits, top_k, top_p, temperature):
    sampler = Sampler(temperature=temperature, top_k=top_k, top_p=top_p, seed=1)
    allowed = set(ranked(logits)[:top_k])
    for _ in range(5):
        assert sampler.sample(logits) in allowed


def test_tiny_temperatures_are_greedy():
    logits = np.array([1.0, 1.1, -5.0], np.float32)
    for temperature in (1e-6, 1e-300, 5e-324):
        sampler = Sampler(temperature=temperature, top_p=0.9, seed=0)
        assert {sampler.sample(logits) for _ in range(20)} == {1}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": -1.0}, "temperature is -1.0; expects a number >= 0"),
        ({"temperature": math.nan}, "temperature is nan"),
        ({"top_k": -1}, "top_k is -1; expects an integer >= 0"),
        ({"top_p": 0.0}, "top_p is 0.0; expects a number > 0 and <= 1"),
        ({"top_p": 1.5}, "top_p is 1.5"),
        ({"repetition_penalty": 0.0}, "repetition_penalty is 0.0; expects a number > 0"),
        ({"seed": -3}, "seed is -3; expects an integer >= 0"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(UsageError, match=message):
        Sampler(**options)


@pytest.mark.parametrize(
    "name", ["temperature", "repetition_penalty", "presence_penalty", "frequency_penalty"]
)
def test_great_integers_are_those_of_floats(name):
    """Those that no float has are out of range, those that no C integer has are not."""
    for value in (10**400, -(10**400)):
        with pytest.raises(UsageError, match=f"{name} is -?inf; expects"):
            Sampler(**{name: value})
    logits, history = np.array([1, 5, 3, -2], np.float32), [1, 1, 3]
    for seed in range(9):
        great, same = (
            Sampler(
                **{"temperature": 1, "seed": seed, "logit_bias": {2: kind(7)}, name: kind(10**19)}
            )
            for kind in (int, float)
        )
        assert great.sample(logits, history) == same.sample(logits, history)


def test_temperatures_keep_what_is_forbidden():
    """Of infinite ones, it would have as good as a NaN for a probability."""
    logits = np.array([1, -np.inf, 3], np.float32)
    drawn = {Sampler(temperature=1e30, seed=seed).sample(logits) for seed in range(20)}
    assert drawn == {0, 2}
    with pytest.raises(UsageError, match="temperature is inf"):
        Sampler(temperature=math.inf)


@pytest.mark.parametrize("values", [[1.0, math.nan], [-math.inf, -math.inf], [math.inf, 0.0], []])
def test_logits_that_cannot_be_sampled(values):
    with pytest.raises(ExecutionError, match="expects a finite number"):
        Sampler().sample(np.array(values, np.float32))
