"""What takes long has its time, and ends with an error that says so, or once the server does."""

import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from raw_client import connection, head, received, request
from scripted_engine import running, wait_until
from test_server_hostile import error_of, post

from relax_mlir.llm.serving import connections
from relax_mlir.llm.serving.engines import Served
from relax_mlir.llm.serving.limits import Limits, State

EMBEDDINGS = "/v1/embeddings"
BODY = {"model": "slow", "input": "a"}


class SlowEmbedder:
    """Takes its time for each text, unless it may go on, and answers with many values."""

    def __init__(self) -> None:
        self.goes_on = threading.Event()

    def embed(self, texts):
        assert self.goes_on.wait(60)
        return np.full((len(texts), 200_000), 0.1, np.float32), 1


@pytest.fixture
def embedder():
    made = SlowEmbedder()
    yield made
    made.goes_on.set()


def state_of(embedder: SlowEmbedder, **limits) -> State:
    return State({"slow": Served("slow", embedder=embedder)}, limits=Limits(**limits))


def test_answers_that_take_too_long(embedder):
    with running(state_of(embedder, answer_seconds=0.2)) as url:
        status, _, answer = post(url, EMBEDDINGS, BODY)
        assert (status, json.loads(answer)["error"]["code"]) == (504, "timeout")
        embedder.goes_on.set()


def test_work_and_bodies_end_with_the_server(embedder, caplog):
    """What the models compute, and what is being read."""
    state = state_of(embedder)
    with running(state) as url, ThreadPoolExecutor(1) as pool, connection(url) as client:
        client.sendall(head(EMBEDDINGS, "Content-Length: 50") + b"{")
        computed = pool.submit(post, url, EMBEDDINGS, BODY)
        wait_until(lambda: state.running == 2)
        state.stopped.set()
        status, _, answer = computed.result()
        assert (status, error_of(status, answer)["code"]) == (503, "shutting_down")
        assert client.recv(1000).startswith(b"HTTP/1.1 503")
        embedder.goes_on.set()
    assert not caplog.records


def test_lost_clients_are_seen_while_models_compute(embedder):
    state = state_of(embedder)
    with running(state) as url:
        with connection(url) as client:
            client.sendall(request(EMBEDDINGS, BODY))
            wait_until(lambda: state.running == 1)
        wait_until(lambda: state.running == 0 and state.counters.disconnected == 1)
        embedder.goes_on.set()


def test_whole_answers_are_read_slowly(embedder, monkeypatch):
    """A client has the time of an answer to read it, and then its connection is cut."""
    monkeypatch.setattr(connections, "IDLE_SECONDS", 0.2)
    monkeypatch.setattr(connections, "SPARE_SECONDS", 1.0)
    embedder.goes_on.set()
    for seconds, is_whole in ((6, True), (0.5, False)):
        limits = {"answer_seconds": seconds, "head_seconds": 0.2}
        with running(state_of(embedder, **limits)) as url, socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            host, port = url[7:].split(":")
            client.connect((host, int(port)))
            client.sendall(request(EMBEDDINGS, BODY))
            time.sleep(1.5)
            client.settimeout(20)
            assert received(client).endswith(b"}}") == is_whole
