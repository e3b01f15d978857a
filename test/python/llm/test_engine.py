"""Many requests at once, against each alone."""

import threading
from dataclasses import replace

import numpy as np
import pytest
from tiny_models import CONFIG, random_weights, write_gguf

from relax_mlir.errors import ExecutionError, UsageError
from relax_mlir.llm import LanguageModel, load
from relax_mlir.llm.batching.batch import Batch
from relax_mlir.llm.batching.engine import Engine
from relax_mlir.llm.batching.request import Busy, Request
from relax_mlir.llm.generation.generation import Generation
from relax_mlir.llm.generation.sampling import Sampler

PAGES = 12


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> str:
    return str(write_gguf(tmp_path_factory.mktemp("engine") / "tiny.gguf", random_weights()))


@pytest.fixture(scope="module")
def tiny(path) -> LanguageModel:
    return load(path, weights="f32")


@pytest.fixture(scope="module")
def engine(path):
    with Engine.load(
        path, weights="f32", threads=2, pages=PAGES, step_tokens=24, max_sequences=9
    ) as engine:
        yield engine


def alone(model: LanguageModel, request: Request) -> tuple[list[int], str, str]:
    """Tokens, text and reason of the answer without an engine."""
    capacity = min(model.context, PAGES * 16)
    answer = Generation(
        model.session(capacity),
        request.prompt,
        model.tokenizer,
        replace(request.sampling, seed=request.seed),
        model.config.eos_ids,
        request.max_tokens,
        model.statistics,
        request.stop,
        grammar=request.grammar,
    )
    text = "".join(answer)
    return answer.tokens, text, "stop" if answer.stop_reason in ("end", "stop") else "length"


def collected(ticket) -> tuple[list[int], str, str | None]:
    """The same of a ticket."""
    events = list(ticket)
    assert all(event.finish is None for event in events[:-1])
    tokens = [token for event in events for token in event.tokens]
    return tokens, "".join(event.text for event in events), events[-1].finish


def requests(count: int, seed: int) -> list[Request]:
    """Prompts of many lengths, of which some begin alike, greedy and drawn."""
    random = np.random.default_rng(seed)
    shared = random.integers(2, CONFIG.vocab_size, 40).tolist()
    made = []
    for i in range(count):
        length = int(random.choice([0, 1, 15, 16, 17, 31, 32, 33, 40]))
        prompt = (
            shared[:length]
            + random.integers(2, CONFIG.vocab_size, int(random.integers(0, 9))).tolist()
        )
        sampler = Sampler(
            temperature=float(random.choice([0, 1.5])), top_k=int(random.choice([0, 7]))
        )
        made.append(
            Request(prompt or [5], sampler, int(random.integers(0, 40)), seed=i, client=str(i % 3))
        )
    return made


def test_answers_are_those_of_each_alone(tiny, engine):
    asked = requests(40, np.random.SeedSequence().entropy)
    tickets = [engine.submit(request) for request in asked]
    for request, ticket in zip(asked, tickets):
        assert collected(ticket) == alone(tiny, request), request
    metrics = engine.metrics()
    assert (metrics.running, metrics.waiting, metrics.pages_used) == (0, 0, 0)
    assert metrics.tokens_reused > 0


def test_answers_that_gave_up_their_pages(tiny, path):
    endless = Sampler(temperature=1.5, logit_bias={1: -np.inf})
    asked = [Request([5 + i] * 10, endless, 50, seed=i) for i in range(4)]
    with Engine.load(path, weights="f32", pages=5) as engine:
        with engine._worker._changed:  # all are there before the first step
            tickets = [engine.submit(request) for request in asked]
        for request, ticket in zip(asked, tickets):
            assert collected(ticket) == alone(tiny, request)
        assert engine.metrics().preemptions > 0


def test_options_of_answers(tiny, engine):
    """Stop texts across tokens, a grammar and a bias in one batch."""
    prompt = tiny.encode("hello", raw=True)
    text = alone(tiny, Request(prompt))[1]
    options = [
        {"stop": (text[3:5],)},
        {"sampling": Sampler(logit_bias={1: -np.inf}, repetition_penalty=1.5)},
        {"sampling": Sampler(temperature=2.0, min_p=0.01, top_p=0.9, presence_penalty=0.5)},
    ]
    asked = [Request(prompt, seed=i, **each) for i, each in enumerate(options)]
    tickets = [engine.submit(request) for request in asked]
    digits = engine.submit(Request(prompt, grammar=tiny.grammar('root ::= [0-9] "hello"')))
    for request, ticket in zip(asked, tickets):
        assert collected(ticket) == alone(tiny, request)
    grammar = tiny.grammar('root ::= [0-9] "hello"')
    answer = collected(digits)
    assert answer == alone(tiny, Request(prompt, grammar=grammar))
    assert answer[1][1:] == "hello"


def test_log_probabilities(tiny, engine):
    prompt = [5, 9, 17, 30]
    events = [e for e in engine.submit(Request(prompt, max_tokens=6, logprobs=3)) if e.tokens]
    tokens = [event.tokens[0] for event in events]
    logits = tiny.logits(prompt + tokens)[len(prompt) - 1 :].astype(np.float64)
    for event, token, row in zip(events, tokens, logits):
        expected = row - np.log(np.exp(row).sum())
        [given] = event.logprobs
        assert given.token == token
        assert given.logprob == pytest.approx(expected[token], abs=1e-4)
        assert [id for id, _ in given.top] == np.argsort(-expected, kind="stable")[:3].tolist()
        assert [x for _, x in given.top] == pytest.approx(sorted(expected)[:-4:-1], abs=1e-4)


def test_samples_share_the_run_of_the_prompt(engine):
    prompt = np.random.default_rng().integers(2, CONFIG.vocab_size, 40).tolist()
    before = engine.metrics()
    sampler = Sampler(temperature=2.0)
    tickets = [engine.submit(Request(prompt, sampler, 3, seed=i)) for i in range(4)]
    assert len({tuple(collected(ticket)[0]) for ticket in tickets}) > 1
    assert [ticket.reused for ticket in tickets] == [0, 32, 32, 32]
    # A last token by itself counts as generating.
    assert 60 <= engine.metrics().tokens_in - before.tokens_in <= 40 + 3 * 8


def test_cancelled_answers_release_their_pages(engine):
    tickets = [engine.submit(Request([5 + i, 6, 7], max_tokens=50)) for i in range(12)]
    next(iter(tickets[0]))
    for ticket in tickets:
        ticket.cancel()
        ticket.cancel()
    assert all(event.finish is None for event in tickets[0])
    assert collected(engine.submit(Request([3], max_tokens=2)))[2] == "length"
    metrics = engine.metrics()
    assert (metrics.running, metrics.waiting, metrics.pages_used) == (0, 0, 0)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Request([]), "the prompt has no tokens"),
        (Request([5] * 65), "the prompt has 65 tokens; 64 fit, in a context of 64"),
        (Request([5, -1]), "token -1 is not in the vocabulary"),
        (Request([CONFIG.vocab_size]), f"token {CONFIG.vocab_size} is not in the vocabulary"),
        (Request([10**30]), "is not in the vocabulary"),
        (Request([5], max_tokens=-1), "max_tokens is -1"),
        (Request([5], logprobs=-1), "logprobs is -1"),
        (Request([5], stop=("",)), "a stop text is empty"),
        (Request([5], Sampler(logit_bias={10**9: 1.0})), "logit_bias has token 1000000000"),
    ],
)
def test_requests_that_can_never_run(engine, request_, message):
    with pytest.raises(UsageError, match=message):
        engine.submit(request_)


def test_a_failing_step_fails_its_requests_alone(tiny, engine, monkeypatch):
    def fails(batch, runs):
        raise ExecutionError("planted")

    with monkeypatch.context() as patch:
        patch.setattr(Batch, "step", fails)
        [event] = list(engine.submit(Request([5])))
    assert (event.finish, event.error) == ("error", "planted")
    request = Request([5], max_tokens=3)
    assert collected(engine.submit(request)) == alone(tiny, request)


def test_logits_that_are_not_finite(engine, monkeypatch):
    def damaged(batch, runs, step=Batch.step):
        logits = step(batch, runs)
        logits[[run.tokens[0] == 9 for run in runs]] = np.nan
        return logits

    monkeypatch.setattr(Batch, "step", damaged)
    bad, good = (engine.submit(Request([token], max_tokens=1)) for token in (9, 8))
    assert "largest logit is nan" in list(bad)[-1].error
    assert list(good)[-1].finish == "length"


def test_too_many_wait(path):
    with Engine.load(path, weights="f32", pages=4, max_sequences=1, max_waiting=2) as engine:
        engine.submit(Request([5], max_tokens=60))
        tickets = []

        def submit_more() -> None:
            while len(tickets) < 9:
                tickets.append(engine.submit(Request([5], max_tokens=60)))

        with pytest.raises(Busy, match="requests wait"):
            submit_more()
        assert all(collected(ticket)[2] in ("length", "stop") for ticket in tickets)


def test_closing(path):
    engine = Engine.load(path, weights="f32", pages=4)
    ticket = engine.submit(Request([5], max_tokens=20))
    engine.close(drain=True, timeout=60)
    assert collected(ticket)[2] in ("length", "stop")
    with pytest.raises(Busy, match="is being closed"):
        engine.submit(Request([5]))
    engine = Engine.load(path, weights="f32", pages=4)
    tickets = [engine.submit(Request([5], max_tokens=60)) for _ in range(5)]
    engine.close(drain=False)
    assert [event.error for event in tickets[-1]][-1] == "the engine was closed"


def test_many_threads(tiny, engine):
    asked = requests(24, np.random.SeedSequence().entropy)
    answers = {}

    def ask(first: int) -> None:
        for i in range(first, len(asked), 6):
            answers[i] = collected(engine.submit(asked[i]))

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert answers == {i: alone(tiny, request) for i, request in enumerate(asked)}


def test_wrong_sizes(path):
    for options, message in (
        ({"pages": 0}, "the count of pages is 0"),
        (
            {"pages": 4, "step_tokens": 3, "max_sequences": 4},
            "steps of 3 tokens do not fit up to 4",
        ),
        ({"threads": 0}, "threads is 0"),
    ):
        with pytest.raises(UsageError, match=message):
            Engine.load(path, weights="f32", **options)
