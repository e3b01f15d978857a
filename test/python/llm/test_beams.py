"""Beam search against transformers' `generate(num_beams=...)`, and against all answers."""

import itertools
import json

import numpy as np
import pytest
from tiny_models import CONFIG, random_weights, write_gguf, write_hf

from relax_mlir import llm
from relax_mlir.errors import ExecutionError, UsageError
from relax_mlir.llm.generation.beams import Beams, beam_search
from relax_mlir.tools.relax_llm import main

VOCABULARY = 5


class Table:
    """A session whose logits depend on the last two tokens, by a random table."""

    def __init__(self, table, tokens=()):
        self.table, self.tokens = table, tokens

    def append(self, ids):
        self.tokens = (*self.tokens, *ids)
        return self.table[tuple(self.tokens[-2:])][None]

    def fork(self):
        return Table(self.table, self.tokens)


def logprob(table, tokens):
    total, before = 0.0, (0, 1)
    for token in tokens:
        logits = table[before].astype(np.float64)
        total += logits[token] - np.log(np.exp(logits).sum())
        before = (before[1], token)
    return total


@pytest.mark.parametrize("penalty", [0.0, 1.0, -1.0, 2.5])
def test_as_many_beams_as_texts_find_the_best(penalty):
    """A search that excludes nothing finds the best of all answers of up to three tokens."""
    table = np.random.default_rng(5).normal(size=(VOCABULARY,) * 3).astype(np.float32)
    ends, limit = {4}, 3
    texts = [
        text
        for length in range(1, limit + 1)
        for text in itertools.product(range(VOCABULARY), repeat=length)
        if not ends & set(text[:-1]) and (length == limit or text[-1] in ends)
    ]
    scores = {text: logprob(table, text) / len(text) ** penalty for text in texts}

    def wide(count):
        size = 200  # tokens that never come give room for many beams
        more = np.full((size,) * 3, -1e9, np.float32)
        more[:VOCABULARY, :VOCABULARY, :VOCABULARY] = table
        return Beams(count, penalty, "never"), Table(more, (0,))

    options, session = wide(80)
    best, *_ = beam_search(session, 1, ends, limit, options)
    assert best.tokens == max(texts, key=scores.__getitem__)
    assert best.score == pytest.approx(scores[best.tokens], rel=1e-6)


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    return str(write_gguf(tmp_path_factory.mktemp("beams") / "tiny.gguf", random_weights()))


@pytest.fixture(scope="module")
def model(model_file):
    return llm.load(model_file, threads=2)


def test_one_beam_is_greedy(model):
    greedy = model.generate("ab", raw=True, max_tokens=17)
    "".join(greedy)
    (beam,) = model.beams("ab", 1, raw=True, max_tokens=17)
    assert [token for token in beam.tokens if token not in CONFIG.eos_ids] == greedy.tokens


def test_scores_are_those_of_the_model(model):
    beams = model.beams("abc", 4, raw=True, max_tokens=9)
    prompt = model.encode("abc", raw=True)
    assert len({beam.tokens for beam in beams}) == 4
    assert [beam.score for beam in beams] == sorted((beam.score for beam in beams), reverse=True)
    for beam in beams:
        logits = model.logits([*prompt, *beam.tokens])[len(prompt) - 1 : -1].astype(np.float64)
        logprobs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        total = logprobs[range(len(beam.tokens)), beam.tokens].sum()
        assert beam.score == pytest.approx(total / len(beam.tokens), rel=1e-4)


def test_limits(model):
    assert [beam.tokens for beam in model.beams("a", 3, raw=True, max_tokens=0)] == [()]
    long = "a" * (model.context - 2)
    ids = model.encode(long, raw=True)
    beams = model.beams(long, 2, raw=True, max_tokens=None)
    assert max(len(beam.tokens) for beam in beams) <= model.context - len(ids) + 1
    for count, options, message in [
        (0, {}, "expects an integer >= 1"),
        (9999, {}, "need a vocabulary of"),
        (2, {"length_penalty": float("nan")}, "length_penalty is nan"),
        (2, {"length_penalty": 20.5}, "length_penalty is 20.5; expects a value from -20 to 20"),
        (2, {"early_stopping": "always"}, "early_stopping is 'always'"),
        (2, {"max_tokens": -1}, "max_tokens is -1"),
    ]:
        with pytest.raises(UsageError, match=message):
            model.beams("a", count, raw=True, **options)


def test_command(model_file, model, capsys):
    command = ["generate", model_file, "abc", "--raw", "--beams", "3", "--max-tokens", "7"]
    options = ["--length-penalty", "0.5", "--early-stopping", "never"]
    assert main([*command, *options, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    expected = model.beams(
        "abc", 3, raw=True, max_tokens=7, length_penalty=0.5, early_stopping="never"
    )
    assert [tuple(each["tokens"]) for each in printed] == [beam.tokens for beam in expected]
    assert main([*command, *options]) == 0
    assert capsys.readouterr().out == printed[0]["text"] + "\n"
    for extra in (["--temperature", "0.5"], ["--stop", "a"], ["--samples", "2"], ["--lookup"]):
        assert main([*command, *extra]) == 2
        name = "--draft" if extra == ["--lookup"] else extra[0]
        assert f"--beams excludes {name}" in capsys.readouterr().err


def test_logits_that_are_not_finite():
    table = np.full((3, 3, 8), np.nan, np.float32)
    with pytest.raises(ExecutionError, match="largest logit is nan"):
        beam_search(Table(table, (0,)), 1, {2}, 3, Beams(2))


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A model, and the same of transformers."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    folder = write_hf(tmp_path_factory.mktemp("pair") / "m", random_weights())
    other = transformers.LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return llm.load(str(folder), threads=2), other


@pytest.mark.parametrize("early", [False, True, "never"])
@pytest.mark.parametrize("penalty", [1.0, 0.0, -0.7, 2.0])
def test_transformers(pair, early, penalty):
    model, other = pair
    torch = pytest.importorskip("torch")
    for count, prompt in itertools.product((2, 3, 5), ("a", "the cat")):
        ids = torch.tensor([model.encode(prompt, raw=True)])
        found = other.generate(
            ids,
            num_beams=count,
            num_return_sequences=count,
            max_new_tokens=12,
            length_penalty=penalty,
            early_stopping=early,
            do_sample=False,
            eos_token_id=sorted(model.config.eos_ids),
            pad_token_id=0,
            return_dict_in_generate=True,
            output_scores=True,
        )
        options = {"length_penalty": penalty, "early_stopping": early, "max_tokens": 12}
        beams = model.beams(prompt, count, raw=True, **options)
        scores = found.sequences_scores.numpy()
        np.testing.assert_allclose([beam.score for beam in beams], scores, 1e-4)
        for beam, sequence in zip(beams, found.sequences.numpy(), strict=True):
            assert sequence[ids.shape[1] :][: len(beam.tokens)].tolist() == list(beam.tokens)
