"""The compiled decoder: SmolLM2 against Hugging Face's numbers, tiny models against NumPy."""

import dataclasses
import itertools
from collections.abc import Collection, Sequence

import numpy as np
import pytest
import reference_llama
from tiny_models import CONFIG, random_weights, to_bf16, write_gguf, write_hf

from relax_mlir.errors import UsageError
from relax_mlir.llm import LanguageModel, load
from relax_mlir.llm.checkpoints.checkpoint import open_checkpoint
from relax_mlir.llm.generation.generation import Generation
from relax_mlir.llm.generation.sampling import Sampler
from relax_mlir.llm.measurement.inspection import kernels_per_layer, step_work

LOGITS_TOLERANCE = 5e-3


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return load("smollm2", weights="f32")


@pytest.fixture(scope="module")
def bf16_model() -> LanguageModel:
    return load("smollm2", weights="bf16")


@pytest.fixture(scope="module")
def weights() -> dict[str, np.ndarray]:
    return random_weights()


@pytest.fixture(scope="module")
def tiny(tmp_path_factory, weights) -> LanguageModel:
    return load(str(write_hf(tmp_path_factory.mktemp("model") / "tiny", weights)))


def tokens_of(length: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, CONFIG.vocab_size, length, dtype=np.int32)


def greedy(
    model: LanguageModel, prompt: Sequence[int], count: int | None, end_ids: Collection[int]
) -> Generation:
    """The greedy continuation of tokens, run to its end."""
    statistics = dataclasses.replace(model.statistics)
    answer = Generation(
        model.session(), prompt, model.tokenizer, Sampler(), end_ids, count, statistics
    )
    list(answer)
    return answer


class TestSmolLM2:
    @pytest.mark.parametrize("threads", [1, 2])
    @pytest.mark.parametrize("text", ["chat", "text128"])
    def test_logits(self, model, golden, text, threads):
        model.threads = threads
        logits = model.logits(golden[f"{text}_tokens"])
        np.testing.assert_array_equal(logits.argmax(-1), golden[f"{text}_argmax"])
        found = logits[-1, golden[f"{text}_last_ids"]]
        np.testing.assert_allclose(found, golden[f"{text}_last"], rtol=0, atol=LOGITS_TOLERANCE)

    @pytest.mark.parametrize("text", ["greedy32", "story_tokens", "facts_tokens"])
    def test_greedy_answer_token_by_token(self, model, golden, text):
        prompt_length = {
            "greedy32": len(golden["chat_tokens"]),
            "story_tokens": int(golden["story_prompt_len"]),
            "facts_tokens": int(golden["facts_prompt_len"]),
        }[text]
        prompt, expected = np.split(golden[text], [prompt_length])
        answer = greedy(model, prompt, len(expected), model.config.eos_ids)
        ended = [expected[-1]] if answer.stop_reason == "end" else []
        assert [*answer.tokens, *ended] == expected.tolist()
        assert set(ended) <= model.config.eos_ids

    def test_chat_template_and_text(self, model, golden):
        question = "What is the capital of France?"
        assert model.encode(question) == golden["chat_tokens"].tolist()
        assert "".join(model.generate(question)) == "The capital of France is Paris."

    @pytest.mark.parametrize("first", [1, 64, 127])
    def test_prompt_in_two_parts(self, model, golden, first):
        tokens = golden["text128_tokens"]
        session = model.session(len(tokens))
        parts = [
            session.append(tokens[:first], rows=first).copy(),
            session.append(tokens[first:], rows=len(tokens) - first),
        ]
        logits = np.concatenate(parts)
        np.testing.assert_array_equal(logits.argmax(-1), golden["text128_argmax"])
        whole = model.logits(tokens)
        np.testing.assert_allclose(logits, whole, rtol=0, atol=LOGITS_TOLERANCE)

    @pytest.mark.rotate(3)
    @pytest.mark.parametrize("opt_level", [0, 1, 2])
    def test_optimisation_changes_no_result(self, model, golden, opt_level):
        # One element at a time takes a second a token.
        tokens = golden["chat_tokens"][: 4 if opt_level == 0 else None]
        plain = load("smollm2", weights="f32", opt_level=opt_level).logits(tokens)
        np.testing.assert_array_equal(plain.argmax(-1), golden["chat_argmax"][: len(tokens)])
        np.testing.assert_allclose(model.logits(tokens), plain, rtol=0, atol=1e-3)

    def test_a_step_allocates_nothing_and_calls_few_kernels(self, model):
        calls = model.executable.metadata["functions"]["main"]["calls"]
        assert kernels_per_layer(calls, model.config.num_layers) <= 10
        work = step_work(model.session())
        assert work["allocations"] == 0
        assert work["arena_bytes"] == 0
        assert work["kernels"] == sum(calls.values())


def divergence(exact: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Kullback-Leibler divergence of rows of logits, in nats."""
    p, q = (np.exp(rows - rows.max(-1, keepdims=True)) for rows in (exact, found))
    p, q = (rows / rows.sum(-1, keepdims=True) for rows in (p, q))
    return (p * np.log(p / q)).sum(-1)


class TestBfloat16:
    @pytest.mark.parametrize("text", ["chat", "text128"])
    def test_logits(self, model, bf16_model, golden, text):
        logits = bf16_model.logits(golden[f"{text}_tokens"]).astype(np.float64)
        exact = model.logits(golden[f"{text}_tokens"]).astype(np.float64)
        np.testing.assert_allclose(logits, exact, rtol=0, atol=0.6)
        second, first = np.sort(exact)[:, -2:].T
        agrees = logits.argmax(-1) == golden[f"{text}_argmax"]
        # Rounding turns ties as near as this one way or the other.
        assert agrees[first - second > 0.04].all()
        assert agrees.mean() >= (1 if text == "chat" else 0.98)
        assert divergence(exact, logits).mean() < 8e-4

    def test_greedy_answer(self, bf16_model, golden):
        prompt, expected = np.split(golden["greedy32"], [len(golden["chat_tokens"])])
        answer = greedy(bf16_model, prompt, len(expected), bf16_model.config.eos_ids)
        ended = [expected[-1]] if answer.stop_reason == "end" else []
        assert [*answer.tokens, *ended] == expected.tolist()

    @pytest.mark.parametrize("opt_level", [0, 3])
    def test_matrices_are_rounded_and_nothing_else(self, tmp_path, weights, opt_level):
        path = str(write_hf(tmp_path / "tiny", weights))
        model = load(path, weights="bf16", activations="f32", opt_level=opt_level)
        rounded = {name: w if w.ndim == 1 else to_bf16(w) for name, w in weights.items()}
        tokens = tokens_of(19)
        expected = reference_llama.logits(CONFIG, rounded.__getitem__, tokens, np.float64)
        np.testing.assert_allclose(model.logits(tokens), expected, rtol=1e-4, atol=1e-4)

    @pytest.mark.parametrize("target", ["native", "x86-64-v3"])
    def test_activations_are_rounded_too(self, tmp_path, weights, target):
        path = str(write_hf(tmp_path / "tiny", weights))
        tokens = tokens_of(19)
        exact = load(path, weights="bf16", activations="f32").logits(tokens)
        found = load(path, weights="bf16", target=target).logits(tokens)
        error = np.abs(found - exact).max() / np.abs(exact).max()
        assert 1e-5 < error < 2e-2


class TestTinyModel:
    @pytest.mark.parametrize("length", [1, 2, 3, 7, 15, 16, 17, 31, 33, 63, 64])
    def test_logits(self, tiny, weights, length):
        tokens = tokens_of(length, seed=length)
        expected = reference_llama.logits(CONFIG, weights.__getitem__, tokens, np.float64)
        np.testing.assert_allclose(tiny.logits(tokens), expected, rtol=1e-4, atol=1e-4)

    @pytest.mark.parametrize("seed", range(4))
    def test_parts_of_any_size_until_the_cache_is_full(self, tiny, weights, seed):
        tokens = tokens_of(CONFIG.max_context, seed)
        expected = reference_llama.logits(CONFIG, weights.__getitem__, tokens, np.float64)
        rng = np.random.default_rng(seed)
        session, begin = tiny.session(), 0
        while begin < len(tokens):
            end = min(begin + int(rng.integers(1, 20)), len(tokens))
            rows = int(rng.integers(0, end - begin + 1))
            logits = session.append(tokens[begin:end], rows)
            assert logits.shape == (rows, CONFIG.vocab_size)
            np.testing.assert_allclose(logits, expected[end - rows : end], rtol=1e-4, atol=1e-4)
            begin = end
        assert session.length == session.capacity == CONFIG.max_context

    @pytest.mark.parametrize("kind", ["F32", "F16", "Q8_0", "Q4_1"])
    def test_gguf_formats(self, tmp_path, weights, kind):
        model = load(str(write_gguf(tmp_path / "tiny.gguf", weights, kind)), weights="f32")
        tokens = tokens_of(9)
        stored = open_checkpoint(str(tmp_path / "tiny.gguf")).weights
        expected = reference_llama.logits(CONFIG, stored.load_f32, tokens, np.float64)
        np.testing.assert_allclose(model.logits(tokens), expected, rtol=1e-4, atol=1e-4)

    @pytest.mark.parametrize(
        "changes", [{"num_heads": 2}, {"num_kv_heads": 6}, {"tie_embeddings": True}], ids=str
    )
    def test_other_shapes(self, tmp_path, changes):
        config = dataclasses.replace(CONFIG, **changes)
        weights = random_weights(config, seed=3)
        entries = {
            "num_attention_heads": config.num_heads,
            "num_key_value_heads": config.num_kv_heads,
            "head_dim": config.head_dim,
            "tie_word_embeddings": config.tie_embeddings,
        }
        model = load(str(write_hf(tmp_path / "model", weights, **entries)))
        tokens = tokens_of(13)
        expected = reference_llama.logits(config, weights.__getitem__, tokens, np.float64)
        np.testing.assert_allclose(model.logits(tokens), expected, rtol=1e-4, atol=1e-4)


class TestSession:
    def test_room_is_counted(self, tiny):
        session = tiny.session(8)
        session.append([1, 2, 3])
        message = "6 new tokens do not fit after 3 in a context of 8"
        with pytest.raises(UsageError, match=message):
            session.append(range(6))
        assert session.tokens == (1, 2, 3)
        session.append(range(5))
        with pytest.raises(UsageError, match="1 new tokens do not fit after 8"):
            session.append([0])

    @pytest.mark.parametrize(
        ("ids", "rows", "message"),
        [
            ([], 1, "no tokens are given"),
            ([0, CONFIG.vocab_size], 1, f"token {CONFIG.vocab_size} is not in the vocabulary"),
            ([-1], 1, "token -1 is not in the vocabulary"),
            ([0.5], 1, "tokens are float64 of rank 1"),
            ([[1]], 1, "of rank 2"),
            ([1, 2], 3, "rows is 3; expects 0 to 2"),
            ([1], -1, "rows is -1; expects 0 to 1"),
        ],
    )
    def test_wrong_arguments_leave_it_as_it_was(self, tiny, ids, rows, message):
        session = tiny.session()
        with pytest.raises(UsageError, match=message):
            session.append(ids, rows)
        assert session.length == 0

    def test_truncated_and_reset(self, tiny):
        tokens = tokens_of(20)
        session = tiny.session()
        session.append(tokens)
        session.truncate(7)
        np.testing.assert_allclose(
            session.append(tokens[7:]), tiny.logits(tokens)[-1:], rtol=1e-5, atol=1e-5
        )
        with pytest.raises(UsageError, match="length is 21; the session has 20 tokens"):
            session.truncate(21)
        session.reset()
        assert session.length == 0

    def test_sessions_are_independent(self, tiny):
        a, b = tokens_of(12, 1), tokens_of(12, 2)
        first, second = tiny.session(), tiny.session(12)
        for x, y in zip(a, b, strict=True):
            last_a, last_b = first.append([x]).copy(), second.append([y]).copy()
        np.testing.assert_allclose(last_a, tiny.logits(a)[-1:], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(last_b, tiny.logits(b)[-1:], rtol=1e-5, atol=1e-5)

    def test_capacity_is_within_the_context(self, tiny):
        with pytest.raises(UsageError, match="capacity is 65; expects 1 to 64"):
            tiny.session(65)


class TestGenerate:
    def test_statistics_and_length(self, tiny):
        answer = tiny.generate("hello", max_tokens=5, raw=True, temperature=1.0, seed=1)
        text = "".join(answer)
        assert tiny.tokenizer.decode(answer.tokens) == text
        assert answer.stop_reason == "length"
        assert len(answer.tokens) == 5
        found = answer.statistics
        assert (found.prompt_tokens, found.reused_tokens, found.steps) == (1, 0, 4)
        assert found.prompt_rate > 0
        assert found.generation_rate > 0
        assert found.peak_bytes > 1 << 20
        assert found.load_seconds > 0
        assert "4 steps" in str(found)

    def test_seed_makes_draws_repeatable(self, tiny):
        def draw(seed):
            return "".join(tiny.generate("1", raw=True, temperature=2.0, max_tokens=9, seed=seed))

        assert draw(5) == draw(5)
        assert len({draw(seed) for seed in range(5)}) > 1

    def test_goes_on_until_the_context_is_full(self, tiny):
        answer = greedy(tiny, [5, 6, 7], None, end_ids=())
        assert answer.stop_reason == "context"
        # The last token needs no room: nothing is computed from it.
        assert 3 + len(answer.tokens) == CONFIG.max_context + 1
        assert answer.session.length == CONFIG.max_context

    def test_stops_at_an_end_token(self, tiny):
        endless = greedy(tiny, [5, 6, 7], 20, end_ids=()).tokens
        position = next(i for i in range(3, 20) if endless[i] not in endless[:i])
        answer = greedy(tiny, [5, 6, 7], 20, end_ids={endless[position], CONFIG.vocab_size})
        assert answer.tokens == endless[:position]
        assert answer.stop_reason == "end"

    def test_nothing_is_asked_for(self, tiny):
        answer = tiny.generate("hello", max_tokens=0)
        assert list(answer) == []
        assert answer.stop_reason == "length"

    def test_a_session_keeps_what_was_said(self, tiny):
        session = tiny.session()
        first = tiny.generate("hello", raw=True, max_tokens=4, session=session)
        list(first)
        second = tiny.generate("hello world", raw=True, max_tokens=4, session=session)
        list(second)
        assert second.statistics.reused_tokens == 1
        fresh = tiny.generate("hello world", raw=True, max_tokens=4)
        list(fresh)
        assert second.tokens == fresh.tokens

    def test_answers_on_one_session_may_be_interleaved(self, tiny):
        alone = [greedy(tiny, prompt, 9, end_ids=()).tokens for prompt in ([5, 6, 7], [5, 8])]
        session = tiny.session()
        answers = [
            Generation(session, prompt, tiny.tokenizer, Sampler(), (), 9, tiny.statistics)
            for prompt in ([5, 6, 7], [5, 8])
        ]
        for _ in itertools.zip_longest(*answers):
            pass
        assert [answer.tokens for answer in answers] == alone
        answer = Generation(session, [5, 8], tiny.tokenizer, Sampler(), (), 9, tiny.statistics)
        for _ in answer:
            session.reset()
        assert answer.tokens == alone[1]

    def test_stops_at_a_text_or_a_special_token(self, tiny):
        draw = {"raw": True, "temperature": 2.0, "seed": 3, "max_tokens": 12}
        whole = "".join(tiny.generate("1", **draw))
        for begin in range(0, len(whole) - 2, 2):
            answer = tiny.generate("1", stop=whole[begin : begin + 3], **draw)
            assert "".join(answer) == whole[: whole.index(whole[begin : begin + 3])]
            assert answer.stop_reason == "stop"
        # Texts come without special tokens, which can be named all the same.
        tokens = greedy(tiny, [5, 6, 7], 20, end_ids=()).tokens
        special = tiny.tokenizer.special_id("<|im_end|>")
        assert special == 1
        assert tiny.tokenizer.special_id("hello") is None
        answer = tiny.generate("1", stop=["<|im_end|>"], raw=True)
        assert answer._answer._stop_ids == {special}
        assert len(tokens) == 20

    def test_prompt_does_not_fit(self, tiny):
        with pytest.raises(UsageError, match=r"\d+ new tokens do not fit after 0 in a context"):
            list(tiny.generate("1 " * 70, raw=True))

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"max_tokens": -1}, "max_tokens is -1; expects an integer >= 0"),
            ({"temperature": -1.0}, "temperature is -1.0"),
            ({"top_p": 0.0}, "top_p is 0.0"),
        ],
    )
    def test_wrong_arguments(self, tiny, arguments, message):
        with pytest.raises(UsageError, match=message):
            tiny.generate("hello", **arguments)

    def test_messages_are_for_the_template(self, tiny):
        messages = [{"role": "user", "content": "hello"}]
        assert tiny.encode(messages) == tiny.encode("hello")
        assert tiny.encode("hello", raw=True) != tiny.encode("hello")
        with pytest.raises(UsageError, match="messages cannot be given to a model raw"):
            tiny.encode(messages, raw=True)


class TestLoad:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (
                {"weights": "f8"},
                "unknown weights 'f8'; accepted are f32, bf16, q8_0, q4_0, q4_1, native, "
                "q8_32, q4_32, q4_32_minimum",
            ),
            ({"model": "nothing"}, "no model 'nothing'"),
            ({"context": 65}, "context is 65; expects 1 to 64"),
            ({"context": 0}, "context is 0; expects 1 to 64"),
            ({"threads": 0}, "threads is 0; expects 1 or more"),
            ({"opt_level": 4}, "unknown optimisation level 4; levels are 0, 1, 2, 3"),
            ({"target": "z80"}, "unknown target 'z80'"),
        ],
    )
    def test_wrong_arguments(self, tmp_path, weights, arguments, message):
        arguments = {"model": str(write_hf(tmp_path / "tiny", weights)), **arguments}
        with pytest.raises(UsageError, match=message):
            load(**arguments)

    def test_context_and_threads(self, tmp_path, weights):
        path = str(write_hf(tmp_path / "tiny", weights))
        model = load(path, context=5, threads=1)
        assert model.threads == 1
        assert model.session().capacity == 5
        with pytest.raises(UsageError, match="8 new tokens do not fit after 0 in a context of 5"):
            model.logits(range(8))

    def test_weights_are_counted_and_aligned(self, tiny, weights):
        assert tiny.num_parameters == sum(array.size for array in weights.values())
        assert all(array.ctypes.data % 64 == 0 for array in tiny.parameters)
