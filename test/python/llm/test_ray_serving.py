"""The application of Ray Serve: answers of `generate`, also after a replica was killed."""

import importlib
import json
import os
import re
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path

import pytest
from tiny_models import random_weights, write_gguf

ray = pytest.importorskip("ray")
serve = pytest.importorskip("ray.serve")
yaml = pytest.importorskip("yaml")
openai = pytest.importorskip("openai")

from pydantic import ValidationError  # noqa: E402
from ray_processes import processes_of  # noqa: E402
from scripted_engine import wait_until  # noqa: E402

from relax_mlir.errors import UsageError  # noqa: E402
from relax_mlir.llm import load  # noqa: E402
from relax_mlir.llm.ray import Options, app  # noqa: E402

PROMPTS = ["hello", "h", "he ll 1 2 w", "w" * 17, "hello hello 12", "1"]


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> str:
    return str(write_gguf(tmp_path_factory.mktemp("model") / "tiny.gguf", random_weights()))


@pytest.fixture(scope="module")
def port(path):
    """Two replicas of a tiny model behind a proxy on this port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        serve.start(http_options={"port": port})
        options = Options(
            model=f"tiny={path}", num_replicas=2, threads=1, weights="f32", max_ongoing_requests=4
        )
        serve.run(app(options))
        yield port
        serve.shutdown()
    finally:
        ray.shutdown()


@pytest.fixture(scope="module")
def client(port):
    with openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none") as client:
        yield client


@pytest.fixture(scope="module")
def expected(path) -> dict[str, str]:
    """What `generate` says after each prompt."""
    alone = load(path, weights="f32", threads=1)
    return {text: "".join(alone.generate(text, max_tokens=20, raw=True)) for text in PROMPTS}


def complete(client, prompt: str, stream: bool = False) -> str:
    answer = client.completions.create(
        model="tiny", prompt=prompt, max_tokens=20, temperature=0, stream=stream
    )
    parts = answer if stream else [answer]
    return "".join(choice.text for part in parts for choice in part.choices)


def replicas() -> list[int]:
    return processes_of(b"ray::ServeReplica:default:relax", os.getpid())


def metrics(port: int) -> dict[str, float]:
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", "/metrics")
    lines = connection.getresponse().read().decode().splitlines()
    connection.close()
    values = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in values}


def test_answers_are_those_of_generate(client, expected):
    """At once, as texts and as streams."""
    with ThreadPoolExecutor(8) as pool:
        whole = pool.map(lambda text: complete(client, text), PROMPTS)
        streamed = pool.map(lambda text: complete(client, text, stream=True), PROMPTS)
        assert dict(zip(PROMPTS, whole, strict=True)) == expected
        assert dict(zip(PROMPTS, streamed, strict=True)) == expected
    assert [model.id for model in client.models.list()] == ["tiny"]


def test_more_requests_wait(client):
    """Also those of one client: none is refused."""
    once = client.with_options(max_retries=0).completions

    def complete_slowly(_: int) -> str:
        answer = once.create(model="tiny", prompt="h", max_tokens=50, n=32, temperature=1.5)
        return answer.choices[-1].finish_reason

    with ThreadPoolExecutor(16) as pool:
        assert set(pool.map(complete_slowly, range(16))) <= {"length", "stop"}


def test_pieces_of_a_stream_come_as_they_are_made(client):
    """A stream is read while it is written: its first piece comes before most of the time."""
    begin, times = time.monotonic(), []
    for _ in client.completions.create(
        model="tiny", prompt="hello", max_tokens=55, n=32, temperature=1.5, stream=True
    ):
        times.append(time.monotonic() - begin)
    assert len(times) > 32
    assert times[0] < times[-1] / 2


def test_errors_are_those_of_openai(client, port):
    with pytest.raises(openai.BadRequestError, match="context has room"):
        client.completions.create(model="tiny", prompt="hello", max_tokens=500)
    with pytest.raises(openai.NotFoundError, match="there is no model 'other'"):
        client.completions.create(model="other", prompt="hello")
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", "/health", headers={"Host": "evil.example"})
    response = connection.getresponse()
    assert (response.status, json.loads(response.read())["error"]["code"]) == (403, "wrong_host")


def test_a_client_that_goes_away_leaves_no_pages(client, port):
    for _ in range(6):
        stream = client.completions.create(
            model="tiny", prompt="hello", max_tokens=55, n=8, stream=True, temperature=2
        )
        next(iter(stream))
        stream.close()
    for _ in range(10):  # some of either replica
        wait_until(lambda: metrics(port)['relax_engine_pages_used{model="tiny"}'] == 0)


def test_a_killed_replica_is_replaced(client, expected):
    killed = replicas()
    assert len(killed) == 2
    os.kill(killed[0], signal.SIGKILL)
    for _ in range(5):
        for text in PROMPTS:
            assert complete(client, text) == expected[text]
    wait_until(lambda: len(set(replicas()) - set(killed)) == 1, seconds=90)


def test_running_requests_are_answered_before_a_replica_ends(path, client, port, expected):
    """A change of the application replaces the replicas; nothing that runs is lost."""
    with ThreadPoolExecutor(4) as pool:
        texts = PROMPTS * 10
        answers = [pool.submit(complete, client, text) for text in texts]
        before = set(replicas())
        options = Options(
            model=f"tiny={path}", num_replicas=2, threads=1, weights="f32", max_sequences=8
        )
        serve.run(app(options))
        assert [answer.result() for answer in answers] == [expected[text] for text in texts]
    wait_until(lambda: not before & set(replicas()), seconds=30)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_replicas": "0"}, "num_replicas"),
        ({"threads": "many"}, "threads"),
        ({"replicas": "2"}, "replicas"),
        ({"drain_timeout": "nan"}, "drain_timeout"),
        ({"model": 5}, "model"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValidationError, match=message):
        Options.model_validate(arguments)


def test_arguments_of_a_command_line():
    options = Options.model_validate({"threads": "3", "numa": "true", "allowed_hosts": "a,B"})
    assert (options.threads, options.numa, options.allowed_hosts) == (3, True, ("a", "B"))
    assert options.loading.threads == 3
    adapters = Options.model_validate({"adapters": "a=x/y,b=z=1"}).loading.adapters
    assert adapters == {"a": "x/y", "b": "z=1"}
    assert {"a", "b", "localhost"} <= set(options.access().hosts)
    for wrong in ("a", "a=x,a=y", ""):
        with pytest.raises(ValueError, match=r"expects (NAME=FOLDER|names of their own)"):
            Options.model_validate({"adapters": wrong})
    with pytest.raises(UsageError, match="two models have the name 'x'"):
        app(Options(model=["a/x", "b/x.gguf"]))


def test_keys_make_names_of_hosts_free(tmp_path, monkeypatch):
    monkeypatch.setenv("RELAX_API_KEY", "one")
    file = tmp_path / "keys"
    file.write_text("two\nthree\n")
    access = Options(api_key_file=str(file)).access()
    assert (access.keys, access.hosts) == (["one", "two", "three"], None)
    monkeypatch.delenv("RELAX_API_KEY")
    assert "localhost" in Options().access().hosts
    with pytest.raises(UsageError, match="cannot read"):
        Options(api_key_file=str(tmp_path / "none")).access()


def test_the_manifest_of_the_documentation():
    """Serve takes its configuration, and the application its arguments."""
    from ray.serve.schema import ServeDeploySchema

    text = (Path(__file__).parents[3] / "docs" / "serving.md").read_text()
    (manifest,) = (
        block
        for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
        if "RayService" in block
    )
    config = yaml.safe_load(yaml.safe_load(manifest)["spec"]["serveConfigV2"])
    (application,) = ServeDeploySchema.model_validate(config).applications
    module, _, name = application.import_path.partition(":")
    assert app is getattr(importlib.import_module(module), name)
    options = Options.model_validate(application.args)
    assert options.models == {"smollm2": "/models/smollm2.gguf"}
    assert (options.num_replicas, options.threads) == (2, 4)
