"""Answers that go on in a full context: each token is that of a fresh run on what is left."""

import dataclasses
import json

import numpy as np
import openai
import pytest
from architecture_cases import TOKENS, write
from scripted_engine import running
from test_drafts import TOKENIZER, FakeSession, Guesses, logits_after
from tiny_models import CONFIG, random_weights, write_gguf

from relax_mlir.errors import UsageError
from relax_mlir.llm import LanguageModel, load
from relax_mlir.llm.batching.engine import Engine
from relax_mlir.llm.batching.request import Request
from relax_mlir.llm.generation.context_shift import check_keep, dropped
from relax_mlir.llm.generation.generation import Generation, Statistics
from relax_mlir.llm.generation.sampling import Sampler
from relax_mlir.llm.serving.engines import Served
from relax_mlir.llm.serving.limits import State
from relax_mlir.tools.relax_llm import main

CAPACITY = 33


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> str:
    weights = random_weights()
    weights["lm_head.weight"][1] = 0  # the text does not end
    return str(write_gguf(tmp_path_factory.mktemp("shift") / "tiny.gguf", weights))


@pytest.fixture(scope="module")
def tiny(path) -> LanguageModel:
    return load(path, weights="f32", threads=2, context=CAPACITY)


@pytest.fixture(scope="module")
def engine(path):
    with Engine.load(
        path, weights="f32", threads=2, context=CAPACITY, pages=7, max_sequences=5, step_tokens=16
    ) as engine:
        yield engine


def expected(model: LanguageModel, prompt, count: int, keep: int, capacity: int) -> list[int]:
    """The likeliest tokens, each of a new session over the tokens that are left."""
    seen, tokens = list(prompt), []
    for _ in range(count):
        if len(seen) > capacity:
            rest = seen[keep:]
            seen = seen[:keep] + rest[len(rest) // 2 :]
        session = model.session(capacity)
        tokens.append(int(session.append(seen)[0].argmax()))
        seen.append(tokens[-1])
    return tokens


def answer(model: LanguageModel, prompt, count: int, keep, capacity: int, **options) -> Generation:
    session, greedy = model.session(capacity), Sampler()
    found = Generation(
        *(session, prompt, model.tokenizer, greedy, (), count, Statistics()), keep=keep, **options
    )
    list(found)
    return found


@pytest.mark.parametrize("keep", [0, 1, 4, 17, 32])
@pytest.mark.parametrize("length", [1, 20, 32, 33])
def test_tokens_are_those_of_a_fresh_run(tiny, keep, length):
    prompt = np.random.default_rng().integers(2, CONFIG.vocab_size, length).tolist()
    found = answer(tiny, prompt, 70, keep, CAPACITY)
    assert found.tokens == expected(tiny, prompt, 70, keep, CAPACITY)
    assert (found.stop_reason, found.statistics.shifts > 0) == ("length", True)
    assert answer(tiny, prompt, 70, None, CAPACITY).stop_reason == "context"


@pytest.mark.rotate(5)
@pytest.mark.parametrize("case", ["gpt2", "gemma2", "deepseek2", "bamba", "phi3-longrope"])
def test_other_positions_and_states(tmp_path, case):
    """Learned positions, windows, latent attention, states, factors by length."""
    model = load(str(write(tmp_path / "m", case)), weights="f32", threads=2)
    prompt = TOKENS[:9].tolist()
    found = answer(model, prompt, 30, 3, 19)
    assert found.tokens == expected(model, prompt, 30, 3, 19)
    assert found.statistics.shifts == 3


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_guesses_change_nothing(seed, temperature):
    found = []
    for draft in (None, Guesses(seed)):
        sampler = Sampler(temperature, seed=seed)
        each = Generation(
            *(FakeSession(11), [1, 2], TOKENIZER, sampler, (), 50, Statistics()),
            draft=draft,
            keep=3,
        )
        list(each)
        found.append(each.tokens)
    assert found[0] == found[1]
    assert len(found[0]) == 50
    if temperature == 0:
        tokens = [1, 2]
        for token in found[0]:
            assert token == logits_after(tokens).argmax()
            tokens.append(token)


def test_sessions_that_others_use(tiny):
    """A shift while another answer has the session."""
    prompt = TOKENS[:25].tolist()
    session = tiny.session(CAPACITY)
    each = [
        Generation(session, [*prompt, i], tiny.tokenizer, Sampler(), (), 20, Statistics(), keep=2)
        for i in (5, 6)
    ]
    while any(generation.stop_reason is None for generation in each):
        for generation in each:
            next(generation, None)
    for i, generation in zip((5, 6), each):
        assert generation.tokens == expected(tiny, [*prompt, i], 20, 2, CAPACITY)


def test_the_engine(tiny, engine):
    """More sequences than there are pages for, of which some end at the context."""
    random = np.random.default_rng()
    asked = []
    for keep in (0, 3, 16, 32, None, 3, 3):
        prompt = random.integers(2, CONFIG.vocab_size, int(random.integers(1, 34))).tolist()
        asked.append(Request(prompt, max_tokens=60, keep=keep))
    asked[-1] = dataclasses.replace(asked[-2], max_tokens=50)
    for request, ticket in zip(asked, [engine.submit(request) for request in asked]):
        events = list(ticket)
        tokens = [token for event in events for token in event.tokens]
        assert events[-1].finish == "length"
        if request.keep is None:
            assert len(request.prompt) + len(tokens) == CAPACITY + 1
            continue
        wanted = expected(tiny, request.prompt, request.max_tokens, request.keep, CAPACITY)
        assert tokens == wanted
    metrics = engine.metrics()
    assert (metrics.running, metrics.waiting, metrics.pages_used) == (0, 0, 0)
    cancelled = engine.submit(Request([5], max_tokens=10**6, keep=3))
    for _ in range(100):
        next(cancelled)
    cancelled.cancel()
    assert len(list(engine.submit(Request([5], max_tokens=2)))) == 2
    with pytest.raises(UsageError, match="keep is 33; expects 0 to 32 tokens"):
        engine.submit(Request([5], keep=33))


def test_served(tiny, engine):
    with (
        running(State({"tiny": Served("tiny", engine, keep=3)})) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client,
    ):
        found = client.completions.create(
            model="tiny", prompt="hello w1", max_tokens=80, temperature=0
        )
        wanted = tiny.generate("hello w1", raw=True, max_tokens=80, keep=3)
        assert found.choices[0].text == "".join(wanted)
        assert (found.usage.completion_tokens, wanted.statistics.shifts) == (80, 4)
        with pytest.raises(openai.BadRequestError, match="longer than the context"):
            client.completions.create(model="tiny", prompt=[5] * 34, max_tokens=1)


def test_command_lines(path, capsys):
    command = ["generate", path, "hello w1", "--raw", "--json", "--weights", "f32", "--context=33"]
    assert main([*command, "--max-tokens", "80", "--context-shift"]) == 0
    found = json.loads(capsys.readouterr().out)
    wanted = load(path, weights="f32", context=33).generate(
        "hello w1", raw=True, max_tokens=80, keep=4
    )
    assert (found["text"], found["statistics"]["shifts"]) == ("".join(wanted), 4)
    assert (
        main([*command, "--max-tokens", "1", "--samples", "2", "--context-shift", "--keep=32"]) == 0
    )
    assert len(json.loads(capsys.readouterr().out)) == 2
    for options, message in (
        (["--keep", "2"], "--keep needs --context-shift"),
        (["--context-shift", "--keep", "33"], "keep is 33; expects 0 to 32"),
        (["--context-shift", "--keep=-1"], "keep is -1; expects 0 to 32"),
        (["--context-shift", "--beams", "2"], "--beams excludes --keep"),
    ):
        assert main([*command, "--max-tokens", "80", *options]) == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize(("capacity", "keep"), [(1, 0), (2, 1), (64, 63), (64, 0)])
def test_something_is_dropped(capacity, keep):
    check_keep(keep, capacity, False)
    count = dropped(capacity + 1, keep)
    assert 1 <= count <= capacity + 1 - keep - 1
    with pytest.raises(UsageError, match="ends with its context"):
        check_keep(keep, capacity, True)
