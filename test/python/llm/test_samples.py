"""Several answers to one prompt, and sessions that share its tokens."""

import numpy as np
import pytest
from tiny_models import CONFIG, random_weights, write_gguf

from relax_mlir.errors import UsageError
from relax_mlir.llm import LanguageModel, load
from relax_mlir.llm.generation.session import Session


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> LanguageModel:
    path = write_gguf(tmp_path_factory.mktemp("samples") / "tiny.gguf", random_weights())
    return load(str(path), weights="f32")


def test_a_fork_is_independent(tiny):
    session = tiny.session()
    session.append([5, 9, 17])
    fork = session.fork()
    first = session.append([3]).copy()
    second = fork.append([4])
    np.testing.assert_allclose(second, tiny.logits([5, 9, 17, 4])[-1:], rtol=0, atol=1e-5)
    np.testing.assert_allclose(first, tiny.logits([5, 9, 17, 3])[-1:], rtol=0, atol=1e-5)
    assert (session.tokens, fork.tokens) == ((5, 9, 17, 3), (5, 9, 17, 4))


def test_samples_are_those_of_their_seeds_and_share_the_prompt(tiny, monkeypatch):
    options = {"max_tokens": 5, "temperature": 2.0, "raw": True}
    expected = [list(tiny.generate("hello 1", seed=7 + i, **options)) for i in range(3)]
    append, read = Session.append, []

    def counted(session, ids, rows=1, pictures=()):
        read.append(len(ids))
        return append(session, ids, rows)

    monkeypatch.setattr(Session, "append", counted)
    answers = tiny.samples("hello 1", 3, seed=7, **options)
    assert [list(answer) for answer in answers] == expected
    assert sum(length for length in read if length > 1) == len(tiny.encode("hello 1", True)) - 1


def test_an_option_out_of_range(tiny):
    with pytest.raises(UsageError, match="the count of samples is 0; expects an integer >= 1"):
        tiny.samples("hello", 0)
    bias = {CONFIG.vocab_size: 1.0}
    with pytest.raises(UsageError, match=f"logit_bias has token {CONFIG.vocab_size}"):
        tiny.generate("hello", logit_bias=bias)


def test_dry_ends_a_repetition(tiny):
    def generated(**options):
        answer = tiny.generate("1 2 1 2", raw=True, max_tokens=24, logit_bias={1: -99}, **options)
        list(answer)
        return answer.tokens

    triples = [tuple(generated(dry_multiplier=1e9)[i : i + 4]) for i in range(21)]
    assert len(set(triples)) == len(triples)
