"""Whatever is sent to the server gets OpenAI's error object or an answer, and it lives on."""

import json
import socket
import time
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_engine import ScriptedEngine, ScriptedModel, running, state_of, wait_until

from relax_mlir.llm.serving.endpoints.chat import FIELDS as CHAT_FIELDS
from relax_mlir.llm.serving.endpoints.completions import FIELDS as COMPLETION_FIELDS
from relax_mlir.llm.serving.limits import Access, Limits
from relax_mlir.llm.tokenization.chat import ChatTemplate

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
HELLO = {"model": "tiny", "messages": [{"role": "user", "content": "hello"}]}
KINDS = {
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
    500: "server_error",
    503: "server_error",
}


class PlainChat:
    """Renders messages without a process for each."""

    takes_tools = True

    def render(self, messages, *, tools=None):
        return "".join(f"{message['role']}:{message['content']}" for message in messages)


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    engine = ScriptedEngine(ScriptedModel(tmp_path_factory.mktemp("model")))
    engine.model.chat = PlainChat()
    return engine


@pytest.fixture(scope="module")
def state(engine):
    return state_of(engine, limits=Limits(body_bytes=20_000))


@pytest.fixture(scope="module")
def url(state):
    with running(state) as url:
        yield url


def send(url, method, path, body=None, **headers):
    """Status, headers and body of a response."""
    connection = HTTPConnection(urlsplit(url).netloc, timeout=20)
    try:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, names)
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def post(url, path, body, **headers):
    headers.setdefault("Content_Type", "application/json")
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return send(url, "POST", path, data, **headers)


def error_of(status, body):
    """The error object of a response, after a look at its form."""
    error = json.loads(body)["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    assert error["type"] == KINDS.get(status, "invalid_request_error")
    assert error["message"].isprintable()
    return error


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"", 400, "the body is not JSON"),
        (b"{", 400, "the body is not JSON"),
        (b"\xff\xfe", 400, "the body is not JSON"),
        (b"[]", 400, "the body is an array of 0; expects an object"),
        (b'{"model": NaN}', 400, "NaN is no JSON"),
        (b'{"model": 1e999}', 400, "beyond float64"),
        (b'{"n": ' + b"9" * 5000 + b"}", 400, "an integer has 5000 digits"),
        (b'{"a":' * 300 + b"1" + b"}" * 300, 400, "nested deeper than 64"),
        (b"[" * 9000, 400, "nested deeper than 64"),
        (b'{"model": "\\ud800"}', 400, "half of a surrogate pair"),
        (b" " * 20_001, 413, "larger than 20000 bytes"),
        ({}, 400, "'model' is missing"),
        ({**HELLO, "model": 5}, 400, "'model' is 5; expects a string"),
        ({**HELLO, "model": "x\n" * 99}, 404, "there is no model 'x?x?"),
        ({**HELLO, "max_token": 5}, 400, "unknown field 'max_token'"),
        ({**HELLO, "max_tokens": 0}, 400, "'max_tokens' is 0; expects an integer"),
        ({**HELLO, "max_tokens": 10**30}, 400, "expects an integer from 1"),
        ({**HELLO, "max_tokens": True}, 400, "'max_tokens' is true"),
        ({**HELLO, "n": 129}, 400, "'n' is 129; expects an integer from 1 to 128"),
        ({**HELLO, "temperature": "1"}, 400, "'temperature' is \"1\"; expects a value from 0 to 2"),
        ({**HELLO, "temperature": -0.1}, 400, "'temperature' is -0.1"),
        ({**HELLO, "seed": 1 << 63}, 400, "'seed' is"),
        ({**HELLO, "logit_bias": {"x": 1}}, 400, "'logit_bias' is an object; expects ids"),
        ({**HELLO, "logit_bias": {"300": 1}}, 400, "ids of tokens from 0 to 299"),
        ({**HELLO, "logit_bias": {"²": 1}}, 400, "ids of tokens from 0 to 299"),
        ({**HELLO, "stop": [""]}, 400, "'stop' is an array of 1; expects strings of 1 to 1000"),
        ({**HELLO, "stop": "a" * 1001}, 400, "expects strings of 1 to 1000"),
        ({**HELLO, "stop": ["a"] * 17}, 400, "'stop' has 17 strings; expects 16 at most"),
        ({**HELLO, "top_logprobs": 2}, 400, "'top_logprobs' needs 'logprobs'"),
        ({**HELLO, "stream_options": {}}, 400, "'stream_options' needs 'stream'"),
        ({**HELLO, "messages": []}, 400, "expects an array of one message or more"),
        ({**HELLO, "messages": [5]}, 400, "messages[0] is 5; expects an object"),
        ({**HELLO, "messages": [{"role": "x"}]}, 400, "'messages[0].role' is \"x\""),
        ({**HELLO, "messages": [{"role": "user"}]}, 400, "'messages[0].content' is missing"),
        (
            {
                **HELLO,
                "messages": [{"role": "user", "content": [{"type": "image_url"}]}],
            },
            400,
            "'messages[0].content[0].type' is \"image_url\"; expects text",
        ),
        ({**HELLO, "tools": [{"type": "function"}]}, 400, "'tools[0].function' is missing"),
        ({**HELLO, "tool_choice": "required"}, 400, "there are no tools"),
        ({**HELLO, "response_format": {"type": "xml"}}, 400, "'response_format.type' is \"xml\""),
        (
            {
                **HELLO,
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"schema": {"type": "nothing"}},
                },
            },
            400,
            "the JSON schema is wrong",
        ),
        ({**HELLO, "grammar": "root ::= ("}, 400, "the grammar is wrong"),
    ],
)
def test_wrong_chats(url, body, status, message):
    found, _, answer = post(url, CHAT, body)
    assert found == status
    assert message in error_of(status, answer)["message"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prompt": None}, "'prompt' is missing"),
        ({"prompt": ""}, "'prompt' has no tokens"),
        ({"prompt": [300]}, "no token from 0 to 299"),
        ({"prompt": [True]}, "no token from 0 to 299"),
        ({"prompt": [[1], {}]}, "no token from 0 to 299"),
        ({"prompt": ["a"] * 129}, "129 texts; expects 128"),
        ({"prompt": ["a"] * 65, "n": 2}, "over 128 answers"),
        ({"echo": True}, "'echo' is true; expects nothing"),
        ({"best_of": 2}, "'best_of' is 2; expects an integer from 1 to 1"),
        ({"max_tokens": 511}, "has room for 509 tokens"),
    ],
)
def test_wrong_completions(url, changes, message):
    status, _, answer = post(url, COMPLETIONS, {"model": "tiny", "prompt": "a b", **changes})
    assert status == 400
    assert message in error_of(status, answer)["message"]


def test_other_errors(url, engine):
    for path, method, status in (
        ("/nothing", "GET", 404),
        (CHAT, "GET", 405),
        ("/v1/models", "DELETE", 405),
    ):
        found, _, answer = send(url, method, path)
        assert found == status
        error_of(status, answer)
    status, _, answer = post(url, CHAT, HELLO, Content_Type="text/plain")
    assert status == 415
    assert "expects application/json" in error_of(status, answer)["message"]
    status, _, answer = post(url, "/v1/audio/transcriptions", b"--x", Content_Type="multipart/form")
    assert (status, error_of(status, answer)["code"]) == (415, None)
    for form in (b"--x\r\n", b"--x\r\nContent-Disposition: form-data\r\n\r\n\r\n--x--\r\n", b""):
        kind = "multipart/form-data; boundary=x"
        status, _, answer = post(url, "/v1/audio/transcriptions", form, Content_Type=kind)
        assert status in (400, 404), answer
        error_of(status, answer)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 600)
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | st.sampled_from(["tiny", "auto", "required", "json_object", "user", "function", "text"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(max_size=3)
            | st.sampled_from(
                ["role", "content", "type", "function", "name", "5", "schema", "text"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@settings(max_examples=150)
@given(
    st.sampled_from([CHAT, COMPLETIONS, "/v1/embeddings"]),
    st.dictionaries(st.sampled_from([*CHAT_FIELDS, *COMPLETION_FIELDS, "x"]), VALUES, max_size=4),
    st.booleans(),
)
def test_any_fields(url, engine, path, changes, keep_model):
    base = HELLO if path == CHAT else {"model": "tiny", "prompt": "hello", "max_tokens": 4}
    body = {**base, **changes, **({"model": "tiny"} if keep_model else {})}
    status, headers, answer = post(url, path, body)
    assert status in (200, 400, 404, 413), (body, answer)
    if status != 200:
        error_of(status, answer)
    elif headers["content-type"].startswith("text/event-stream"):
        assert answer.endswith(b"data: [DONE]\n\n")
        assert all(json.loads(line[6:])["choices"] for line in answer.split(b"\n\n")[:-3])
    else:
        assert json.loads(answer)["choices"]


@settings(max_examples=100)
@given(st.binary(max_size=40) | st.text(max_size=20).map(str.encode))
def test_any_bytes(url, body):
    status, _, answer = post(url, CHAT, body)
    assert status == 400
    error_of(status, answer)


@pytest.mark.parametrize("template", ["{{ messages.__class__.__mro__ }}", "{{ 'x' * 9999999999 }}"])
def test_templates_that_leave_the_sandbox(url, engine, template):
    engine.model.chat = ChatTemplate(template)
    try:
        status, _, answer = post(url, CHAT, HELLO)
    finally:
        engine.model.chat = PlainChat()
    assert status == 400
    assert "the chat template" in error_of(status, answer)["message"]


def test_bugs_end_one_request_only(url, engine, monkeypatch, capfd):
    def broken(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(engine, "submit", broken)
    status, _, answer = post(url, CHAT, HELLO)
    assert (status, error_of(status, answer)["message"]) == (500, "internal error")
    monkeypatch.undo()
    assert post(url, CHAT, HELLO)[0] == 200
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_bodies_that_do_not_come(url, state, capfd):
    """A client that promises a body and goes away, and one that only waits."""
    head = (
        f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Content-Length: 1000\r\n\r\n{"
    ).encode()
    host, port = urlsplit(url).netloc.split(":")
    before = state.counters.disconnected
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(head)
    wait_until(lambda: state.counters.disconnected == before + 1)
    object.__setattr__(state.limits, "body_seconds", 0.1)
    try:
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(head)
            connection.settimeout(10)
            assert connection.recv(100).startswith(b"HTTP/1.1 408")
    finally:
        object.__setattr__(state.limits, "body_seconds", 60.0)
    assert capfd.readouterr().err == ""


def test_a_client_that_reads_nothing(url, state, engine, monkeypatch, caplog):
    """It takes neither memory nor a slot without end."""
    monkeypatch.setattr(engine, "says", "hello w" * 200)
    body = {"model": "tiny", "prompt": "a", "max_tokens": 400, "n": 8, "logprobs": 5}
    text = json.dumps({**body, "stream": True}).encode()
    head = (
        f"POST {COMPLETIONS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(text)}\r\n\r\n"
    ).encode()
    object.__setattr__(state.limits, "answer_seconds", 1.5)
    try:
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            host, port = urlsplit(url).netloc.split(":")
            connection.connect((host, int(port)))
            connection.sendall(head + text)
            begin = time.monotonic()
            wait_until(lambda: state.running == 1)
            wait_until(lambda: state.running == 0)
            wait_until(lambda: not engine.running)
            assert time.monotonic() - begin > 1.4  # its buffers were full
            assert not caplog.records
    finally:
        object.__setattr__(state.limits, "answer_seconds", 600.0)


def test_hosts_and_origins(url, state):
    host = urlsplit(url).netloc
    assert send(url, "GET", "/health", Host="localhost:1")[0] == 200
    status, _, answer = send(url, "GET", "/health", Host="evil.example")
    assert (status, error_of(status, answer)["code"]) == (403, "wrong_host")
    assert post(url, CHAT, HELLO, Origin=f"http://{host}")[0] == 200
    for origin in ("https://evil.example", "null", "http://["):
        status, headers, answer = post(url, CHAT, HELLO, Origin=origin)
        assert (status, error_of(status, answer)["code"]) == (403, "wrong_origin")
        assert "access-control-allow-origin" not in headers


def test_keys_and_origins_that_are_allowed(engine):
    access = Access(keys=["first", "second"], origins=["https://chat.example"])
    with running(state_of(engine, access=access)) as url:
        for headers in ({}, {"Authorization": "Bearer no"}, {"Authorization": "Basic first"}):
            status, found, answer = post(url, CHAT, HELLO, **headers)
            assert (status, error_of(status, answer)["code"]) == (401, "invalid_api_key")
            assert found["www-authenticate"] == "Bearer"
        assert send(url, "GET", "/v1/models", Authorization="Bearer \xff")[0] == 401
        assert send(url, "GET", "/metrics")[0] == 401
        assert send(url, "GET", "/health")[0] == send(url, "GET", "/")[0] == 200
        clients = set()
        for key in ("first", "second"):
            origin, authorization = "https://chat.example", f"Bearer {key}"
            status, found, _ = post(url, CHAT, HELLO, Origin=origin, Authorization=authorization)
            assert (status, found["access-control-allow-origin"]) == (200, origin)
            clients.add(engine.requests[-1].client)
        assert len(clients) == 2
        assert not {"first", "second"} & clients
        status, found, _ = send(
            url,
            "OPTIONS",
            CHAT,
            Origin="https://chat.example",
            Access_Control_Request_Method="POST",
            Access_Control_Request_Headers="authorization",
        )
        assert status == 200
        assert found["access-control-allow-headers"] == "authorization"


def test_many_requests_at_once(engine):
    with running(state_of(engine, limits=Limits(requests=0))) as url:
        status, headers, answer = post(url, CHAT, HELLO)
        assert (status, error_of(status, answer)["code"]) == (429, "busy")
        assert int(headers["retry-after"]) >= 1
        assert send(url, "GET", "/health")[0] == 200


def test_health_of_an_engine_that_has_ended(url, engine):
    assert send(url, "GET", "/health")[0] == 200
    engine.is_working = False
    try:
        status, _, answer = send(url, "GET", "/health")
    finally:
        engine.is_working = True
    assert (status, json.loads(answer)) == (503, {"status": "failed"})


def test_metrics(url, engine):
    post(url, CHAT, HELLO)
    status, headers, body = send(url, "GET", "/metrics")
    assert status == 200
    assert headers["content-type"].startswith("text/plain; version=0.0.4")
    values = dict(line.rsplit(" ", 1) for line in body.decode().splitlines() if line[0] != "#")
    assert int(values['relax_responses_total{path="/v1/chat/completions",status="200"}']) > 0
    assert float(values["relax_requests_running"]) == 0
    assert int(values['relax_engine_submitted{model="tiny"}']) == len(engine.requests)
    count = int(values["relax_first_token_seconds_count"])
    assert int(values['relax_first_token_seconds_bucket{le="+Inf"}']) == count > 0


def test_nothing_is_left(engine, state):
    """After all of the tests above."""
    assert not engine.running
    assert state.running == 0
