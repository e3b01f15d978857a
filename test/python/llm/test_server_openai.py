"""The server and OpenAI's own client, with an engine that says what it is told to."""

import json
import math

import openai
import pytest
from scripted_engine import ScriptedEngine, ScriptedModel, running, state_of, wait_until

TOOL_TEMPLATE = (
    "{% if tools %}{% for t in tools %}{{ t.function.name }}{% endfor %}{% endif %}"
    "{% for m in messages %}{{ m.role }}:{{ m.content }}"
    "{% for c in m.tool_calls or [] %}{{ c.function.name }}({{ c.function.arguments | tojson }})"
    "{% endfor %}{% endfor %}"
)
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}
HELLO = [{"role": "user", "content": "hello"}]


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    return ScriptedEngine(ScriptedModel(tmp_path_factory.mktemp("model"), TOOL_TEMPLATE))


@pytest.fixture(scope="module")
def state(engine):
    return state_of(engine)


@pytest.fixture(scope="module")
def client(state):
    with running(state) as url:
        with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
            yield client


@pytest.fixture(autouse=True)
def fresh(engine):
    engine.says, engine.pause, engine.full, engine.fails = "hello world", 0, False, None
    engine.requests.clear()
    engine.cancelled = 0


def test_models(client):
    assert [model.id for model in client.models.list()] == ["tiny"]
    assert client.models.retrieve("tiny").owned_by == "relax-mlir"
    with pytest.raises(openai.NotFoundError, match="no model 'none'; there are tiny"):
        client.models.retrieve("none")


def test_a_chat(client, engine):
    answer = client.chat.completions.create(model="tiny", messages=HELLO, seed=-1)
    (choice,) = answer.choices
    assert choice.message.content == "hello world"
    assert (choice.finish_reason, choice.message.tool_calls) == ("stop", None)
    (request,) = engine.requests
    assert engine.model.tokenizer.decode(request.prompt) == "user:hello"
    assert answer.usage.prompt_tokens == len(request.prompt)
    assert answer.usage.completion_tokens == len(engine.model.tokenizer.encode("hello world"))
    assert (request.sampling.temperature, request.seed) == (1.0, (1 << 64) - 1)
    assert request.max_tokens == engine.model.context - len(request.prompt)


def test_options_arrive(client, engine):
    client.chat.completions.create(
        model="tiny",
        messages=[
            {"role": "developer", "content": [{"type": "text", "text": "a"}]},
            {"role": "user", "content": [{"type": "text", "text": t} for t in "bc"]},
        ],
        temperature=0.25,
        top_p=0.5,
        presence_penalty=-1,
        frequency_penalty=1.5,
        logit_bias={"5": -100, "7": 1},
        stop=["x", "y"],
        seed=3,
        n=2,
        max_completion_tokens=9,
        user="somebody",
        extra_body={"top_k": 4, "min_p": 0.125, "repetition_penalty": 1.25},
    )
    first, second = engine.requests
    assert first.prompt is second.prompt
    assert engine.model.tokenizer.decode(first.prompt) == "system:auser:b\nc"
    assert (first.seed, second.seed) == (3, 4)
    assert (first.stop, first.max_tokens, first.client) == (("x", "y"), 9, "127.0.0.1")
    sampling = first.sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k) == (0.25, 0.5, 4)
    assert (sampling.presence_penalty, sampling.frequency_penalty) == (-1, 1.5)
    assert (sampling.min_p, sampling.repetition_penalty) == (0.125, 1.25)
    assert sampling.logit_bias == {5: -100, 7: 1}


def test_a_stream(client, engine):
    stream = client.chat.completions.create(
        model="tiny", messages=HELLO, n=2, stream=True, stream_options={"include_usage": True}
    )
    texts, reasons, usage = ["", ""], [None, None], None
    for chunk in stream:
        assert chunk.object == "chat.completion.chunk"
        usage = chunk.usage or usage
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
            reasons[choice.index] = choice.finish_reason
    assert texts == ["hello world"] * 2
    assert reasons == ["stop"] * 2
    tokens = len(engine.model.tokenizer.encode("hello world"))
    assert usage.completion_tokens == 2 * tokens
    assert usage.prompt_tokens == len(engine.requests[0].prompt)


def test_logprobs_of_a_chat(client, engine):
    engine.says = "hello 🙂"
    options = {"model": "tiny", "messages": HELLO, "logprobs": True, "top_logprobs": 2}
    content = client.chat.completions.create(**options).choices[0].logprobs.content
    assert b"".join(bytes(token.bytes) for token in content).decode() == engine.says
    assert [token.logprob for token in content] == [-0.5] * len(content)
    assert [len(token.top_logprobs) for token in content] == [2] * len(content)
    streamed = [
        token
        for chunk in client.chat.completions.create(**options, stream=True)
        for choice in chunk.choices
        for token in (choice.logprobs.content if choice.logprobs else [])
    ]
    assert streamed == content


def test_completions(client, engine):
    answer = client.completions.create(
        model="tiny", prompt=["hello", [5, 6, 7]], n=2, logprobs=1, max_tokens=3
    )
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
    tokenizer = engine.model.tokenizer
    prompts = [list(request.prompt) for request in engine.requests]
    assert prompts == [tokenizer.encode("hello")] * 2 + [[5, 6, 7]] * 2
    ids = tokenizer.encode("hello world")[:3]
    for choice in answer.choices:
        assert choice.text == tokenizer.decode(ids)
        assert choice.finish_reason == "length"
        assert "".join(choice.logprobs.tokens) == choice.text
        starts = [len(tokenizer.decode(ids[:i])) for i in range(3)]
        assert choice.logprobs.text_offset == starts
        assert [max(top.values()) for top in choice.logprobs.top_logprobs] == [-0.5] * 3
    assert answer.usage.prompt_tokens == len(prompts[0]) + 3
    client.completions.create(model="tiny", prompt="hello")
    assert engine.requests[-1].max_tokens == 16
    stream = client.completions.create(model="tiny", prompt="hello", stream=True)
    assert "".join(chunk.choices[0].text for chunk in stream) == "hello world"


@pytest.mark.parametrize(
    "says",
    [
        '<tool_call>\n{"name": "weather", "arguments": {"city": "Ulm"}}\n</tool_call>',
        '{"name": "weather", "parameters": {"city": "Ulm"}}',
        '[TOOL_CALLS] [{"name": "weather", "arguments": {"city": "Ulm"}}]',
        '[weather(city="Ulm")]',
        "<tool_call>\n<function=weather>\n<parameter=city>\nUlm\n</parameter>\n</function>",
    ],
)
def test_calls_of_tools(client, engine, says):
    engine.says = says
    history = [
        *HELLO,
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "1",
                    "type": "function",
                    "function": {"name": "weather", "arguments": '{"city": "Bonn"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "1", "content": "sun"},
    ]
    options = {"model": "tiny", "messages": history, "tools": [WEATHER]}
    (choice,) = client.chat.completions.create(**options).choices
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content is None
    (call,) = choice.message.tool_calls
    assert call.function.name == "weather"
    assert json.loads(call.function.arguments) == {"city": "Ulm"}
    prompt = engine.model.tokenizer.decode(engine.requests[0].prompt)
    assert prompt == 'weatheruser:helloassistant:weather({"city": "Bonn"})tool:sun'
    deltas = [
        choice.delta
        for chunk in client.chat.completions.create(**options, stream=True)
        for choice in chunk.choices
    ]
    assert "".join(delta.content or "" for delta in deltas) == ""
    (streamed,) = [call for delta in deltas for call in delta.tool_calls or []]
    assert streamed.function.model_dump() == call.function.model_dump()
    (choice,) = client.chat.completions.create(**options, tool_choice="none").choices
    assert choice.message.content == says


def test_a_text_before_a_call(client, engine):
    call = '<tool_call>{"name": "weather", "arguments": {}}</tool_call>'
    engine.says = f"well: {call}{call}"
    options = {"model": "tiny", "messages": HELLO, "tools": [WEATHER]}
    (choice,) = client.chat.completions.create(**options).choices
    assert choice.message.content == "well: "
    assert len(choice.message.tool_calls) == 2
    (choice,) = client.chat.completions.create(**options, parallel_tool_calls=False).choices
    assert len(choice.message.tool_calls) == 1
    for says in ('{"name": "other", "arguments": {}}', "[1] see <tool_call>{", "{[<tool_call>"):
        engine.says = says
        (choice,) = client.chat.completions.create(**options).choices
        assert choice.message.content == says
        assert choice.finish_reason == "stop"


def test_grammars_arrive(client, engine):
    schema = {"name": "s", "schema": {"type": "object", "properties": {"a": {"type": "integer"}}}}
    for form in ({"type": "json_object"}, {"type": "json_schema", "json_schema": schema}):
        client.chat.completions.create(model="tiny", messages=HELLO, response_format=form, n=2)
        first, second = engine.requests[-2:]
        assert first.grammar is not None
        assert first.grammar is not second.grammar
    options = {"model": "tiny", "messages": HELLO, "tools": [WEATHER]}
    for choice in ("required", {"type": "function", "function": {"name": "weather"}}):
        client.chat.completions.create(**options, tool_choice=choice)
        assert engine.requests[-1].grammar is not None
    client.chat.completions.create(**options)
    assert engine.requests[-1].grammar is None
    with pytest.raises(openai.BadRequestError, match="exclude each other"):
        client.chat.completions.create(
            **options, tool_choice="required", response_format={"type": "json_object"}
        )


def test_failures(client, engine):
    engine.full = True
    with pytest.raises(openai.RateLimitError, match="waits already") as caught:
        client.chat.completions.create(model="tiny", messages=HELLO)
    assert int(caught.value.response.headers["retry-after"]) >= 1
    engine.full, engine.fails = False, "the logits are NaN"
    with pytest.raises(openai.InternalServerError, match="the logits are NaN"):
        client.chat.completions.create(model="tiny", messages=HELLO)
    with pytest.raises(openai.APIError, match="the logits are NaN"):
        list(client.chat.completions.create(model="tiny", messages=HELLO, stream=True))
    with pytest.raises(openai.NotFoundError, match="has no embeddings"):
        client.embeddings.create(model="tiny", input="hello")
    with pytest.raises(openai.NotFoundError, match="has no transcriptions"):
        client.audio.transcriptions.create(model="tiny", file=("a.wav", b"RIFF"))
    with pytest.raises(openai.BadRequestError, match="has room for"):
        client.chat.completions.create(model="tiny", messages=HELLO, max_tokens=512)
    with pytest.raises(openai.BadRequestError, match="longer than the context") as caught:
        client.completions.create(model="tiny", prompt="hello" * 512)
    assert caught.value.code == "context_length_exceeded"


@pytest.mark.parametrize("stream", [False, True])
def test_clients_that_go_away(client, engine, state, stream):
    """What they asked for ends at once."""
    engine.says, engine.pause = "hello " * 90, 0.02
    before = state.counters.disconnected
    if stream:
        answer = client.chat.completions.create(model="tiny", messages=HELLO, n=3, stream=True)
        next(iter(answer))
        answer.close()
    else:
        with pytest.raises(openai.APITimeoutError):
            client.with_options(timeout=0.2).chat.completions.create(
                model="tiny", messages=HELLO, n=3
            )
    wait_until(lambda: engine.cancelled == 3)
    wait_until(lambda: not engine.running and not state.running)
    assert state.counters.disconnected == before + 1


def test_time_is_limited(client, engine, state, monkeypatch):
    engine.pause = 0.5
    object.__setattr__(state.limits, "answer_seconds", 0.1)
    try:
        with pytest.raises(openai.InternalServerError, match=r"more than 0.1 s"):
            client.chat.completions.create(model="tiny", messages=HELLO)
        with pytest.raises(openai.APIError, match=r"more than 0.1 s"):
            list(client.chat.completions.create(model="tiny", messages=HELLO, stream=True))
    finally:
        object.__setattr__(state.limits, "answer_seconds", 600.0)
    assert engine.cancelled == 2


def test_logprobs_are_finite_json():
    from relax_mlir.llm.serving.endpoints.logprobs import finite

    assert finite(-math.inf) == -9999.0
    assert finite(-1.5) == -1.5
