"""Speculative decoding gives the answers, and the distribution of answers, of plain decoding."""

import itertools
import math
import random
from collections import Counter

import numpy as np
import pytest
from tiny_models import hf_tokenizer, random_weights, write_gguf

from relax_mlir.errors import UsageError
from relax_mlir.llm import LanguageModel, load
from relax_mlir.llm.generation.drafts import DraftModel, PromptLookup
from relax_mlir.llm.generation.generation import Generation, Statistics
from relax_mlir.llm.generation.sampling import Sampler
from relax_mlir.llm.tokenization.tokenizer import Tokenizer

TOKENIZER = Tokenizer(hf_tokenizer(), None, None)
VOCABULARY = 3


def logits_after(tokens: list[int]) -> np.ndarray:
    """A model: the logits of three tokens depend on the last two."""
    return np.random.default_rng(tokens[-2:]).standard_normal(VOCABULARY)


class FakeSession:
    """The interface of a session, around `logits_after`."""

    pictures = ()

    def __init__(self, capacity: int = 64) -> None:
        self.capacity, self.changes, self.tokens = capacity, 0, []

    def append(self, ids, rows=1, pictures=()):
        self.check_room(len(ids))
        self.tokens += ids
        self.changes += 1
        ends = range(len(self.tokens) - rows + 1, len(self.tokens) + 1)
        return np.array([logits_after(self.tokens[:end]) for end in ends])

    def truncate(self, length):
        assert 0 <= length <= len(self.tokens)
        del self.tokens[length:]
        self.changes += 1

    def check_room(self, count):
        assert len(self.tokens) + count <= self.capacity


class Guesses:
    """Random guesses, some of them right."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def propose(self, tokens, most):
        return self._rng.choices(range(VOCABULARY), k=self._rng.randint(0, min(most, 4)))


def answer(draft, seed=0, temperature=1.0, max_tokens=12, capacity=64) -> Generation:
    found = Generation(
        FakeSession(capacity),
        [1, 2],
        TOKENIZER,
        Sampler(temperature, seed=seed),
        (),
        max_tokens,
        Statistics(),
        draft=draft,
    )
    list(found)
    return found


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize(("max_tokens", "capacity"), [(12, 64), (None, 17), (1, 64), (0, 64)])
def test_the_same_seed_gives_the_same_answer(seed, temperature, max_tokens, capacity):
    plain = answer(None, seed, temperature, max_tokens, capacity)
    for draft in (Guesses(seed), PromptLookup()):
        found = answer(draft, seed, temperature, max_tokens, capacity)
        assert (found.tokens, found.stop_reason) == (plain.tokens, plain.stop_reason)
        rest = [1, 2, *found.tokens]
        assert found.session.tokens == rest[: len(found.session.tokens)]


def test_the_distribution_is_that_of_the_model():
    """Chi-square of 3000 answers of three tokens, at the 0.1 % level."""
    expected = {}
    for tokens in itertools.product(range(VOCABULARY), repeat=3):
        said, probability = [1, 2], 1.0
        for token in tokens:
            exponentials = np.exp(logits_after(said))
            probability *= exponentials[token] / exponentials.sum()
            said.append(token)
        expected[tokens] = probability
    draft = Guesses(0)
    answers = [answer(draft, seed, max_tokens=3) for seed in range(3000)]
    counts = Counter(tuple(each.tokens) for each in answers)
    assert sum(each.statistics.accepted for each in answers) > 500
    square = sum((counts[t] - 3000 * p) ** 2 / (3000 * p) for t, p in expected.items())
    degrees = len(expected) - 1
    # Wilson and Hilferty's approximation of the quantile.
    assert square < degrees * (1 - 2 / (9 * degrees) + 3.09 * math.sqrt(2 / (9 * degrees))) ** 3


def test_lookup():
    lookup = PromptLookup(count=3)
    assert lookup.propose([1, 2, 3, 4, 1, 2], 8) == [3, 4, 1]
    assert lookup.propose([1, 2, 3, 4, 1, 2], 1) == [3]
    assert lookup.propose([7, 2, 5, 1, 2, 6, 7, 2], 8) == [5, 1, 2]  # not the later 2
    assert lookup.propose([1, 1, 2, 1], 8) == [2, 1]  # the latest
    assert lookup.propose([1, 2, 3], 8) == []
    assert lookup.propose([], 8) == []


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> LanguageModel:
    path = write_gguf(tmp_path_factory.mktemp("drafts") / "tiny.gguf", random_weights())
    return load(str(path), weights="f32")


@pytest.mark.parametrize("prompt", ["hello 1 2", "1 2 1 2 1"])
def test_greedy_answers_of_a_compiled_model(tiny, prompt):
    options = {"raw": True, "max_tokens": 30, "logit_bias": {1: -99}}
    plain = tiny.generate(prompt, **options)
    text = "".join(plain)
    drafts = [
        PromptLookup(),
        DraftModel(tiny.session(), tiny.tokenizer, tiny.tokenizer, 5),
        DraftModel(tiny.session(20), tiny.tokenizer, tiny.tokenizer),
    ]
    for draft in drafts:
        found = tiny.generate(prompt, draft=draft, **options)
        assert "".join(found) == text
        assert found.tokens == plain.tokens
        assert found.statistics.accepted > 0
        if isinstance(draft, DraftModel):  # it is the model itself
            assert found.statistics.accepted >= found.statistics.drafted - 5


def test_wrong_drafts(tiny):
    other = hf_tokenizer()
    other.add_tokens(["more"])
    with pytest.raises(UsageError, match="the draft model has another vocabulary"):
        DraftModel(tiny.session(), Tokenizer(other, None, None), tiny.tokenizer)
    with pytest.raises(UsageError, match="draft tokens is 0; expects an integer >= 1"):
        PromptLookup(0)
    with pytest.raises(UsageError, match="the longest text to look up is 0"):
        PromptLookup(longest=0)
