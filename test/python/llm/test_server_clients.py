"""Clients that speak rubbish, stall or go away: others get their answers, and nothing is left."""

import gc
import logging
import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial

import pytest
from raw_client import connection, head, received, request, reset
from scripted_engine import Config, ScriptedEngine, ScriptedModel, running, state_of, wait_until
from test_server_hostile import post
from tiny_models import TEMPLATE as PLAIN
from tiny_models import random_weights, write_gguf

from relax_mlir.llm.batching.engine import Engine
from relax_mlir.llm.serving import connections
from relax_mlir.llm.serving.engines import Served
from relax_mlir.llm.serving.limits import Access, Limits, State

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
SHORT = {"model": "tiny", "prompt": "hello", "max_tokens": 5, "temperature": 0}
LONG = {"model": "tiny", "prompt": "hello w", "max_tokens": 50, "n": 8, "temperature": 2}
TEMPLATE = PLAIN + "{% if tools %}{{ tools | length }}{% endif %}"
OBJECT = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
LONG_CHAT = {"model": "tiny", "messages": [{"role": "user", "content": "h"}], "n": 8}
TOOL = {"type": "function", "function": {"name": "f", "parameters": OBJECT}}
FORM = {"type": "json_schema", "json_schema": {"name": "s", "schema": OBJECT}}


class Rig:
    """A server of a real engine, and what it says when nobody does it harm."""

    def __init__(self, url: str, state: State, engine: Engine) -> None:
        self.url, self.state, self.engine = url, state, engine
        self.expected = self.answer()
        self.sockets = self.open_sockets()

    def answer(self) -> str:
        status, _, body = post(self.url, COMPLETIONS, SHORT)
        assert status == 200, body
        return body.partition(b'"choices"')[2]

    def is_idle(self) -> bool:
        metrics = self.engine.metrics()
        return metrics.pages_used == metrics.running == metrics.waiting == 0

    def open_sockets(self) -> int:
        wait_until(lambda: not self.state.running)
        links = []
        for file in os.listdir("/proc/self/fd"):
            with suppress(OSError):  # the one of the list
                links.append(os.readlink(f"/proc/self/fd/{file}"))
        return sum(link.startswith("socket:") for link in links)

    def check(self) -> None:
        """Others are answered; pages, requests and connections of those that went are free."""
        assert self.answer() == self.expected
        wait_until(lambda: self.open_sockets() <= self.sockets)
        wait_until(self.is_idle)


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    file = tmp_path_factory.mktemp("model") / "tiny.gguf"
    path = write_gguf(file, random_weights(), tokenizer__chat_template=TEMPLATE)
    with Engine.load(str(path), weights="f32", threads=2, pages=40, max_sequences=8) as engine:
        yield engine


@pytest.fixture(scope="module")
def rig(engine):
    state = state_of(engine, limits=Limits(head_seconds=5))
    with running(state) as url:
        yield Rig(url, state, engine)


@pytest.fixture(autouse=True)
def quiet(capfd, caplog):
    """Nobody's rubbish is a bug of the server, nor of the event loop."""
    yield
    assert capfd.readouterr().err == ""
    records = caplog.get_records("call")
    assert [each.getMessage() for each in records if each.levelno >= logging.ERROR] == []


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\r\n" * 10, None),
        (b"GET", None),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\n", None),
        (b"\0" * 1000, 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500), 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 403),
        (b"GET /health\r\n\r\n", 400),
        (b"GET /health HTTP/9.9\r\nHost: localhost\r\n\r\n", 200),
        (b"GET /health HTTP/1.1\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\nX y: a\r\n\r\n", 400),
        (b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET /%ff%00%0a HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"GET /v1/models/%00/../%ff HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"X" * 40_000, 400),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 40_000, 400),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"X: a\r\n" * 9000, 400),
        (head(CHAT, "Content-Length: -1"), 400),
        (head(CHAT, "Content-Length: 1, 2"), 400),
        (head(CHAT, "Content-Length: 1", "Content-Length: 2"), 400),
        (head(CHAT, "Content-Length: " + "9" * 30), 400),
        (head(CHAT, "Transfer-Encoding: gzip"), 400),
        (head(CHAT, "Transfer-Encoding: chunked") + b"zz\r\n", 400),
        (head(CHAT, "Transfer-Encoding: chunked") + b"f" * 30 + b"\r\n", 400),
        (head(CHAT, "Transfer-Encoding: chunked") + b"5;" + b"a" * 40_000, 400),
        (head(CHAT, "Transfer-Encoding: chunked") + b"5\r\nabcdefgh\r\n0\r\n\r\n", 400),
        (head(CHAT, "Content-Length: 50") + b"{", None),
        (head(CHAT, "Expect: 100-continue", "Content-Length: 5"), 100),
        (head(CHAT, "Content-Length: 2", "Connection: close") + b"{}more", 400),
        (request(CHAT, {}) * 3, 400),
    ],
)
def test_rubbish(rig, data, status):
    """By a client that ends its side, then by one that goes at once."""
    with connection(rig.url) as client:
        with suppress(ConnectionError):
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
        answer = received(client)
    assert status is None or answer[9:12] in (b"", b"%d" % status), answer
    assert answer[:9] in (b"", b"HTTP/1.1 ")
    with connection(rig.url) as client:
        client.sendall(data)
        reset(client)
    rig.check()


def test_rubbish_after_an_answer_has_begun(rig):
    """It is the last one of its connection; one that was to be the last is whole."""
    refused = head(CHAT, "Transfer-Encoding: chunked", "Origin: http://evil.example")
    with connection(rig.url) as client:
        client.sendall(refused)
        begin = client.recv(1000)
        client.sendall(b"zz\r\n")
        answer = begin + received(client)
        assert answer.startswith(b"HTTP/1.1 403")
        assert answer.endswith(b"}}")
        assert answer.count(b"HTTP/1.1 ") == 1
    long = {**LONG, "n": 128, "stream": True}  # it does not end before there is rubbish
    last = request(COMPLETIONS, long).replace(b"HTTP/1.1", b"HTTP/1.0", 1)
    with connection(rig.url) as client:
        client.sendall(last)
        begin = client.recv(1000)
        client.sendall(b"\r\n")
        assert (begin + received(client)).endswith(b"data: [DONE]\n\n")
    rig.check()


MOMENTS = {
    "at once": 0,
    "before the first token": 1,
    "after the first event": 2,
    "midway": 3,
}


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize(
    ("path", "body"),
    [
        (COMPLETIONS, LONG),
        (COMPLETIONS, {**LONG, "stream": True}),
        (CHAT, {**LONG_CHAT, "stream": True, "response_format": FORM}),
        (CHAT, {**LONG_CHAT, "stream": True, "tools": [TOOL], "tool_choice": "required"}),
        (CHAT, {**LONG_CHAT, "tools": [TOOL], "logprobs": True, "top_logprobs": 20}),
    ],
)
def test_clients_that_go_away(rig, path, body, moment):
    """Politely, with an error, and after the beginning of another request."""
    for end, more in ((socket.socket.close, b""), (reset, b""), (reset, b"GET / HT")):
        begun = rig.engine.metrics().requests
        with connection(rig.url) as client:
            client.sendall(request(path, body) + more)
            if MOMENTS[moment] >= 1:
                wait_until(lambda begun=begun: rig.engine.metrics().requests > begun)
            if MOMENTS[moment] >= 2 and body.get("stream"):
                client.recv(MOMENTS[moment] ** 8)
            end(client)
    rig.check()


def test_a_client_is_seen_to_go_though_it_sent_more(rig):
    """Its next request waits, but the end of the connection does not."""
    with connection(rig.url) as client:
        client.sendall(request(COMPLETIONS, {**LONG, "n": 128}))
        wait_until(lambda: rig.engine.metrics().running)
        for part in (b"GET /health HTTP/1.1\r\n", b"Host: localhost\r\n"):
            client.sendall(part)
            time.sleep(0.05)  # apart from the next one, and from the end
        failures, begin = rig.state.counters.disconnected, time.monotonic()
    wait_until(lambda: rig.state.counters.disconnected == failures + 1)
    assert time.monotonic() - begin < 5
    rig.check()


def test_requests_ahead_of_answers_are_bounded(rig):
    with connection(rig.url) as client, suppress(ConnectionError):
        client.sendall(request(COMPLETIONS, {**LONG, "n": 128}))
        for _ in range(100):
            client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1000)
            time.sleep(0.01)
        pytest.fail("it takes all of them")
    rig.check()


def test_memory_does_not_grow(rig):
    def size() -> int:
        gc.collect()
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def attack(index: int) -> None:
        with connection(rig.url) as client:
            body = {**LONG, "stream": bool(index % 2), "prompt": "hello" * 8 + str(index)}
            client.sendall(request(COMPLETIONS, body)[: None if index % 3 else 200])
            client.settimeout(0.02)
            with suppress(TimeoutError):
                client.recv(100)
            (reset if index % 5 else socket.socket.close)(client)

    sizes = []
    with ThreadPoolExecutor(8) as pool:
        for _ in range(4):
            list(pool.map(attack, range(30)))
            rig.check()
            sizes.append(size())
    assert sizes[-1] - sizes[1] < 8 << 20, sizes


def trickle(client: socket.socket, *parts: bytes) -> None:
    """Sends parts, the last one again and again, for up to 10 seconds."""
    for index in range(500):
        client.sendall(parts[min(index, len(parts) - 1)])
        time.sleep(0.02)


def test_heads_that_do_not_end(engine, monkeypatch):
    """The first one of a connection, and a later one, however steadily bytes come."""
    monkeypatch.setattr(connections, "IDLE_SECONDS", 0.3)
    with running(state_of(engine, limits=Limits(head_seconds=0.3))) as url:
        for first in (b"", b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"):
            with connection(url) as client:
                client.sendall(first)
                assert not first or client.recv(1000).startswith(b"HTTP/1.1 200")
                begin = time.monotonic()
                with pytest.raises(ConnectionError):
                    trickle(client, b"GET /health HTTP/1.1\r\nX: ", b"a")
                assert time.monotonic() - begin < 5


def test_bodies_that_do_not_end_after_an_answer(engine, monkeypatch):
    """A client that is told that its body is too large, and goes on to send it."""
    monkeypatch.setattr(connections, "IDLE_SECONDS", 0.3)
    limits = Limits(head_seconds=0.3, body_bytes=1000)
    with running(state_of(engine, limits=limits)) as url, connection(url) as client:
        client.sendall(head(CHAT, f"Content-Length: {1 << 40}"))
        with pytest.raises(ConnectionError):
            trickle(client, b" " * 10_000)


def test_connections_are_bounded(engine):
    """One address has half of them; when they close, it has others."""
    with running(state_of(engine, limits=Limits(connections=20))) as url:
        for _ in range(2):
            clients = [socket.create_connection(url[7:].split(":"), 10) for _ in range(15)]
            for client in clients[10:]:
                assert received(client).startswith(b"HTTP/1.1 503")
            clients[0].sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert clients[0].recv(1000).startswith(b"HTTP/1.1 200")
            for client in clients:
                client.close()
            wait_until(lambda: post(url, COMPLETIONS, SHORT)[0] == 200)


@pytest.mark.parametrize("proxy", ["127.0.0.1/32", "127.0.0.0/8", "*"])
def test_a_proxy_has_more_than_half_of_the_connections(engine, proxy):
    """Whether it is an address or one of a network."""
    state = state_of(engine, limits=Limits(connections=20))
    with running(state, [proxy]) as url, ExitStack() as clients:
        for _ in range(15):
            client = clients.enter_context(connection(url))
            client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert client.recv(1000).startswith(b"HTTP/1.1 200")


def test_a_client_has_half_of_all_requests(engine):
    access = Access(keys=["one", "two"])
    with running(state_of(engine, limits=Limits(requests=4), access=access)) as url:
        key = "Authorization: Bearer one"
        with connection(url) as first, connection(url) as second:
            for client in (first, second):
                client.sendall(head(CHAT, key, "Content-Length: 10") + b"{")
            own = partial(post, url, COMPLETIONS, SHORT, Authorization="Bearer one")
            wait_until(lambda: own()[0] == 429)
            assert post(url, COMPLETIONS, SHORT, Authorization="Bearer two")[0] == 200
        wait_until(lambda: own()[0] == 200)


def test_bodies_are_bounded(engine):
    """Those of a client that are being read, and those of all."""
    access = Access(keys=["one", "two", "three"])
    limits = Limits(all_bytes=8000, body_bytes=5000)
    with running(state_of(engine, limits=limits, access=access)) as url, ExitStack() as clients:
        for key in ("one", "two"):
            client = clients.enter_context(connection(url))
            client.sendall(head(CHAT, f"Authorization: Bearer {key}", "Content-Length: 4000"))
            client.sendall(b" " * 3900)
        small = partial(post, url, COMPLETIONS, SHORT)
        large = partial(post, url, COMPLETIONS, {**SHORT, "prompt": "h" * 400})
        wait_until(lambda: large(Authorization="Bearer one")[0] == 429)
        wait_until(lambda: large(Authorization="Bearer three")[0] == 429)
        assert small(Authorization="Bearer three")[0] == 200
        clients.close()
        wait_until(lambda: large(Authorization="Bearer three")[0] == 400)  # beyond the context


def test_large_bodies_are_refused_one_after_another(rig):
    """Each takes much memory once it is parsed."""
    body = b'{"model": "tiny", "prompt": [' + b"[]," * 300_000 + b"[]]}"
    with ThreadPoolExecutor(12) as pool:
        answers = [pool.submit(post, rig.url, COMPLETIONS, body) for _ in range(12)]
        assert rig.answer() == rig.expected
        assert {answer.result()[0] for answer in answers} == {400}
    rig.check()


class SlowSandbox:
    """Takes its time for each grammar: until it may go on."""

    def __init__(self) -> None:
        self.goes_on = threading.Event()

    def check(self, kind: str, text: str) -> None:
        assert self.goes_on.wait(60)


def test_grammars_delay_nobody_else(engine):
    sandbox = SlowSandbox()
    state = State({"tiny": Served("tiny", engine, sandbox=sandbox)})
    with running(state) as url, ThreadPoolExecutor(20) as pool:
        body = {**SHORT, "grammar": 'root ::= "h"'}
        bombs = [pool.submit(post, url, COMPLETIONS, body) for _ in range(20)]
        wait_until(lambda: state.running == 16)
        for _ in range(5):
            assert post(url, COMPLETIONS, SHORT)[0] == 200
        sandbox.goes_on.set()
        statuses = [bomb.result()[0] for bomb in bombs]
    assert statuses.count(429) == 4  # 16 of a client may wait
    assert statuses.count(200) == 16


def test_large_bodies_of_a_client_delay_nobody_else(engine):
    """Those of its requests that wait for grammars, and others of its own behind them."""
    sandbox = SlowSandbox()
    access = Access(keys=["one", "two"])
    state = State({"tiny": Served("tiny", engine, sandbox=sandbox)}, access=access)
    with running(state) as url, ThreadPoolExecutor(12) as pool:
        large = {**SHORT, "user": "a" * 100_000}
        bomb = {**large, "grammar": 'root ::= "h"'}
        own = partial(post, url, COMPLETIONS, Authorization="Bearer one")
        bombs = [pool.submit(own, bomb) for _ in range(12)]
        wait_until(lambda: state.running == 12)
        assert post(url, COMPLETIONS, large, Authorization="Bearer two")[0] == 200
        sandbox.goes_on.set()
        assert {each.result()[0] for each in bombs} == {200}


class SlowSight(ScriptedModel):
    """Takes its time for prompts on images: until it may go on."""

    def __init__(self, folder) -> None:
        super().__init__(folder)
        self.config = Config(image_id=2)
        self.goes_on = threading.Event()

    def encode_messages(self, messages, tools=None):
        return [3] * len(messages)

    def placed(self, ids, images):
        assert not images or self.goes_on.wait(60)
        return list(ids), []


def test_images_delay_nobody_else(tmp_path):
    model = SlowSight(tmp_path)
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aaaa"}}
    body = {"model": "tiny", "messages": [{"role": "user", "content": "h"}], "max_tokens": 3}
    seeing = {**body, "messages": [*body["messages"], {"role": "user", "content": [image]}]}
    state = state_of(ScriptedEngine(model))
    with running(state) as url, ThreadPoolExecutor(9) as pool:
        bombs = [pool.submit(post, url, CHAT, seeing) for _ in range(8)]
        bombs.append(pool.submit(post, url, CHAT, {**seeing, "response_format": FORM}))
        wait_until(lambda: state.running == 9)
        for _ in range(5):
            assert post(url, CHAT, body)[0] == 200
        assert post(url, CHAT, {**body, "response_format": FORM})[0] == 200
        model.goes_on.set()
        assert {bomb.result()[0] for bomb in bombs} == {200}


def test_formats_without_a_grammar_wait_for_none(engine):
    sandbox = SlowSandbox()
    state = State({"tiny": Served("tiny", engine, sandbox=sandbox)})
    with running(state) as url, ThreadPoolExecutor(2) as pool:
        body = {"model": "tiny", "messages": LONG_CHAT["messages"], "max_tokens": 3}
        bombs = [pool.submit(post, url, CHAT, {**body, "response_format": FORM}) for _ in "ab"]
        wait_until(lambda: state.running == 2)
        assert post(url, CHAT, {**body, "response_format": {"type": "text"}})[0] == 200
        sandbox.goes_on.set()
        assert {bomb.result()[0] for bomb in bombs} == {200}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
        {"$ref": "#/$defs/none"},
        {"$ref": "http://127.0.0.1/x"},
        {"enum": []},
        {"enum": [f"value {i}" for i in range(50_000)]},
        {"type": "string", "pattern": "^(a+)+(a|aa)*b{1000}c$"},
        {"type": "string", "pattern": "(.*a.{20}){5}"},
        {"type": "string", "pattern": "((((a{1,50}){1,50}){1,50}){1,50})"},
        {"type": "string", "pattern": "(?=a)\\1["},
        {"type": "string", "minLength": 10**9},
        {"type": "array", "items": {"type": "integer"}, "minItems": 10**9},
        {"type": "integer", "multipleOf": 999_999_937},
        {"type": "number", "minimum": 1e-300, "maximum": 1e300},
        {"type": "integer", "minimum": 5, "maximum": 4},
        {"properties": {str(i): {"type": "string"} for i in range(300)}, "required": ["x"]},
        {"type": ["nothing", 5], "allOf": "x", "properties": 7},
    ],
)
def test_schemas_that_ask_for_much(rig, schema):
    """Each is refused, or limits the answer; other requests go on meanwhile."""
    form = {"type": "json_schema", "json_schema": {"name": "s", "schema": schema}}
    body = {**LONG_CHAT, "max_tokens": 30, "n": 3, "response_format": form}
    with ThreadPoolExecutor(1) as pool:
        bomb = pool.submit(post, rig.url, CHAT, body)
        rig.answer()
        status, _, answer = bomb.result()
    assert status in (200, 400) or b"the grammar's parser failed" in answer, answer
    rig.check()
