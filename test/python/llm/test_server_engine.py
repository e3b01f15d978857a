"""The server and the batching engine: answers are those of `generate`, and pages come back."""

import json
import re
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection

import numpy as np
import openai
import pytest
from scripted_engine import running, state_of, wait_until
from tiny_models import random_weights, write_gguf

from relax_mlir.llm import LanguageModel, load
from relax_mlir.llm.batching.engine import Engine
from relax_mlir.llm.batching.request import Request
from relax_mlir.tools.relax_llm import main

TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {
            "$defs": {"City": {"enum": ["Ulm", "Bonn"]}},
            "type": "object",
            "properties": {"city": {"$ref": "#/$defs/City"}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}
TEMPLATE = (
    "{% for m in messages %}<|begin|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}"
    "{% if tools %}{{ tools | length }}{% endif %}"
)


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> str:
    file = tmp_path_factory.mktemp("served") / "tiny.gguf"
    return str(write_gguf(file, random_weights(), tokenizer__chat_template=TEMPLATE))


@pytest.fixture(scope="module")
def alone(path) -> LanguageModel:
    return load(path, weights="f32", threads=2)


@pytest.fixture(scope="module")
def engine(path):
    with Engine.load(path, weights="f32", threads=2, pages=40, max_sequences=8) as engine:
        yield engine


@pytest.fixture(scope="module")
def client(engine):
    with running(state_of(engine)) as url:
        with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
            yield client


def prompts(count: int) -> list[str]:
    random = np.random.default_rng(count)
    lengths = random.permutation([1, 2, 7, 15, 16, 17, 28, 33])[:count]
    return ["".join(random.choice(list("helo w12"), length)) for length in lengths]


def test_answers_are_those_of_generate(client, alone):
    """At once, as text and as streams, of completions and chats."""

    def completion(prompt):
        answer = client.completions.create(
            model="tiny", prompt=prompt, max_tokens=20, temperature=0
        )
        return answer.choices[0].text

    def chat(prompt):
        stream = client.chat.completions.create(
            model="tiny",
            messages=[{"role": "user", "content": prompt}],
            max_tokens=20,
            temperature=0.9,
            top_p=0.9,
            presence_penalty=0.5,
            seed=len(prompt),
            stream=True,
        )
        return "".join(chunk.choices[0].delta.content or "" for chunk in stream)

    texts = prompts(8)
    with ThreadPoolExecutor(8) as pool:
        completions, chats = pool.map(completion, texts), pool.map(chat, texts[:4])
        completions, chats = list(completions), list(chats)
    for text, found in zip(texts, completions, strict=True):
        assert found == "".join(alone.generate(text, max_tokens=20, raw=True))
    for text, found in zip(texts[:4], chats, strict=True):
        sampling = {"temperature": 0.9, "top_p": 0.9, "presence_penalty": 0.5, "seed": len(text)}
        assert found == "".join(alone.generate(text, max_tokens=20, **sampling))


def test_logprobs_are_those_of_the_model(client, alone):
    text = prompts(1)[0]
    answer = client.completions.create(
        model="tiny", prompt=text, max_tokens=5, temperature=0, logprobs=3
    )
    ids = alone.encode(text, raw=True)
    alone_answer = alone.generate(text, max_tokens=5, raw=True)
    for _ in alone_answer:
        pass
    logits = alone.logits(ids + alone_answer.tokens)[len(ids) - 1 : -1].astype(np.float64)
    logprobs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    expected = logprobs[np.arange(len(logits)), alone_answer.tokens]
    found = answer.choices[0].logprobs
    np.testing.assert_allclose(found.token_logprobs, expected, atol=1e-4)
    assert [len(top) for top in found.top_logprobs] == [3] * 5
    for top, row in zip(found.top_logprobs, logprobs, strict=True):
        np.testing.assert_allclose(sorted(top.values()), np.sort(row)[-3:], atol=1e-4)


def test_answers_of_a_schema(client, alone):
    # Else a model without knowledge fills the context with spaces.
    spaces = {str(alone.tokenizer.id_of(token)): -100 for token in ("Ġ", "Ċ", "ĉ", "č")}
    schema = {
        "type": "object",
        "properties": {"a": {"type": "boolean"}, "b": {"enum": ["x", "y"]}},
        "required": ["a", "b"],
        "additionalProperties": False,
    }
    answer = client.chat.completions.create(
        model="tiny",
        messages=[{"role": "user", "content": "hello"}],
        response_format={"type": "json_schema", "json_schema": {"name": "s", "schema": schema}},
        temperature=1.5,
        logit_bias=spaces,
        seed=1,
        n=3,
    )
    for choice in answer.choices:
        value = json.loads(choice.message.content)
        assert value.keys() == {"a", "b"}
        assert isinstance(value["a"], bool)
        assert value["b"] in ("x", "y")
    answer = client.chat.completions.create(
        model="tiny",
        messages=[{"role": "user", "content": "hello"}],
        tools=[TOOL],
        tool_choice="required",
        logit_bias=spaces,
        seed=1,
    )
    (choice,) = answer.choices
    assert choice.finish_reason == "tool_calls"
    (call,) = choice.message.tool_calls
    assert call.function.name == "weather"
    assert json.loads(call.function.arguments)["city"] in ("Ulm", "Bonn")


def test_a_cancelled_stream_frees_its_pages(client, engine):
    for _ in range(4):
        stream = client.completions.create(
            model="tiny", prompt=prompts(8), max_tokens=30, n=2, stream=True, temperature=2
        )
        next(iter(stream))
        stream.close()
    wait_until(lambda: engine.metrics().running == engine.metrics().waiting == 0)
    wait_until(lambda: engine.metrics().pages_used == 0)


def test_listeners_hear_all_events(engine):
    expected = list(engine.submit(Request([5, 6, 7], max_tokens=20)))
    for before in (0, 1, 3, len(expected)):
        ticket, heard = engine.submit(Request([5, 6, 7], max_tokens=20)), []
        heard += [next(ticket) for _ in range(before)]
        ticket.listen(heard.append)
        wait_until(lambda heard=heard: len(heard) == len(expected))
        assert heard == expected
    ticket, heard = engine.submit(Request([5, 6, 7], max_tokens=50)), []
    ticket.listen(heard.append)
    ticket.cancel()
    wait_until(lambda: heard and heard[-1] is None)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_engine_that_ends_does_not_work(engine, monkeypatch):
    def broken():
        raise ZeroDivisionError

    other = Engine(engine.model, engine._worker._batch)
    assert other.is_working
    monkeypatch.setattr(other._worker, "_next_step", broken)
    *_, last = other.submit(Request([5, 6, 7], max_tokens=2))
    assert last.finish in ("length", "error")  # the thread waits in the method that it had
    wait_until(lambda: not other.is_working)
    other.close()


@pytest.fixture
def process(path):
    """`relax-llm serve` on a free port, which runs one sequence at a time; and its address."""
    command = [sys.executable, "-m", "relax_mlir.tools.relax_llm", "serve", f"little={path}"]
    options = "--port 0 --weights f32 --threads 2 --max-sequences 1 --drain-timeout 60".split()
    server = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True)
    line = server.stderr.readline()
    match = re.fullmatch(r"relax-llm: serving little at http://(127\.0\.0\.1:\d+)\n", line)
    assert match, line + server.stderr.read()
    try:
        yield server, match[1]
    finally:
        server.kill()
        server.wait()
        server.stderr.close()


def events(response):
    for line in response:
        if line.startswith(b"data: {"):
            yield json.loads(line[6:])


def ask(host, count):
    """A response of a stream of `count` long answers."""
    connection = HTTPConnection(host, timeout=60)
    body = {"model": "little", "prompt": "hello", "max_tokens": 55, "n": count, "stream": True}
    kind = {"Content-Type": "application/json"}
    connection.request("POST", "/v1/completions", json.dumps(body), kind)
    return connection.getresponse()


def test_sigterm_lets_requests_finish(process):
    server, host = process
    response = ask(host, 30)
    received = events(response)
    first = next(received)  # of a slow server, it has a whole answer
    server.send_signal(signal.SIGTERM)
    wait_until(lambda: ask(host, 1).status == 503)
    connection = HTTPConnection(host)
    connection.request("GET", "/health")
    assert connection.getresponse().status == 503
    choices = [choice for event in (first, *received) for choice in event["choices"]]
    assert sum(choice["finish_reason"] is not None for choice in choices) == 30
    assert server.wait(60) == 0
    assert server.stderr.read() == ""


def test_a_second_signal_stops_them(process):
    server, host = process
    response = ask(host, 128)
    received = events(response)
    next(received)
    server.send_signal(signal.SIGINT)
    wait_until(lambda: ask(host, 1).status == 503)
    server.send_signal(signal.SIGTERM)
    *_, last = received
    assert last["error"]["code"] == "shutting_down"
    assert server.wait(20) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--port", "70000"], "port is 70000; expects 0 to 65535"),
        (["--host", "no such host"], "cannot serve at no such host:8000: "),
        (["--port", "0", "--max-tokens", "0"], "--max-tokens is 0; expects more than 0"),
        (["--port", "0", "--api-key", "two words"], "an API key is empty, or has other than"),
        (["--port", "0", "--api-key-file", "/dev/null"], "has no key; expects one on each line"),
        (["--port", "0", "--trusted-proxy", "10.0.0.300"], "--trusted-proxy is '10.0.0.300'"),
        (["--port", "0", "a/x", "b/x.gguf"], "two models have the name 'x'"),
        (["--port", "0", "=x"], "'=x' is no model"),
        (["--port", "0", "no/such/model"], "no/such/model"),
    ],
)
def test_wrong_usage(options, message, capsys, monkeypatch):
    monkeypatch.delenv("RELAX_API_KEY", raising=False)
    assert main(["serve", *options]) in (1, 2)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1, lines
    assert message in lines[0]


def test_a_port_that_is_taken(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["serve", "--port", str(taken.getsockname()[1])]) == 2
    assert "address already in use" in capsys.readouterr().err
