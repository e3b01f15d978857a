"""Pieces of answers on their way to clients: which come together, and which at once."""

import asyncio
import json
import socket
import time
from contextlib import closing
from http.client import HTTPConnection

import pytest
from scripted_engine import ScriptedEngine, ScriptedModel, running, state_of

from relax_mlir.llm.batching.request import Event
from relax_mlir.llm.serving import answers
from relax_mlir.llm.serving.answers import Answers, Mailbox
from relax_mlir.llm.serving.errors import ApiError
from relax_mlir.llm.serving.server import bind

SAYS = "the quick brown fox jumps over the lazy dog " * 3


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    return ScriptedEngine(ScriptedModel(tmp_path_factory.mktemp("model")), SAYS)


def posted(posts, seconds: float) -> list[int]:
    """How many arrivals are there after each post (an event, whether urgent), then `seconds`."""

    async def go() -> list[int]:
        mailbox, counts = Mailbox(), []
        queue = mailbox.queue()
        for index, is_urgent in enumerate(posts):
            mailbox.post(queue, (index, None), is_urgent)
            await asyncio.sleep(0)  # the loop runs what it was woken for, and no timer
            await asyncio.sleep(0)
            counts.append(queue.qsize())
        await asyncio.sleep(seconds)
        assert [queue.get_nowait()[0] for _ in range(queue.qsize())] == list(range(len(posts)))
        return counts

    return asyncio.run(go())


def test_what_wakes_the_loop(monkeypatch):
    monkeypatch.setattr(answers, "FRAME", 0.2)
    assert posted([False, False, False, True, False], 0.4) == [1, 1, 1, 4, 4]


def stream(url: str, limit: int) -> list[dict]:
    """The chunks of one answer, each with the time when it came."""
    host, port = url.removeprefix("http://").split(":")
    with closing(HTTPConnection(host, int(port), timeout=10)) as connection:
        body = {"model": "tiny", "prompt": "a", "stream": True, "max_tokens": limit, "logprobs": 1}
        headers = {"Content-Type": "application/json"}
        connection.request("POST", "/v1/completions", json.dumps(body), headers)
        lines = [line for line in connection.getresponse() if line.startswith(b"data: {")]
    return [json.loads(line[6:])["choices"][0] for line in lines]


@pytest.mark.parametrize(("pause", "frame"), [(0, 0.05), (0.01, 0.001)])
def test_tokens_that_come_together_are_one_piece(engine, monkeypatch, pause, frame):
    engine.pause = pause
    monkeypatch.setattr(answers, "FRAME", frame)
    tokens = engine.model.tokenizer.encode(SAYS)
    with running(state_of(engine)) as url:
        chunks = stream(url, 100)
    assert "".join(chunk["text"] for chunk in chunks) == engine.model.tokenizer.decode(tokens[:100])
    assert chunks[-1]["finish_reason"] == ("length" if len(tokens) >= 100 else "stop")
    counts = [len((chunk["logprobs"] or {"tokens": ()})["tokens"]) for chunk in chunks]
    assert sum(counts) == min(len(tokens), 100)
    assert (max(counts) > 1) == (pause == 0)


class Failing:
    """An engine whose only answer fails after its first tokens, all of which come at once."""

    def submit(self, request):
        return self

    def cancel(self):
        pass

    def listen(self, listener):
        for token in range(3):
            listener(Event(str(token), (token,)))
        listener(Event("", finish="error", error="out of luck"))


def test_what_came_before_an_error_is_told():
    texts = []

    async def go() -> None:
        async with Answers(Failing(), [None], None, Mailbox()) as failing:
            async for index, event in failing.events():
                texts.append((index, event.text, event.tokens))

    with pytest.raises(ApiError, match="out of luck"):
        asyncio.run(go())
    assert texts == [(0, "012", (0, 1, 2))]


def test_small_pieces_do_not_wait_for_others():
    """The system would delay the second of two pieces, for 40 ms, until the first has arrived."""

    class Server(asyncio.Protocol):
        def connection_made(self, transport):
            taken = transport.get_extra_info("socket")
            options.append(taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    async def go() -> None:
        server = await asyncio.get_running_loop().create_server(Server, sock=listener)
        _, writer = await asyncio.open_connection(*listener.getsockname())
        end = time.monotonic() + 5
        while not options and time.monotonic() < end:
            await asyncio.sleep(0.001)
        writer.close()
        server.close()

    options: list[int] = []
    listener = bind("127.0.0.1", 0)
    asyncio.run(go())
    assert options == [1]
